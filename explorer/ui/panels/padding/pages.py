"""A page of the padding panel: what is found in a sentence, a grid of all rows, a note below."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.tokens.token_grid import TokenGrid
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import Theme


class GridPage(QWidget):
    """Its rows are those of one batch."""

    picked = Signal(int)  # row of the batch

    def __init__(self, theme: Theme, words_name: str, grid_name: str) -> None:
        super().__init__()
        self.words = SentenceLabel()
        self.words.setAccessibleDescription(words_name)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.grid = TokenGrid(theme)
        self.grid.setAccessibleName(grid_name)
        self.grid.picked.connect(self.picked)
        self.note = ResultLabel(look="small")
        self.column = boxes.column(
            self, self.words, (self.grid, 1), self.note, edges=(4, 4, 4, 0), gap=3
        )
