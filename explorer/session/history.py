"""Undo and redo of what the user changed.

An entry holds the fields of State as they were before one change.  Undoing swaps them with what is
there now, so that steps run since then come back with redo: nothing is ever lost by looking back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from explorer.session.branches import arrays_of, bytes_beyond
from explorer.session.state import State
from explorer.trace.trace import Trace

LIMIT = 100  # entries
LIMIT_BYTES = 256 << 20  # of steps that nothing else holds
GESTURE_SECONDS = 1.0  # edits of one kind that follow each other faster are one


@dataclass(slots=True)
class Entry:
    """One change: which kind, and the fields it replaced."""

    kind: str
    fields: dict[str, Any]
    at: float


class History:
    """Two stacks of entries."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._undo: list[Entry] = []
        self._redo: list[Entry] = []
        self.grown = False  # since `within` was asked last

    @property
    def can_undo(self) -> bool:
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        return bool(self._redo)

    def push(self, kind: str, state: State, *fields: str, merge: bool = False) -> None:
        """Remember `fields` of `state` before they change; `merge` edits of one gesture."""
        now = self._clock()
        last = self._undo[-1] if self._undo else None
        self._redo.clear()
        self.grown = True
        if merge and last and last.kind == kind and now - last.at <= GESTURE_SECONDS:
            last.at = now
            return
        self._undo.append(Entry(kind, {name: getattr(state, name) for name in fields}, now))
        del self._undo[:-LIMIT]

    def end_gesture(self) -> None:
        """The next edit is one of its own, however soon it comes."""
        if self._undo:
            self._undo[-1].at = float("-inf")

    def within(self, kept: Iterable[Trace], limit: int = LIMIT_BYTES) -> int:
        """Drop the oldest changes until the steps that only undo and redo hold fit.

        `kept` are the traces held anyway; returns the bytes of the others.
        """
        self.grown = False
        known = arrays_of(kept)
        total = 0
        for place, entry in enumerate([*self._redo, *reversed(self._undo)]):
            trace = entry.fields.get("trace")
            more, known = (0, known) if trace is None else bytes_beyond(trace, known)
            if total + more > limit and place >= len(self._redo):
                del self._undo[: len(self._undo) - (place - len(self._redo))]
                return total
            total += more
        return total

    def undo(self, state: State) -> dict[str, Any]:
        """The fields to put back; empty if there is nothing to undo."""
        return self._swap(self._undo, self._redo, state)

    def redo(self, state: State) -> dict[str, Any]:
        """The fields to put back; empty if there is nothing to redo."""
        return self._swap(self._redo, self._undo, state)

    @staticmethod
    def _swap(source: list[Entry], target: list[Entry], state: State) -> dict[str, Any]:
        if not source:
            return {}
        entry = source.pop()
        now = {name: getattr(state, name) for name in entry.fields}
        target.append(Entry(entry.kind, now, float("-inf")))
        return entry.fields
