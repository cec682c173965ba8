"""Changes of the user's that can be undone, and undoing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.session import transitions
from explorer.session.driver import Driver
from explorer.session.state import State
from explorer.session.store import Store
from explorer.session.undo_history import History, UndoEntry
from explorer.trace.request import RunRequest


class Edits:
    """Every change goes through here, so that the history knows what was there before."""

    def __init__(self, store: Store, history: History, driver: Driver) -> None:
        self._store = store
        self._history = history
        self._driver = driver

    def make(self, kind: str, changes: dict[str, Any], merge: bool = False) -> UndoEntry:
        """Change fields of the state; `merge` with the last change if that was the same gesture."""
        looked_back = "trace" in changes and self._store.state.looks_back
        kept = [name for name in changes if name != "selection" or looked_back]
        entry = self._history.push(kind, self._store.state, *kept, merge=merge)
        self._store.set(**changes, **self._history.shown)
        return entry

    def undo(self) -> None:
        """Take back the last act; a run whose prompt is still being read is only ended."""
        if self._driver.reading is not None and self._driver.reading is self._history.newest:
            self._driver.stop()
        else:
            self._restore(self._history.undo)

    def redo(self) -> None:
        self._restore(self._history.redo)

    def bound(self, old: State, new: State) -> None:
        """What can be undone holds old traces: within limits, and the state says how much."""
        if self._history.grown or new.branches.let_go != old.branches.let_go:
            held = self._history.within(branch.trace for branch in new.branches.all)
            if (held, self._history.can_undo) != (new.undo_bytes, new.can_undo):
                self._store.set(undo_bytes=held, **self._history.shown)

    def _restore(self, swap: Callable[[State], dict[str, Any]]) -> None:
        state = self._store.state
        changes = swap(state)
        if "request" in changes or "trace" in changes:
            self._driver.stop()
        if "request" in changes:
            changes["request"] = self._fitting(changes)
        if "trace" in changes:
            before = changes.get("selection")
            step = None if before is None else before.step
            changes["selection"] = replace(state.selection, step=step, query=None, key=None)
        self._store.set(**changes, **self._history.shown)
        self._driver.prompt.refresh()
        if "sampling" in changes:
            self._driver.resample()

    def _fitting(self, changes: dict[str, Any]) -> RunRequest:
        """The request to put back: that of its run, else for the model of now."""
        request: RunRequest = changes["request"]
        if "trace" not in changes:
            return transitions.with_model_of(request, self._store.state.request)
        if changes["trace"] is not None and changes["trace"].request == request:
            self._driver.keep_request()
            return request
        return transitions.with_model_of(request, self._driver.free_request())
