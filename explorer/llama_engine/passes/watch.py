"""What attention receives, copied out while llama.cpp computes a pass.

llama.cpp asks of every node of its graph whether it is wanted, and stops after those that are.
Wanted is the softmax of each layer's attention: at that moment the queries, the keys of the cache
and the mask, from which it was made, still lie in memory.  So one stop a layer is enough, and what
is read is what the kernel was given, whatever the architecture did before.
"""

from __future__ import annotations

import ctypes as c
import re
import struct
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.binding.structs import EVAL, TensorStruct

_LAYER = re.compile(rb"-(\d+)(?: |$)")
_TANH = 4  # ggml_unary_op
_SOFTMAX, _OUTPUT = b"kq_soft_max", b"l_out-"
_SIX = len(_OUTPUT)
HIDDEN = np.float32(-1e30)  # in a mask: what is less is hidden


@dataclass(slots=True)
class AttentionCall:
    """One layer's attention in one call of llama.cpp, over n new slots."""

    layer: int
    queries: np.ndarray | None = None  # (n, H, d_h) float32
    keys: np.ndarray | None = None  # (n, H_kv, d_h) in the cache's type
    key_dtype: str = "float32"
    scaling: float = 1.0
    softcap: float = 0.0
    max_bias: float = 0.0  # of ALiBi; 0 = none
    mask: np.ndarray | None = None  # (n, ceil(K/8)) uint8: packed bits, 1 = may be read
    distances: np.ndarray | None = None  # (n, K) float32 that ALiBi's slopes multiply
    sinks: np.ndarray | None = None  # (H,)
    weights: np.ndarray | None = None  # (H, n, K) llama.cpp's own, where they were asked for
    flaw: str = ""  # why queries and keys are not all there is


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """One tensor of the cache, which lies where it is as long as its context lives."""

    address: int
    size: int  # bytes
    cells: int


@dataclass(slots=True)
class Seen:
    """What one call of llama.cpp gave."""

    calls: dict[int, AttentionCall] = field(default_factory=dict)  # by layer
    ends: dict[int, float] = field(default_factory=dict)  # when each layer's output was there
    outputs: dict[int, np.ndarray] = field(default_factory=dict)  # (n, d), where asked for
    copy_seconds: float = 0.0
    copied_by: dict[int, float] = field(default_factory=dict)  # copy seconds so far, at `ends`
    caches: dict[str, KeptTensor] = field(default_factory=dict)  # by name, where asked for


@dataclass(slots=True)
class Wanted:
    """What to copy in the next call."""

    slots: int = 0  # that exist after it
    rows: int = 0  # of them read by it
    every: int = 1  # record layers 0, n, 2n, … only; 0 = none
    weights: bool = False  # llama.cpp's own softmax, too
    outputs: bool = False  # of each layer
    survey: bool = False  # the tensors that the cache is made of
    masks: dict[int, tuple[np.ndarray, np.ndarray | None]] = field(default_factory=dict)


