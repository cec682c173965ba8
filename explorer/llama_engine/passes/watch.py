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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.binding.structs import EVAL, EVAL_NODE, TensorStruct
from explorer.llama_engine.passes.attention_edits import HIDDEN, ScoreEdit, ScoreNodes
from explorer.llama_engine.passes.graph import Graph, Place
from explorer.llama_engine.passes.inside import Inside

_LAYER = re.compile(rb"-(\d+)(?: |$)")
_TANH = 4  # ggml_unary_op
_SOFTMAX, _OUTPUT = b"kq_soft_max", b"l_out-"
_NODE_BYTES = c.sizeof(TensorStruct)
_CELLS = 256  # llama.cpp widens its graph in steps of so many


@dataclass(slots=True)
class AttentionCall:
    """One layer's attention in one call of llama.cpp, over n new slots."""

    layer: int
    queries: np.ndarray | None = None  # (n, H, d_h) as the kernel reads them: in the keys' type
    keys: np.ndarray | None = None  # (n, H_kv, d_h) in the cache's type
    key_dtype: str = "float32"
    scaling: float = 1.0
    softcap: float = 0.0
    max_bias: float = 0.0  # of ALiBi; 0 = none
    mask: np.ndarray | None = None  # (n, ceil(K/8)) uint8: packed bits, 1 = may be read
    allowed: np.ndarray | None = None  # (H, n, K) bool in its place, where heads differ
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


@dataclass(slots=True)
class Wanted:
    """What to copy in the next call."""

    slots: int = 0  # that exist after it
    rows: int = 0  # of them read by it
    every: int = 1  # record layers 0, n, 2n, … only; 0 = none
    weights: bool = False  # llama.cpp's own softmax, too
    outputs: bool = False  # of each layer
    inside: Inside | None = None  # what is read and changed besides
    dry: bool = False  # nodes are looked at and nothing is computed
    masks: dict[int, tuple[np.ndarray, np.ndarray | None]] = field(default_factory=dict)

    def part(self) -> Wanted:
        """The same of one call of several."""
        return replace(self, masks={})


@dataclass(slots=True)
class _Source:
    """Where one layer's numbers lie, good as long as the nodes it was read off are unchanged."""

    call: AttentionCall  # without the numbers of a pass
    mask: int  # address; 0 = none
    nodes: list[tuple[memoryview, bytes]] = field(default_factory=list)  # as they are, and were
    queries: np.ndarray | None = None  # (n, H, d_h) float32, over llama.cpp's memory
    keys: np.ndarray | None = None  # (cells, H_kv, d_h), likewise
    chain: tuple[int, ...] = ()  # nodes from the product of queries and keys to before softmax

    @property
    def holds(self) -> bool:
        """False once a node was laid out anew."""
        return all(now.tobytes() == then for now, then in self.nodes)

    def new_call(self) -> AttentionCall:
        """A copy to be filled."""
        of = self.call
        return AttentionCall(
            of.layer, None, None, of.key_dtype, of.scaling, of.softcap, of.max_bias, None, None,
            None, of.sinks, None, of.flaw,
        )  # fmt: skip


class _Nodes(dict[int, bool]):
    """False for each node of the graph that is known not to be wanted.

    llama.cpp asks this dictionary itself: of a thousand nodes in a pass Python sees those alone
    that are wanted, or new.
    """

    def __init__(self, unknown: Callable[[int], bool]) -> None:
        super().__init__()
        self._unknown = unknown

    def __missing__(self, address: int) -> bool:
        return self._unknown(address)


