"""What a run does about a full context: the policy, with its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel, QSizePolicy, QWidget

from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.interventions.context_policy import SINKS, ContextPolicy, PolicyName
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox, SpinBox

_MOST = 1_000_000
_WINDOW = 128  # tokens to begin with
_LIMIT = 512
_Choice = Literal["refuse", "limit", "drop-turns", "window", "sinks"]
_NAMES: dict[_Choice, str] = {
    "refuse": QT_TRANSLATE_NOOP("ContextControls", "Stop"),
    "limit": QT_TRANSLATE_NOOP("ContextControls", "Stop at a limit"),
    "drop-turns": QT_TRANSLATE_NOOP("ContextControls", "Drop turns"),
    "window": QT_TRANSLATE_NOOP("ContextControls", "Sliding window"),
    "sinks": QT_TRANSLATE_NOOP("ContextControls", "Sinks + window"),
}
_TIPS: dict[_Choice, str] = {
    "refuse": QT_TRANSLATE_NOOP(
        "ContextControls",
        "Stop: the run ends where the model's context does, and a longer prompt is refused.",
    ),
    "limit": QT_TRANSLATE_NOOP("ContextControls", "Stop at a limit: the same, at fewer tokens."),
    "drop-turns": QT_TRANSLATE_NOOP(
        "ContextControls",
        "Drop turns: a chat that is longer than the limit loses its oldest turns. The system turn "
        "and the last turn stay. While an answer is written, turns are dropped only with the KV "
        "cache on and without interventions, and not from a .gguf run by llama.cpp.",
    ),
    "window": QT_TRANSLATE_NOOP(
        "ContextControls",
        "Sliding window: each token attends to the last tokens only. Where the model allows it "
        "(Model panel), the cache keeps no others.",
    ),
    "sinks": QT_TRANSLATE_NOOP(
        "ContextControls",
        "Sinks + window: the first tokens stay in the cache, too. Most heads attend to them.",
    ),
}


class ContextControls(Wrapping):
    """The context policy of the next run."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = TermLabel(self.tr("Full context"), term="context-length")
        title.setProperty("look", "title")
        self.policy = ComboBox()
        self.policy.setAccessibleName(self.tr("When the context is full"))
        self.policy.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        shrinks = ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.policy.setSizeAdjustPolicy(shrinks)
        self.policy.setMinimumContentsLength(11)
        for name, words in _NAMES.items():
            self.policy.addItem(self.tr(words), name)
        self.policy.setToolTip("\n".join(self.tr(words) for words in _TIPS.values()))
        self.policy.activated.connect(lambda _: self._choose(self.policy.currentData()))
        title.setBuddy(self.policy)
        self.tokens = self._spin(lambda value: self._request(tokens=value))
        self.sinks = self._spin(lambda value: self._request(sinks=value))
        self.sinks.setAccessibleName(self.tr("Sinks: first tokens that are kept"))
        self.sinks.setToolTip(self.sinks.accessibleName())
        self._tokens_label, self._sinks_label = QLabel(), QLabel(self.tr("sinks"))
        self._tokens_label.setBuddy(self.tokens)
        self._sinks_label.setBuddy(self.sinks)
        self.distances = QCheckBox(self.tr("Distances counted in the cache"))
        self.distances.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.distances.clicked.connect(
            lambda on: self._request(distances="cache" if on else "text")
        )
        self._numbers = QWidget()
        parts = (self._tokens_label, (self.tokens, 1), self._sinks_label, (self.sinks, 1))
        boxes.line(self._numbers, *parts, gap=5)
        top = boxes.line(None, (title, 1), self.policy)
        boxes.column(self, top, self._numbers, self.distances, edges=(10, 6, 10, 8), gap=4)

    def _spin(self, act: Callable[[int], None]) -> SpinBox:
        spin = SpinBox()
        spin.setKeyboardTracking(False)
        spin.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        spin.valueChanged.connect(act)
        return spin

    def show_state(self, old: State | None, new: State) -> None:
        if changed(old, new, "next_card"):
            self._show_offer(new)
        if not changed(old, new, "request"):
            return
        policy = new.request.context
        choice = _choice_of(policy)
        self.policy.setCurrentIndex(self.policy.findData(choice))
        with_sinks = choice == "sinks"
        kept = self.tr("Tokens that are kept, sinks included")
        limit = self.tr("Most tokens of a run")
        if choice == "drop-turns":
            limit = self.tr("Most tokens of a run. 0: the model's context.")
        words = kept if policy.keeps_last else limit
        self.tokens.setAccessibleName(words)
        self.tokens.setToolTip(words)
        self._tokens_label.setText(self.tr("kept") if policy.keeps_last else self.tr("limit"))
        self.tokens.setSpecialValueText(self.tr("the model's") if choice == "drop-turns" else "")
        least = policy.sinks + policy.keeps_last if policy.keeps_last else choice == "limit"
        most = max(_MOST, policy.tokens)
        self._show_number(self.tokens, int(least), most, policy.tokens)
        sinks = max(1, policy.tokens - 1) if with_sinks else policy.sinks
        self._show_number(self.sinks, int(with_sinks), sinks, policy.sinks)
        self.distances.setChecked(policy.distances == "cache")
        self._numbers.setVisible(choice != "refuse")
        for widget in (self._sinks_label, self.sinks, self.distances):
            widget.setVisible(with_sinks)

    def _show_number(self, spin: SpinBox, least: int, most: int, value: int) -> None:
        blocked = spin.blockSignals(True)
        spin.setRange(least, most)
        spin.setValue(value)
        spin.blockSignals(blocked)

    def _show_offer(self, state: State) -> None:
        """Whether the model allows distances to be counted in the cache, and what that means."""
        card = state.next_card
        offered = card is None or card.offers("sink_distances")
        self.distances.setEnabled(offered or state.request.context.moves_sinks)
        words = self.tr(
            "The first tokens stay as near as the cache is long, and the run may go on past the "
            "model's context. Off: distances are those of the text."
        )
        if card is not None and not offered:
            words = self.tr("Not offered for this model: {0}.").format(card.words("sink_distances"))
        self.distances.setToolTip(words)

    def _choose(self, choice: _Choice) -> None:
        before = self._session.state.request.context
        if choice == _choice_of(before):
            return
        name: PolicyName = "refuse" if choice == "limit" else choice
        tokens = _LIMIT if choice == "limit" else 0
        if choice in ("window", "sinks"):
            tokens = max(2, before.tokens) if before.keeps_last else _WINDOW
        sinks = min(SINKS, tokens - 1) if choice == "sinks" else 0
        self._session.set_context(ContextPolicy(name=name, tokens=tokens, sinks=sinks))

    def _request(self, **changes: object) -> None:
        now = self._session.state.request.context
        self._session.set_context(msgspec.structs.replace(now, **changes))


def _choice_of(policy: ContextPolicy) -> _Choice:
    return "limit" if policy.name == "refuse" and policy.tokens else policy.name
