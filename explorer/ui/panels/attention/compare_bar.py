"""The line of a comparison: which one is shown, and what it means."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.map_request import Beside
from explorer.trace.trace import Trace
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.panels.attention import words


class CompareBar(QWidget):
    """A choice between a real run and the same scores, and one line that says which it is."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = ComboBox()
        self.choice.setAccessibleName(self.tr("What the masked run is compared with"))
        for place, (name, value, tip) in enumerate(
            (
                (
                    self.tr("Real run"),
                    "run",
                    self.tr("Runs the model again without the mask"),
                ),
                (
                    self.tr("Same scores"),
                    "scores",
                    self.tr("Removes the mask from the scores of this run. Nothing runs again."),
                ),
            )
        ):
            self.choice.addItem(name, value)
            self.choice.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        self.choice.currentIndexChanged.connect(self.changed)
        self._line = SentenceLabel(look="small")
        # Two lines always: another sentence must not move the maps.
        self._line.setMinimumHeight(2 * self._line.fontMetrics().height())
        boxes.line(self, self.choice, (self._line, 1), gap=6)

    @property
    def beside(self) -> Beside:
        """Which comparison is chosen."""
        chosen: Beside = self.choice.currentData()
        return chosen

    def show_trace(self, trace: Trace, layer: int, waiting: str) -> None:
        """Say what is shown; `waiting` comes first while the other run is not there."""
        said = words.comparison(self.beside, trace, layer)
        if waiting and self.beside == "run":
            said = waiting
        self._line.setText(said)

    @property
    def line(self) -> str:
        """What is said."""
        return self._line.text()