class Watch:
    """The callback of one context, and what it saw."""

    def __init__(self, library: LlamaLibrary) -> None:
        self._library, ops = library, library.ops
        self._softmax, self._add, self._scale = ops["SOFT_MAX"], ops["ADD"], ops["SCALE"]
        self._unary, self._product = ops["UNARY"], ops["MUL_MAT"]
        self._nodes = _Nodes(self._called)
        self._ask = EVAL_NODE(self._nodes.__getitem__)
        self.callback = c.cast(self._ask, EVAL)
        self.abort = c.create_string_buffer(2)  # a first byte that is not 0 ends the pass
        self.stop: Stop = never
        self.wanted = Wanted()
        self.seen = Seen()
        self.caches: dict[str, KeptTensor] = {}  # the cache's own tensors, by name
        self.error: Exception | None = None
        self._computing = 0  # the node that llama.cpp was told to stop after
        self._graph: tuple[object, ...] = ()
        self._count = self._usual = 0  # wanted nodes: of this call, of the first of this graph
        self._attention: dict[int, int] = {}  # layers of the wanted nodes, by address
        self._outputs: dict[int, int] = {}
        self._order: list[int] = []  # every node of the graph, in the order of computing
        self._stops: dict[int, Place] = {}  # nodes that `Wanted.inside` is called at, by address
        self._sources: dict[int, _Source] = {}

    def begin(self, wanted: Wanted, at: Sequence[int], stop: Stop) -> None:
        """Before each call of llama.cpp, for logits of the rows `at`."""
        self.wanted, self.stop, self.seen, self.error = wanted, stop, Seen(), None
        self.abort[0] = b"\1" if wanted.dry else b"\0"
        self._computing = self._count = 0
        stops = wanted.inside.begin(wanted.rows, at) if wanted.inside is not None else None
        graph = wanted.rows, len(at), -(-wanted.slots // _CELLS), stops, wanted.dry
        if graph != self._graph:
            self._graph = graph
            self.forget()

    def forget(self) -> None:
        """Look at every node anew: where another graph lies, other nodes are wanted."""
        for known in (self._nodes, self._attention, self._outputs, self._sources, self._stops):
            known.clear()
        self._order.clear()
        self._usual = 0

    @property
    def graph(self) -> Graph:
        """The nodes of the last call, where these were all new."""
        return Graph(self._library.ops, self._order)

    @property
    def outputs(self) -> dict[int, int]:
        """Addresses of the layers' outputs, by layer."""
        return {layer: address for address, layer in self._outputs.items()}

    @property
    def attention(self) -> dict[int, int]:
        """Addresses of attention's softmax, by layer."""
        return {layer: address for address, layer in self._attention.items()}

    @property
    def wanted_nodes(self) -> tuple[int, ...]:
        """Addresses of the nodes that attention is copied at, in order."""
        return tuple(self._attention)

    def ignore(self, address: int) -> None:
        """Take a node for one that is not wanted, until it is missed."""
        self._nodes[address] = False

    @property
    def complete(self) -> bool:
        """False if fewer nodes were wanted than in an earlier call of this graph."""
        inside = self.wanted.inside
        if self._usual == 0 and inside is not None:
            parts = self.graph, self.outputs, self.attention, self._stops
            if not inside.stopped_right(*parts):
                return False
        self._usual = self._usual or self._count
        return self._count == self._usual

    def end_pass(self) -> None:
        """llama.cpp gives up at the next node."""
        self.abort[0] = b"\1"

    def _called(self, address: int) -> bool:
        """True for a node that is wanted; called again with it once it is computed."""
        if address == self._computing:
            self._computing = 0
            try:
                self._computed(address)
                if self.stop():
                    self.end_pass()
            except Exception as error:  # nothing may leave a callback; it is raised after the call
                self.error = error
                self.end_pass()
            return True
        known = address in self._attention or address in self._outputs or address in self._stops
        if known or self._is_new_and_wanted(address):
            self._computing = address
            self._count += 1
            return True
        self._nodes[address] = False
        self._note_cache(address)
        return False

    def _is_new_and_wanted(self, address: int) -> bool:
        """Of a node that is seen for the first time."""
        inside, ordinal = self.wanted.inside, len(self._order)
        self._order.append(address)
        wanted = self._is_wanted(address)
        if inside is not None and (place := inside.place_of(ordinal, address)) is not None:
            self._stops[address] = place
            wanted = True
        return wanted and not self.wanted.dry

    def _is_wanted(self, address: int) -> bool:
        """True for attention's softmax and a layer's output, whose layer is noted."""
        op = c.c_int32.from_address(address + tensor.OP_OFFSET).value
        name = c.string_at(address + tensor.NAME_OFFSET)
        if op == self._softmax and name.startswith(_SOFTMAX):
            found = _LAYER.search(name)
            self._attention[address] = int(found[1]) if found else len(self._attention)
            return True
        if op == self._add and name.startswith(_OUTPUT):
            self._outputs[address] = int(name[len(_OUTPUT) :])
            return True
        return False

    def _note_cache(self, address: int) -> None:
        node = tensor.at(address)
        if node.view_src:
            kept = tensor.at(node.view_src)
            name = kept.name.decode("utf-8", "replace")
            if name.startswith("cache_"):
                first, end = tensor.span(kept)
                self.caches[name] = KeptTensor(node.view_src, end - first, int(kept.ne[1]))

    def _computed(self, address: int) -> None:
        started, seen, inside = time.perf_counter(), self.seen, self.wanted.inside
        if inside is not None and address in self._stops:
            inside.at(self._stops[address], address)
            seen.copy_seconds += time.perf_counter() - started
            return
        layer = self._outputs.get(address)
        if layer is None:
            layer, every = self._attention[address], self.wanted.every
            recorded = bool(every) and layer % every == 0
            if inside is not None:
                self._changed(inside, layer, address, recorded)
            elif recorded:
                seen.calls[layer] = self._call(layer, address)
            seen.copy_seconds += time.perf_counter() - started
            return
        seen.ends[layer] = started
        if self.wanted.outputs:
            seen.outputs[layer] = tensor.numbers(tensor.at(address))[0].astype(np.float32)
        if inside is not None:
            inside.at_output(layer, address)
        seen.copied_by[layer] = seen.copy_seconds

    def _changed(self, inside: Inside, layer: int, address: int, recorded: bool) -> None:
        """Attention with what interventions change in it."""
        source, wanted = self._source_of(layer, address), self.wanted
        scores = ScoreNodes(
            layer, address, source.chain, source.mask, source.queries, wanted.slots, wanted.rows
        )
        with inside.in_attention(scores) as edit:
            if recorded:
                self.seen.calls[layer] = self._call(layer, address, edit)

    def _source_of(self, layer: int, address: int) -> _Source:
        source = self._sources.get(address)
        if source is None or not source.holds:
            source = self._sources[address] = self._source(layer, address)
        return source

    def _call(self, layer: int, address: int, edit: ScoreEdit | None = None) -> AttentionCall:
        source = self._source_of(layer, address)
        call, wanted = source.new_call(), self.wanted
        if source.mask:
            self._take_mask(call, source.mask, edit)
        if wanted.weights:
            call.weights = tensor.numbers(tensor.at(address))[..., : wanted.slots].copy()
        if source.queries is None or source.keys is None:
            return call
        if len(source.keys) < wanted.slots or len(source.queries) != wanted.rows:
            call.flaw = "its queries and keys are not those of the tokens read"
            return call
        call.queries = stored(source.queries, call.key_dtype)
        call.keys = source.keys[wanted.slots - wanted.rows : wanted.slots].copy()
        return call

    def _source(self, layer: int, address: int) -> _Source:
        """What `address`, the softmax of a layer, was made from."""
        node = tensor.at(address)
        scale, max_bias = struct.unpack_from("<2f", bytes(node.op_params))
        call = AttentionCall(layer, scaling=scale, max_bias=max_bias)
        if node.src[2]:
            call.sinks = tensor.numbers(tensor.at(node.src[2])).reshape(-1).astype(np.float32)
        if not self._is_wanted(address):
            raise ValueError("another graph lies where attention was")
        between = [address]
        product = self._product_of(call, node, between)
        looked_at = [*between, *filter(None, node.src[1:3])]
        found = _Source(call, node.src[1] or 0)
        if product is not None:
            looked_at += product.src[:2]
            keys, queries = tensor.at(product.src[0]), tensor.at(product.src[1])
            begin, end = tensor.span(queries)
            spans = [tensor.span(tensor.at(one)) for one in between]
            call.key_dtype = tensor.NAMES.get(keys.type, "")
            if any(first < end and begin < last for first, last in spans):
                call.flaw = "its queries are overwritten before they can be copied"
            elif not call.key_dtype:
                call.flaw = "its keys are kept in a form that is not read here"
            else:
                found.chain = tuple(reversed(between[1:]))
                found.queries = tensor.numbers(queries).transpose(1, 0, 2)
                found.keys = tensor.numbers(keys).transpose(1, 0, 2)
        for one in looked_at:
            now = memoryview((c.c_char * _NODE_BYTES).from_address(one)).cast("B")
            found.nodes.append((now, bytes(now)))
        return found

    def _product_of(
        self, call: AttentionCall, node: TensorStruct, between: list[int]
    ) -> TensorStruct | None:
        """The product of keys and queries that `node` is the softmax of; None, and a flaw noted.

        Between them a soft cap may stand: scale, tanh, scale.
        """
        place = node.src[0]
        below = tensor.at(place)
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
            between += [place, below.src[0], squash.src[0]]
            place = inner.src[0]
            below = tensor.at(place)
        between.append(place)
        if below.op != self._product:
            call.flaw = "its scores are changed in a way that is not known here"
            return None
        return below

    def _take_mask(self, call: AttentionCall, address: int, edit: ScoreEdit | None) -> None:
        """The mask as bits, made once for the layers that share it."""
        wanted, allowed = self.wanted, None if edit is None else edit.allowed
        name = address if allowed is None else id(allowed)
        if name not in wanted.masks:
            values = tensor.numbers(tensor.at(address))[0, : wanted.rows, : wanted.slots]
            open_ = values > HIDDEN
            distances = np.where(open_, values, 0).astype(np.float32) if call.max_bias else None
            wanted.masks[name] = np.packbits(open_, axis=1), distances
        call.mask, call.distances = wanted.masks[name]
        if allowed is not None and len(allowed) > 1:
            call.allowed = allowed


def stored(queries: np.ndarray, dtype: str) -> np.ndarray:
    """As the kernel reads them: it rounds queries to the type of its keys."""
    if dtype != "bfloat16":
        return queries.astype(dtype, order="C")
    bits = np.ascontiguousarray(queries, np.float32).view(np.uint32)  # to nearest, ties to even
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def _scale(node: TensorStruct) -> float:
    """The factor of a SCALE node; NaN where it also adds something."""
    factor, added = struct.unpack_from("<2f", bytes(node.op_params))
    return float(factor) if added == 0 else float("nan")
