"""What a run does about a full context: the policy, with its numbers."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QSizePolicy, QWidget

from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.interventions.context_policy import SINKS, ContextPolicy, PolicyName
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox, SpinBox

_MOST = 1_000_000
_WINDOW = 128  # tokens to begin with
_NAMES: dict[PolicyName, str] = {
    "refuse": QT_TRANSLATE_NOOP("ContextControls", "Stop"),
    "drop-turns": QT_TRANSLATE_NOOP("ContextControls", "Drop oldest turns"),
    "window": QT_TRANSLATE_NOOP("ContextControls", "Sliding window"),
    "sinks": QT_TRANSLATE_NOOP("ContextControls", "Sinks + window"),
}
_TIPS: dict[PolicyName, str] = {
    "refuse": QT_TRANSLATE_NOOP(
        "ContextControls", "Stop: the run ends at the limit, and a longer prompt is refused."
    ),
    "drop-turns": QT_TRANSLATE_NOOP(
        "ContextControls",
        "Drop oldest turns: a chat that is longer than the limit loses its oldest turns. The "
        "system turn and the last turn stay.",
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
        self.policy.setMinimumContentsLength(8)
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
        grid = QGridLayout(self)
        grid.setContentsMargins(10, 6, 10, 8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)
        grid.addWidget(title, 0, 0, 1, 2)
        grid.addWidget(self.policy, 0, 2, 1, 2)
        grid.addWidget(self._tokens_label, 1, 0)
        grid.addWidget(self.tokens, 1, 1)
        grid.addWidget(self._sinks_label, 1, 2)
        grid.addWidget(self.sinks, 1, 3)
        grid.addWidget(self.distances, 2, 0, 1, 4)

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
        self.policy.setCurrentIndex(self.policy.findData(policy.name))
        with_sinks, least = policy.name == "sinks", int(policy.keeps_last)
        kept = self.tr("Tokens that are kept, sinks included")
        limit = self.tr("Most tokens of a run. 0: the model's context.")
        words = kept if policy.keeps_last else limit
        self.tokens.setAccessibleName(words)
        self.tokens.setToolTip(words)
        self._tokens_label.setText(self.tr("kept") if policy.keeps_last else self.tr("limit"))
        self.tokens.setSpecialValueText("" if policy.keeps_last else self.tr("the model's"))
        for spin, first, value in (
            (self.tokens, policy.sinks + least, policy.tokens),
            (self.sinks, int(with_sinks), policy.sinks),
        ):
            blocked = spin.blockSignals(True)
            spin.setRange(first, max(_MOST, value))
            spin.setValue(value)
            spin.blockSignals(blocked)
        if with_sinks:
            blocked = self.sinks.blockSignals(True)
            self.sinks.setMaximum(max(1, policy.tokens - 1))
            self.sinks.blockSignals(blocked)
        self.distances.setChecked(policy.distances == "cache")
        for widget in (self._sinks_label, self.sinks, self.distances):
            widget.setVisible(with_sinks)

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

    def _choose(self, name: PolicyName) -> None:
        before = self._session.state.request.context
        if name == before.name:
            return
        keeps = name in ("window", "sinks")
        tokens = (before.tokens if before.keeps_last else _WINDOW) if keeps else 0
        sinks = min(SINKS, tokens - 1) if name == "sinks" else 0
        if name == "sinks" and tokens < 2:
            tokens, sinks = 2, 1
        self._session.set_context(ContextPolicy(name=name, tokens=tokens, sinks=sinks))

    def _request(self, **changes: object) -> None:
        now = self._session.state.request.context
        self._session.set_context(msgspec.structs.replace(now, **changes))