class Watch:
    """The callback of one context, and what it saw."""

    def __init__(self, library: LlamaLibrary) -> None:
        ops = library.ops
        self._softmax, self._add, self._scale = ops["SOFT_MAX"], ops["ADD"], ops["SCALE"]
        self._unary, self._product = ops["UNARY"], ops["MUL_MAT"]
        self.callback = EVAL(self._called)
        self.abort = c.create_string_buffer(2)  # a first byte that is not 0 ends the pass
        self.stop: Stop = never
        self.wanted = Wanted()
        self.seen = Seen()
        self.error: Exception | None = None

    def begin(self, wanted: Wanted, stop: Stop) -> None:
        """Before each call of llama.cpp."""
        self.wanted, self.stop, self.seen, self.error = wanted, stop, Seen(), None
        self.abort[0] = b"\0"

    def end_pass(self) -> None:
        """llama.cpp gives up at the next node."""
        self.abort[0] = b"\1"

    def _called(self, address: int, ask: bool, _: Any) -> bool:
        if ask:
            if self.wanted.survey:
                self._note_cache(address)
            op = c.c_int32.from_address(address + tensor.OP_OFFSET).value
            if op == self._add:
                return c.string_at(address + tensor.NAME_OFFSET, _SIX) == _OUTPUT
            return op == self._softmax
        try:
            self._computed(address)
            if self.stop():
                self.end_pass()
        except Exception as error:  # nothing may leave a callback; it is raised after the call
            self.error = error
            self.end_pass()
        return True

    def _note_cache(self, address: int) -> None:
        node = tensor.at(address)
        if node.view_src:
            kept = tensor.at(node.view_src)
            name = kept.name.decode("utf-8", "replace")
            if name.startswith("cache_"):
                first, end = tensor.span(kept)
                self.seen.caches[name] = KeptTensor(node.view_src, end - first, int(kept.ne[1]))

    def _computed(self, address: int) -> None:
        node, seen = tensor.at(address), self.seen
        name = node.name
        found = _LAYER.search(name)
        layer = int(found[1]) if found else len(seen.calls)
        started = time.perf_counter()
        if name.startswith(_SOFTMAX):
            every = self.wanted.every
            if every and layer % every == 0:
                seen.calls[layer] = self._call(layer, node)
            seen.copy_seconds += time.perf_counter() - started
        elif name.startswith(_OUTPUT):
            seen.ends[layer] = started
            if self.wanted.outputs:
                seen.outputs[layer] = tensor.numbers(node)[0].astype(np.float32)
            seen.copied_by[layer] = seen.copy_seconds

    def _call(self, layer: int, node: TensorStruct) -> AttentionCall:
        scale, max_bias = struct.unpack_from("<2f", bytes(node.op_params))
        call = AttentionCall(layer, scaling=scale, max_bias=max_bias)
        wanted = self.wanted
        if node.src[2]:
            call.sinks = tensor.numbers(tensor.at(node.src[2])).reshape(-1).astype(np.float32)
        if node.src[1]:
            self._take_mask(call, node.src[1])
        if wanted.weights:
            call.weights = tensor.numbers(node)[..., : wanted.slots].copy()
        between = [tensor.span(node)]
        product = self._product_of(call, node, between)
        if product is None:
            return call
        keys, queries = tensor.at(product.src[0]), tensor.at(product.src[1])
        begin, end = tensor.span(queries)
        if any(first < end and begin < last for first, last in between):
            call.flaw = "its queries are overwritten before they can be copied"
            return call
        first = wanted.slots - wanted.rows
        call.key_dtype = tensor.NAMES.get(keys.type, "")
        if not call.key_dtype or keys.ne[1] < wanted.slots:
            call.flaw = "its keys are kept in a form that is not read here"
            return call
        call.queries = tensor.numbers(queries).transpose(1, 0, 2).astype(np.float32, order="C")
        new = tensor.numbers(keys, first, wanted.slots)
        call.keys = np.ascontiguousarray(new.transpose(1, 0, 2))
        return call

    def _product_of(
        self, call: AttentionCall, node: TensorStruct, between: list[tuple[int, int]]
    ) -> TensorStruct | None:
        """The product of keys and queries that `node` is the softmax of; None, and a flaw noted.

        Between them a soft cap may stand: scale, tanh, scale.
        """
        below = tensor.at(node.src[0])
        if below.op == self._scale:
            outer = _scale(below)
            squash = tensor.at(below.src[0])
            inner = tensor.at(squash.src[0])
            capped = squash.op == self._unary and squash.op_params[0] == _TANH
            if not capped or inner.op != self._scale:
                call.flaw = "its scores are changed in a way that is not known here"
                return None
            call.softcap = outer * call.scaling
            call.scaling = _scale(inner) * call.softcap
            between += [tensor.span(one) for one in (below, squash, inner)]
            below = tensor.at(inner.src[0])
        between.append(tensor.span(below))
        if below.op != self._product:
            call.flaw = "its scores are changed in a way that is not known here"
            return None
        return below

    def _take_mask(self, call: AttentionCall, address: int) -> None:
        """The mask as bits, made once for the layers that share it."""
        wanted = self.wanted
        if address not in wanted.masks:
            values = tensor.numbers(tensor.at(address))[0, : wanted.rows, : wanted.slots]
            open_ = values > HIDDEN
            distances = np.where(open_, values, 0).astype(np.float32) if call.max_bias else None
            wanted.masks[address] = np.packbits(open_, axis=1), distances
        call.mask, call.distances = wanted.masks[address]


def _scale(node: TensorStruct) -> float:
    """The factor of a SCALE node; NaN where it also adds something."""
    factor, added = struct.unpack_from("<2f", bytes(node.op_params))
    return float(factor) if added == 0 else float("nan")
