"""The choices of the drawing tool: what a stroke does, its shape, and in which heads."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QPushButton, QWidget

from explorer.figures.attention.strokes import MaskBrush, Reach, Shape
from explorer.trace.interventions.kinds import Effect
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox


class DrawBar(QWidget):
    """Seen while drawing is on; one line says what a stroke does, or has done."""

    changed = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.effect = self._chooser(self.tr("What a stroke does"), self._effects())
        self.shape = self._chooser(self.tr("Shape of a stroke"), self._shapes())
        self.reach = self._chooser(self.tr("In which heads"), self._reaches())
        self.done = QPushButton(self.tr("Done"))
        self.done.setToolTip(self.tr("Stop drawing (Esc). What you have drawn stays."))
        self.done.clicked.connect(self.left)
        self._line = SentenceLabel(look="small")
        # Two lines always: another sentence must not move the map under the mouse.
        self._line.setMinimumHeight(2 * self._line.fontMetrics().height())
        title = TermLabel(self.tr("Draw a mask"), term="intervention")
        title.setProperty("look", "title")
        row = Flow(first_grows=True)
        for part in (title, self.effect, self.shape, self.reach, self.done):
            row.addWidget(part)
        boxes.column(self, row, self._line, edges=(8, 5, 8, 5), gap=3)
        self.hide()

    @property
    def brush(self) -> MaskBrush:
        """What is chosen."""
        return MaskBrush(
            self.effect.currentData(), self.shape.currentData(), self.reach.currentData()
        )

    @property
    def line(self) -> str:
        """What is said."""
        return self._line.text()

    def say(self, sentence: str) -> None:
        """What a stroke would do or did; empty: how to draw."""
        self._line.setText(sentence or self._how())

    def choose(self, brush: MaskBrush) -> None:
        """Choose as the lists do."""
        for box, value in (
            (self.effect, brush.effect),
            (self.shape, brush.shape),
            (self.reach, brush.reach),
        ):
            box.setCurrentIndex(box.findData(value))

    def _how(self) -> str:
        return self.tr(
            "Drag over the map. By keys: arrows move, Shift+arrows draw, Enter ends a stroke. "
            "✕\u00a0cut, ○\u00a0allowed; in a box: from the next run on."
        )

    def _chooser(self, name: str, items: Sequence[tuple[str, str, str]]) -> QComboBox:
        box = ComboBox()
        box.setAccessibleName(name)
        box.setToolTip(name)
        for place, (words, value, tip) in enumerate(items):
            box.addItem(words, value)
            box.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        box.currentIndexChanged.connect(self.changed)
        return box

    def _effects(self) -> list[tuple[str, Effect, str]]:
        return [
            (self.tr("Cut"), "cut", self.tr("The query does not attend to the key")),
            (
                self.tr("Allow"),
                "allow",
                self.tr("The query attends to the key, even where the mask hides it"),
            ),
            (
                self.tr("Restore"),
                "restore",
                self.tr("The cell is as the model has it: undoes a cut or an allowed cell"),
            ),
        ]

    def _shapes(self) -> list[tuple[str, Shape, str]]:
        return [
            (self.tr("Cells"), "cells", self.tr("Each cell that the stroke passes")),
            (self.tr("Rectangle"), "rectangle", self.tr("From the first cell to the last")),
            (self.tr("Rows"), "rows", self.tr("Whole queries: all their keys")),
            (
                self.tr("Columns"),
                "columns",
                self.tr("Whole keys, for every query, also for tokens still to come"),
            ),
            (
                self.tr("Diagonals"),
                "diagonals",
                self.tr("Keys so far back, for every query, also for tokens still to come"),
            ),
            (
                self.tr("Beyond a window"),
                "outside",
                self.tr("Keys so far back or farther, for every query: a window is left"),
            ),
        ]

    def _reaches(self) -> list[tuple[str, Reach, str]]:
        return [
            (self.tr("This head"), "head", self.tr("The selected head alone")),
            (self.tr("This layer"), "layer", self.tr("All heads of the selected layer")),
            (self.tr("All layers"), "all", self.tr("All heads of all layers")),
        ]
