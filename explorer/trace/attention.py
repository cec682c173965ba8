"""Attention as it is kept: queries, keys and the mask the kernel received; maps on demand.

A map is softmax(scale · QKᵀ, capped, plus bias, under the mask), worked out here in float32 for
the rows and heads somebody looks at.  This is the one function that turns records into weights:
the window, the command line and the engine's own checks all call it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """The mask one attention kernel received, for Q query rows against K keys.

    causal: no tensor, is_causal=True; none: no tensor, nothing hidden; bits: a boolean tensor,
    kept as packed bits; values: an additive tensor, kept as float32.
    """

    kind: Literal["causal", "none", "bits", "values"]
    queries: int
    keys: int
    data: np.ndarray | None = None  # bits: (Q, ceil(K/8)) uint8; values: (1 or H, Q, K) float32

    @classmethod
    def of_bits(cls, allowed: np.ndarray) -> Mask:
        """From a (Q, K) boolean array, True where a key may be read."""
        queries, keys = allowed.shape
        return cls("bits", queries, keys, np.packbits(allowed, axis=1))

    def allowed(self, rows: slice = slice(None), head: int = 0) -> np.ndarray:
        """(rows, K) bool: the keys each query row may read."""
        index = np.arange(self.queries)[rows]
        if self.kind == "causal":
            return np.asarray(np.arange(self.keys)[None, :] <= index[:, None])
        if self.kind == "none":
            return np.ones((len(index), self.keys), bool)
        assert self.data is not None
        if self.kind == "bits":
            return np.unpackbits(self.data[rows], axis=1, count=self.keys).astype(bool)
        return np.asarray(self._values(head)[rows] > -1e30)

    def additive(self, rows: slice, head: int) -> np.ndarray:
        """(rows, K) float32 to add to the scores: 0 or -inf, or the tensor's own values."""
        if self.kind == "values":
            values = self._values(head)[rows]
            return np.where(values > -1e30, values, np.float32(-np.inf)).astype(np.float32)
        return np.where(self.allowed(rows), np.float32(0), np.float32(-np.inf))

    def _values(self, head: int) -> np.ndarray:
        assert self.data is not None
        return np.asarray(self.data[head if len(self.data) > 1 else 0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerRecord:
    """What one layer's attention did in one pass: Q and K, a recorded map, or why neither."""

    layer: int
    kind: Literal["qk", "map", "absent"]
    reason: str = ""  # absent: why; map: how it was got
    dtype: str = "float32"  # of q and k; bfloat16 is kept as its bits in uint16
    queries: np.ndarray | None = None  # (Q, H, d_h), after RoPE and QK-norm
    keys: np.ndarray | None = None  # (Q, H_kv, d_h), the new keys of this pass
    scaling: float = 1.0
    mask: Mask | None = None
    first_key: int = 0  # slot of the first key the kernel saw
    evicted: tuple[int, int] = (0, 0)  # slots from..to that were dropped: the kernel saw no key
    window: int = 0  # 0 = none
    softcap: float = 0.0  # 0 = none
    sinks: np.ndarray | None = None  # (H,) float32, extra logits that take mass and give nothing
    bias: np.ndarray | None = None  # (H, Q, K) float32, added to the scores; K: the first or all
    weights: np.ndarray | None = None  # (H, Q, K) float32, recorded by the model itself
    away: int = 0  # absent: so many heads, whose record the engine keeps until it is asked for
    groups: int = 0  # in which these are sent, see `wire.away`
    parts: tuple[tuple[int, LayerRecord], ...] = ()  # of those, the groups that have come

    @property
    def heads(self) -> int:
        """Query heads; 0 where the layer keeps no attention."""
        if self.queries is not None:
            return int(self.queries.shape[1])
        return self.away if self.weights is None else int(self.weights.shape[0])


def as_float32(array: np.ndarray, dtype: str) -> np.ndarray:
    """Stored bits of `dtype` as float32; exact for float16, bfloat16 and float32."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False)


def scores(record: LayerRecord, keys: np.ndarray, head: int, rows: slice) -> np.ndarray:
    """(rows, K) float32 scores of one head before the mask: scaled, capped, biased.

    `keys` is (K, H_kv, d_h), everything the kernel saw, in the record's storage dtype.
    """
    assert record.queries is not None
    q = as_float32(record.queries[rows, head], record.dtype)
    group = record.queries.shape[1] // keys.shape[1]
    k = as_float32(keys[:, head // group], record.dtype)
    result = (q @ k.T) * np.float32(record.scaling)
    if record.softcap:
        result = np.tanh(result / np.float32(record.softcap)) * np.float32(record.softcap)
    if record.bias is not None:
        bias = record.bias[head if len(record.bias) > 1 else 0, rows]
        result[:, : bias.shape[1]] += bias
    return np.asarray(result, np.float32)


def softmax_rows(scored: np.ndarray, sink: float | None = None) -> np.ndarray:
    """Softmax along the keys; a sink takes its share and is not returned.

    A row with nothing to read (all -inf) comes back as zeros, never as NaN.
    """
    top = scored.max(axis=-1, keepdims=True)
    if sink is not None:
        top = np.maximum(top, np.float32(sink))
    top = np.where(np.isfinite(top), top, np.float32(0))
    weights = np.asarray(scored - top)
    np.exp(weights, out=weights)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(np.float32(sink) - top)
    weights /= np.where(total > 0, total, np.float32(1))
    return weights


def weights(
    record: LayerRecord,
    keys: np.ndarray,
    head: int,
    rows: slice = slice(None),
    *,
    masked: bool = True,
) -> np.ndarray:
    """(rows, K) float32 attention weights of one head.

    With `masked` False the recorded mask is left out: the same scores, unmasked.
    ValueError with the reason if the layer keeps no attention.
    """
    if record.kind == "absent":
        raise ValueError(record.reason)
    if record.weights is not None:
        return np.asarray(record.weights[head, rows])
    scored = scores(record, keys, head, rows)
    if masked and record.mask is not None:
        scored = scored + record.mask.additive(rows, head)
    return softmax_rows(scored, None if record.sinks is None else float(record.sinks[head]))
