"""What a panel asks the engine for by itself, while it is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QWidget

from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import Experiment

translate = QCoreApplication.translate
Question = tuple[type[Experiment], dict[str, Any]]


class Asking:
    """Asks once for each step and question, when nothing else runs, in a turn of its own.

    What was known and is no longer, because another answer took its place, is asked again.

    In the turn in which the engine becomes free, whoever took it may be about to ask.
    """

    def __init__(
        self, panel: QWidget, session: Session, find: Callable[[State], Question | None]
    ) -> None:
        """`find` says what of a state is not known yet, and settings; None = nothing is missing."""
        self._session, self._find = session, find
        self._asked: object = None
        self._turn = QTimer(panel)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._ask)

    def settled(self, state: State) -> bool:
        """True if nothing is under way, and what is missing was asked for: no answer will come."""
        question = self._find(state)
        return question is not None and state.model_is_free and self._asked == _key(state, question)

    def held_up(self, state: State) -> str:
        """Why nothing is asked for what is looked at now; empty if it is, or may be soon."""
        shown = state.shown
        if shown is None:
            return ""
        if not state.model_of_run:
            return ""  # in the panel's own words
        if state.status.released:
            return state.status.text
        if state.status.activity == "lost":
            return translate("Asking", "The engine has stopped. Restart it to continue.")
        if shown.trace.tokens[shown.query].origin == "padding":
            return padding_words(shown.query)
        return ""

    def later(self) -> None:
        """Look what is missing, soon."""
        self._turn.start(0)

    def _ask(self) -> None:
        state = self._session.state
        shown = state.shown
        if shown is None or not (state.model_is_free and state.model_of_run):
            return
        question = self._find(state)
        if question is None:
            self._asked = None
        if question is None or state.refusal(question[0]):
            return
        asked = _key(state, question)
        if asked != self._asked:
            self._asked = asked
            self._session.measure(question[0], quiet=True, **question[1])


def padding_words(slot: int) -> str:
    """Why there is nothing of a position."""
    return translate(
        "Asking", "Position {0} is padding and is not read. Select another token."
    ).format(slot)


def _key(state: State, question: Question) -> object:
    """What makes a question another one."""
    shown = state.shown
    if shown is None:
        return None
    trace = shown.trace
    return trace.card, trace.request, trace.chosen_ids[: shown.step], question
