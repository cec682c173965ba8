"""The keys that cached passes have added, put together once and lengthened from pass to pass.

A run of a thousand steps has a thousand small arrays a layer.  To join them again for every step
would take longer than the model takes for it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorer.trace.step import Step

_ROOM = 1.5  # times what is needed, so that most steps are written where they belong at once


class _Run:
    """Keys of consecutive passes in one array; rows that were handed out are never written again.

    It lives as long as the first pass's own array.
    """

    def __init__(self, first: np.ndarray, forget: Callable[[Any], object]) -> None:
        self._parts: list[Callable[[], np.ndarray | None]] = [weakref.ref(first, forget)]
        self._rows = first.copy()
        self._ends = [len(first)]  # rows up to each pass

    def upto(self, count: int, of: Callable[[int], np.ndarray | None]) -> np.ndarray:
        """(K, H_kv, d_h) of `count` passes; `of` gives the keys of one, the first this run's."""
        known = min(count, len(self._ends))
        while known > 1 and self._parts[known - 1]() is not of(known - 1):
            known -= 1  # another branch
        if known < count:
            self._extend(known, [of(number) for number in range(known, count)])
        return self._rows[: self._ends[count - 1]]

    def _extend(self, known: int, more: Sequence[np.ndarray | None]) -> None:
        begin = self._ends[known - 1]
        total = begin + sum(len(keys) for keys in more if keys is not None)
        if known < len(self._ends) or total > len(self._rows):
            rows = np.empty((round(total * _ROOM), *self._rows.shape[1:]), self._rows.dtype)
            rows[:begin] = self._rows[:begin]
            self._rows = rows
            del self._parts[known:], self._ends[known:]
        for keys in more:
            if keys is not None:
                self._rows[begin : begin + len(keys)] = keys
                begin += len(keys)
            self._parts.append(_nothing if keys is None else weakref.ref(keys))
            self._ends.append(begin)


def _nothing() -> None:
    """In place of a pass that kept no keys."""


_runs: dict[int, _Run] = {}  # by id of the first array
_one_at_a_time = threading.Lock()


def joined(steps: Sequence[Step], begin: int, end: int, layer: int) -> np.ndarray:
    """(K, H_kv, d_h) in storage dtype: what the passes `begin` to `end` added, both included."""

    def of(number: int) -> np.ndarray | None:
        return steps[begin + 1 + number].layers[layer].keys

    # The first pass may be a long prompt: no copy of it is kept.
    first, count = steps[begin].layers[layer].keys, end - begin
    later = _run_of(count, of) if count else None
    found = [keys for keys in (first, later) if keys is not None]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _run_of(count: int, of: Callable[[int], np.ndarray | None]) -> np.ndarray | None:
    first = of(0)
    if first is None:
        return None
    key = id(first)
    with _one_at_a_time:
        run = _runs.get(key)
        if run is None:
            run = _runs[key] = _Run(first, lambda _: _runs.pop(key, None))
        rows = run.upto(count, of)
    rows.flags.writeable = False
    return rows
