"""Holds the one State and tells listeners of every change, in order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.figures.text.characters import printable
from explorer.figures.text.sentences import fitting
from explorer.session.state import State
from explorer.trace.card import SelfCheck

_log = logging.getLogger("explorer")
_SENTENCES = {
    "error",
    "prompt_problem",
    "prompt_note",
    "library_problem",
    "recipe_problem",
    "model_plan_problem",
}

Listener = Callable[[State, State], None]


class Store:
    """The state and who wants to know of it; one thread only."""

    def __init__(self) -> None:
        self._state = State()
        self._listeners: list[Listener] = []
        self._told = self._state
        self._telling = False

    @property
    def state(self) -> State:
        return self._state

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """`listener(old, new)` after each change; call what comes back to unsubscribe."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def set(self, **changes: Any) -> None:
        """Change fields of the state; a trace brings its self-check along and joins the tree.

        Sentences are made to fit: they may quote whatever a file or a library holds.
        """
        for name in _SENTENCES & changes.keys():
            changes[name] = self._fitting(name, changes[name])
        if "status" in changes:
            status = changes["status"]
            changes["status"] = replace(status, text=fitting(status.text))
        if "trace" in changes:
            trace = changes["trace"]
            changes.setdefault("self_check", SelfCheck() if trace is None else trace.self_check)
            given_up = changes.get("forgotten", self._state.forgotten)
            branches = changes.get("branches", self._state.branches)
            changes["branches"] = branches.seen(trace, given_up=given_up)
            if changes["branches"].current in given_up:  # it is gone on with
                changes["forgotten"] = given_up - {changes["branches"].current}
        self._state = replace(self._state, **changes)
        self._tell()

    def _fitting(self, name: str, sentence: str) -> str:
        short, whole = fitting(sentence), printable(sentence)
        if short not in (whole, getattr(self._state, name)):
            _log.warning("%s, the whole text: %s", name, whole)
        return short

    def _tell(self) -> None:
        # A listener may change the state again: listeners hear of that change after this one.
        if self._telling:
            return
        self._telling = True
        try:
            while self._told is not self._state:
                old, self._told = self._told, self._state
                for listener in tuple(self._listeners):
                    listener(old, self._told)
        finally:
            self._telling = False
