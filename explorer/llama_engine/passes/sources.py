"""What one layer's attention was made from, read off the graph: queries, keys, mask, scale."""

from __future__ import annotations

import ctypes as c
import struct
from dataclasses import dataclass, field

import numpy as np

from explorer.llama_engine.binding import quantised, tensor
from explorer.llama_engine.binding.library import library
from explorer.llama_engine.binding.structs import TensorStruct
from explorer.llama_engine.passes.attention_edits import HIDDEN

_TANH = 4  # ggml_unary_op
_NODE_BYTES = c.sizeof(TensorStruct)


Masks = dict[int, tuple[np.ndarray, np.ndarray | None]]
"""Packed bits and distances by the address of a mask, of one call of llama.cpp."""


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
class ScoreSource:
    """Where one layer's numbers lie, good as long as the nodes it was read off are unchanged."""

    call: AttentionCall  # without the numbers of a pass
    mask: int  # address; 0 = none
    query_node: int = 0  # address, with `queries`
    key_node: int = 0
    block_type: int = 0  # ggml_type of keys that are kept in blocks; 0 = they are plain numbers
    nodes: list[tuple[memoryview, bytes]] = field(default_factory=list)  # as they are, and were
    queries: np.ndarray | None = None  # (n, H, d_h) float32, over llama.cpp's memory
    keys: np.ndarray | None = None  # (cells, H_kv, d_h), likewise; None for blocks
    chain: tuple[int, ...] = ()  # nodes from the product of queries and keys to before softmax

    @property
    def holds(self) -> bool:
        """False once a node was laid out again."""
        return all(now.tobytes() == then for now, then in self.nodes)

    def new_call(self) -> AttentionCall:
        """A copy to be filled."""
        of = self.call
        return AttentionCall(
            of.layer, None, None, of.key_dtype, of.scaling, of.softcap, of.max_bias, None, None,
            None, of.sinks, None, of.flaw,
        )  # fmt: skip

    def copied(self, queries: np.ndarray, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Queries as the kernel reads them, and the keys of slots `begin` to `end`.

        Of keys in blocks and what is multiplied by them, the float32 that they stand for.
        """
        if self.block_type:
            keys = quantised.rows(tensor.at(self.key_node), begin, end)
            return quantised.as_multiplied(queries, self.block_type), keys
        assert self.keys is not None
        return stored(queries, self.call.key_dtype), self.keys[begin:end].copy()

    def take_mask(
        self,
        call: AttentionCall,
        rows: int,
        slots: int,
        masks: Masks,
        allowed: np.ndarray | None = None,
    ) -> None:
        """Fill in the mask as bits, made once for the layers that share it.

        `allowed`: (1 or H, n, K) bool where interventions changed it.
        """
        if not self.mask:
            return
        name = self.mask if allowed is None else id(allowed)
        if name not in masks:
            values = tensor.numbers(tensor.at(self.mask))[0, :rows, :slots]
            open_ = values > HIDDEN
            distances = np.where(open_, values, 0).astype(np.float32) if call.max_bias else None
            masks[name] = np.packbits(open_, axis=1), distances
        call.mask, call.distances = masks[name]
        if allowed is not None and len(allowed) > 1:
            call.allowed = allowed


def source(ops: dict[str, int], layer: int, address: int) -> ScoreSource:
    """What `address`, the softmax of a layer, was made from."""
    node = tensor.at(address)
    scale, max_bias = struct.unpack_from("<2f", bytes(node.op_params))
    call = AttentionCall(layer, scaling=scale, max_bias=max_bias)
    if node.src[2]:
        call.sinks = tensor.numbers(tensor.at(node.src[2])).reshape(-1).astype(np.float32)
    between = [address]
    product = _product_of(ops, call, node, between)
    looked_at = [*between, *filter(None, node.src[1:3])]
    found = ScoreSource(call, node.src[1] or 0)
    if product is not None:
        looked_at += product.src[:2]
        keys, queries = tensor.at(product.src[0]), tensor.at(product.src[1])
        begin, end = tensor.span(queries)
        spans = [tensor.span(tensor.at(one)) for one in between]
        in_blocks = quantised.is_read(keys.type)
        call.key_dtype = "float32" if in_blocks else tensor.NAMES.get(keys.type, "")
        if any(first < end and begin < last for first, last in spans):
            call.flaw = "its queries are overwritten before they can be copied"
        elif not call.key_dtype:
            call.flaw = "its keys are kept in a form that is not read here"
        else:
            found.chain = tuple(reversed(between[1:]))
            found.key_node, found.query_node = product.src[:2]
            found.queries = tensor.numbers(queries).transpose(1, 0, 2)
            if in_blocks:
                found.block_type = keys.type
            else:
                found.keys = tensor.numbers(keys).transpose(1, 0, 2)
    for one in looked_at:
        now = memoryview((c.c_char * _NODE_BYTES).from_address(one)).cast("B")
        found.nodes.append((now, bytes(now)))
    return found


def _product_of(
    ops: dict[str, int], call: AttentionCall, node: TensorStruct, between: list[int]
) -> TensorStruct | None:
    """The product of keys and queries that `node` is the softmax of; None, and a flaw noted.

    Between them a soft cap may stand: scale, tanh, scale.
    """
    place = node.src[0]
    below = tensor.at(place)
    if below.op == ops["SCALE"]:
        outer = _scale(below)
        squash = tensor.at(below.src[0])
        inner = tensor.at(squash.src[0])
        capped = squash.op == ops["UNARY"] and squash.op_params[0] == _TANH
        if not capped or inner.op != ops["SCALE"]:
            call.flaw = "its scores are changed in a way that is not known here"
            return None
        call.softcap = outer * call.scaling
        call.scaling = _scale(inner) * call.softcap
        between += [place, below.src[0], squash.src[0]]
        place = inner.src[0]
        below = tensor.at(place)
    between.append(place)
    if below.op != ops["MUL_MAT"]:
        call.flaw = "its scores are changed in a way that is not known here"
        return None
    return below


def stored(queries: np.ndarray, dtype: str) -> np.ndarray:
    """As the kernel reads them: it rounds queries to the type of its keys."""
    if dtype == "float32":
        return queries.astype(dtype, order="C")
    rows = np.ascontiguousarray(queries, np.float32)
    found = np.empty(rows.shape, np.float16 if dtype == "float16" else np.uint16)
    convert = library().ggml_fp32_to_fp16_row
    if dtype == "bfloat16":
        convert = library().ggml_fp32_to_bf16_row
    convert(rows.ctypes.data, found.ctypes.data, rows.size)
    return found


def _scale(node: TensorStruct) -> float:
    """The factor of a SCALE node; NaN where it also adds something."""
    factor, added = struct.unpack_from("<2f", bytes(node.op_params))
    return float(factor) if added == 0 else float("nan")


def all_finite(array: np.ndarray, dtype: str) -> bool:
    """True if none of these stored numbers is NaN or infinite."""
    if dtype == "float32":
        return bool(np.isfinite(array).all())
    exponent = np.uint16(0x7F80 if dtype == "bfloat16" else 0x7C00)
    return bool(((array.view(np.uint16) & exponent) != exponent).all())
