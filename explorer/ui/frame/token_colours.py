"""What the tokens of the run are coloured by: their origin, or how the model foresaw them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QWidget

from explorer.figures.prediction import surprisal as figures
from explorer.figures.prediction.surprisal import By, Surprisal
from explorer.figures.text.tokens import written
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import PromptScores, ScorePrompt
from explorer.trace.request import RunRequest
from explorer.ui.glossary.labels import stand_for
from explorer.ui.kit.boxes import line
from explorer.ui.kit.ramp import Ramp
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.wording import exact_percent

_BY: tuple[By, ...] = ("surprisal", "entropy", "probability")


class TokenColours(QWidget):
    """A choice, and the key to its colours; a prompt that is not scored yet is asked for."""

    changed = Signal()

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._asked: RunRequest | None = None  # the prompt that was asked for last
        self.box = ComboBox()
        self.box.addItems(
            [self.tr("origin"), self.tr("surprisal"), self.tr("entropy"), self.tr("probability")]
        )
        self.box.setAccessibleName(self.tr("Colour the tokens by"))
        self.box.setToolTip(
            self.tr(
                "Surprisal: -ln of the probability that the model gave to this token. "
                "Entropy: how uncertain the model was about it. Scoring the prompt "
                "takes one extra pass."
            )
        )
        stand_for(self.box, term="surprisal")
        self.box.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.box.currentIndexChanged.connect(self._on_chosen)
        label = QLabel(self.tr("Colour"))
        label.setProperty("look", "muted")
        label.setBuddy(self.box)
        self._low, self._high, self._ramp = QLabel(), QLabel(), Ramp()
        parts = (label, self.box, self._low, self._ramp, self._high)
        line(self, *parts, gap=4, edges=(8, 0, 0, 0))
        for end in (self._low, self._high):
            end.setProperty("look", "small")
        self._show_key()

    @property
    def by(self) -> By | None:
        """None = by origin."""
        index = self.box.currentIndex()
        return None if index <= 0 else _BY[index - 1]

    def _on_chosen(self) -> None:
        self._asked = None
        self._ask(self._session.state)
        self._show_key()
        self.changed.emit()

    def show_state(self, old: State | None, new: State) -> None:
        if changed(old, new, "trace"):
            self._show_key()
        why = "" if self._asked is None else new.refusal(ScorePrompt)
        if why and (old is None or old.refusal(ScorePrompt) != why):
            self._session.report(why)  # the colours were wished for
        self._ask(new)

    def _ask(self, state: State) -> None:
        """Score the prompt on screen, once, when nothing else that was asked for runs."""
        trace = state.trace
        free = state.model_is_free
        if self.by is None or trace is None or not trace.steps or not free:
            return
        known = state.result_of_prompt(PromptScores)
        if known is None and self._asked != trace.request and len(trace.prompt) > 1:
            self._asked = trace.request
            self._session.measure(ScorePrompt, quiet=True)

    def known(self, state: State) -> tuple[Surprisal | None, ...]:
        """What is known of each token on screen; empty where tokens are coloured by origin."""
        trace = state.trace
        if self.by is None or trace is None:
            return ()
        return figures.foreseen(trace, state.result_of_prompt(PromptScores))

    def levels(self, state: State, known: tuple[Surprisal | None, ...]) -> tuple[float | None, ...]:
        """0..1 a token."""
        by, trace = self.by, state.trace
        if by is None or trace is None:
            return ()
        return figures.levels(known, by, trace.card.vocab_size)

    def tip(self, state: State, slot: int, one: Surprisal | None) -> str:
        """One token in words; what is not known is said to be not known."""
        trace = state.trace
        assert trace is not None
        words = figures.in_words(trace, slot, one)
        return "; ".join(filter(None, [words, self._choices(state, one)]))

    def _choices(self, state: State, one: Surprisal | None) -> str:
        """What the model would have put there, where that travelled along and has a name."""
        if state.names is None or one is None or not one.top:
            return ""
        named = [
            f"{written(state.names.token(token_id))} {exact_percent(p)}"
            for token_id, p in one.top
            if 0 <= token_id < len(state.names)
        ]
        return self.tr("most likely tokens: {0}").format(", ".join(named))

    def _show_key(self) -> None:
        by, trace = self.by, self._session.state.trace
        for part in (self._low, self._ramp, self._high):
            part.setVisible(by is not None and trace is not None)
        if by is not None and trace is not None:
            low, high = figures.scale(by, trace.card.vocab_size)
            self._low.setText(low)
            self._high.setText(high)
