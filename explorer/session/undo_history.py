"""Undo and redo of what the user did, the last act first: settings, typing, steps, runs.

An entry holds the fields of State as they were before one act.  Undoing swaps them with what is
there now, so that redo brings them back: nothing is ever lost by looking back.  Of an act that only
made the run longer the entry holds how long it was: old traces would keep what was dropped since.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from explorer.session.branches import arrays_of, bytes_beyond
from explorer.session.state import State
from explorer.trace.card import SelfCheck
from explorer.trace.trace import Trace

LIMIT = 1000  # entries
LIMIT_BYTES = 256 << 20  # of steps and prompts that nothing else holds
GESTURE_SECONDS = 1.0  # edits of one kind that follow each other faster are one
TOGETHER = ("step", "run", "cut", "reset")  # kinds of acts that may be made on two sides at once


@dataclass(slots=True)
class UndoEntry:
    """One act: which kind, and the fields it replaced."""

    kind: str
    fields: dict[str, Any]
    at: float
    steps: int | None = None  # the act made the run longer; so many steps were there before
    number: int = 0  # the same on both sides if it was made on both; 0 = on this side alone

    @property
    def prompt(self) -> str:
        """Of the request that it replaced, if it replaced one."""
        request = self.fields.get("request")
        return "" if request is None else str(request.prompt)


class History:
    """Two stacks of entries."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._undo: list[UndoEntry] = []
        self._redo: list[UndoEntry] = []
        self._cleared: list[UndoEntry] = []  # what the newest entry made impossible to redo
        self.grown = False  # since `within` was asked last
        self.numbers: deque[int] = deque()  # of acts begun on two sides, whose entries are to come

    @property
    def can_undo(self) -> bool:
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        return bool(self._redo)

    @property
    def shown(self) -> dict[str, Any]:
        """The fields of State that say what undo and redo would do."""
        return {
            "can_undo": self.can_undo,
            "can_redo": self.can_redo,
            "undo_kind": self._undo[-1].kind if self._undo else "",
            "redo_kind": self._redo[-1].kind if self._redo else "",
            "undo_number": self._undo[-1].number if self._undo else 0,
            "redo_number": self._redo[-1].number if self._redo else 0,
        }

    def push(self, kind: str, state: State, *fields: str, merge: bool = False) -> UndoEntry:
        """Remember `fields` of `state` before they change; `merge` edits of one gesture."""
        now = self._clock()
        last = self._undo[-1] if self._undo else None
        self.grown = True
        if merge and last and last.kind == kind and now - last.at <= GESTURE_SECONDS:
            self._redo = []
            last.at = now
            return last
        return self._add(UndoEntry(kind, {name: getattr(state, name) for name in fields}, now))

    def push_longer(self, kind: str, steps: int) -> None:
        """Remember that the run had so many steps before it is made longer."""
        self._add(UndoEntry(kind, {}, float("-inf"), steps))

    def _add(self, entry: UndoEntry) -> UndoEntry:
        if self.numbers and entry.kind in TOGETHER:
            entry.number = self.numbers.popleft()
        self._cleared, self._redo = self._redo, []
        self._undo.append(entry)
        del self._undo[:-LIMIT]
        return entry

    @property
    def newest(self) -> UndoEntry | None:
        """What undo would take back."""
        return self._undo[-1] if self._undo else None

    def forget(self, entry: UndoEntry) -> None:
        """The act came to nothing; what could be redone before it can be redone again."""
        if entry is self.newest:
            self._redo, self._cleared = self._cleared, []
        self._undo = [kept for kept in self._undo if kept is not entry]

    def end_gesture(self) -> None:
        """The next edit is one of its own, however soon it comes."""
        if self._undo:
            self._undo[-1].at = float("-inf")

    def within(self, kept: Iterable[Trace], limit: int = LIMIT_BYTES) -> int:
        """Drop the oldest changes until the steps that only undo and redo hold fit.

        `kept` are the traces held anyway; returns the bytes of the others.
        """
        self.grown = False
        known, texts = arrays_of(kept), set[int]()
        total = 0
        for place, entry in enumerate([*self._redo, *reversed(self._undo)]):
            trace = entry.fields.get("trace")
            prompt = entry.prompt
            more = 0 if id(prompt) in texts else len(prompt.encode("utf-8", "surrogatepass"))
            texts.add(id(prompt))
            if trace is not None:
                beyond, known = bytes_beyond(trace, known)
                more += beyond
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

    def _swap(
        self, source: list[UndoEntry], target: list[UndoEntry], state: State
    ) -> dict[str, Any]:
        if not source:
            return {}
        entry = source.pop()
        fields, steps = entry.fields, entry.steps
        if steps is not None and not fields:  # the act made the run longer
            assert state.trace is not None
            fields = {"trace": replace(state.trace.truncated(steps), self_check=SelfCheck())}
        now = {name: getattr(state, name) for name in fields}
        if steps is not None and target is self._undo:
            now = {}
        target.append(UndoEntry(entry.kind, now, float("-inf"), steps, entry.number))
        return fields
