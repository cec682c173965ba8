"""Are maps right in cached steps?  Asked pass by pass of a prefill and the steps after it."""

from __future__ import annotations

import numpy as np

from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.selftest.measured_gaps import PassMap, drawn
from explorer.trace import attention
from explorer.trace.rounding import largest


class CachedMapCheck:
    """The layers whose kept keys, laid end to end, are what the kernel saw in each cached step.

    A map that is not rebuilt from keys must instead have the rows of the uncached pass `whole`.
    """

    def __init__(self, whole: ForwardPass, limit: float) -> None:
        self._uncached = {one.record.layer: one for one in drawn(whole)}
        self._limit = limit
        self._keys: dict[int, np.ndarray] = {}
        self._right: dict[int, int] = {}
        self._passes = 0

    def see(self, done: ForwardPass) -> None:
        """One more pass, right after it ran: a cache may change its tensors in place."""
        self._passes += 1
        for one in drawn(done):
            layer = one.record.layer
            self._right[layer] = self._right.get(layer, 0) + self._is_right(one, done)

    @property
    def layers(self) -> frozenset[int]:
        """Those that were right in every pass."""
        return frozenset(k for k, count in self._right.items() if count == self._passes)

    def _is_right(self, one: PassMap, done: ForwardPass) -> bool:
        layer, new = one.record.layer, one.record.keys
        if new is None:
            uncached = self._uncached.get(layer)
            return uncached is not None and _rows_agree(one, done, uncached, self._limit)
        older = self._keys.get(layer)
        self._keys[layer] = new if older is None else np.concatenate([older, new])
        return _keys_agree(one, self._keys[layer], self._limit)


def _keys_agree(one: PassMap, kept: np.ndarray, limit: float) -> bool:
    dtype, first = one.record.dtype, one.record.first_key
    ours = attention.as_float32(kept[first:], dtype)
    theirs = attention.as_float32(one.keys, dtype)
    if ours.shape != theirs.shape:
        return False
    return largest(ours - theirs) <= limit * max(1.0, largest(theirs))


def _rows_agree(one: PassMap, done: ForwardPass, uncached: PassMap, limit: float) -> bool:
    first, rows = one.record.first_key, slice(done.first_slot, done.slots)
    for head in range(one.record.heads):
        theirs = uncached.weights(head, rows)[:, first : done.slots]
        ours = one.weights(head)
        if ours.shape != theirs.shape or largest(ours - theirs) > limit:
            return False
    return True
