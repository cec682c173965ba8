"""The slider that scrubs through the steps of a run."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.step import Phase
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit.boxes import line
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.kit.wheel_guard import Slider
from explorer.ui.look.text_size import for_back_row


class Timeline(QWidget):
    """At its right end it stays with the latest step as steps arrive."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.slider = Slider()
        self.slider.setAccessibleName(self.tr("Selected token"))
        self.slider.setToolTip(self.tr("Drag to view an earlier token"))
        self.slider.setPageStep(1)
        self.slider.valueChanged.connect(self._select)
        self.label = ElidedLabel(look="muted")
        self.label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        # A layout gives what may be ignored no room beside what stretches, whatever its minimum.
        self.label.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Preferred)
        title = TermLabel(self.tr("Tokens"), term="token")
        title.setBuddy(self.slider)
        line(self, title, (self.slider, 1), self.label)
        self._last = 0
        self._fit()

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, "trace", "step_index"):
            return
        steps = 0 if new.trace is None else len(new.trace.steps)
        index = new.step_index
        blocked = self.slider.blockSignals(True)
        self.slider.setMaximum(max(steps - 1, 0))
        self.slider.setValue(index or 0)
        self.slider.blockSignals(blocked)
        self.slider.setEnabled(steps > 1)
        if new.trace is None or index is None:
            self.label.setText(self.tr("no token yet"))
            return
        self._last = steps - 1
        self._fit()
        self.label.setText(self._words(index, new.trace.steps[index].phase))

    def _words(self, index: int, phase: Phase) -> str:
        words = {
            "prefill": self.tr("Token {0} of {1} (reading the prompt)"),
            "decode": self.tr("Token {0} of {1}"),
            "recompute": self.tr("Token {0} of {1} (no cache)"),
        }["decode" if for_back_row() else phase]  # short, so that the slider has room
        return words.format(index + 1, self._last + 1)

    def _fit(self) -> None:
        """Room for the longest words there can be: a step that comes moves nothing."""
        advance = self.label.fontMetrics().horizontalAdvance
        words = [self._words(self._last, phase) for phase in ("prefill", "decode", "recompute")]
        wide = "".join("8" if c.isdigit() else c for c in max(words, key=advance))
        width = advance(wide) + 2
        if width != self.label.width():
            self.label.setFixedWidth(width)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _select(self, index: int) -> None:
        latest = index == self.slider.maximum()
        self._session.select(step=None if latest else index)
