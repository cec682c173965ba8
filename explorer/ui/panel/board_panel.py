"""A panel that is a board of cells with a line of words; other pages can take the board's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.tokens.cell_board import CellBoard
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.panel.panel import Panel

if TYPE_CHECKING:
    from explorer.session.session import Session
    from explorer.ui.look.theme import Theme

At = tuple[int, int]  # row, column


class BoardPanel(Panel):
    """The words are the headline, or the cell that is read; a click on a cell goes to it."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.words = ResultLabel()
        self.board = CellBoard(theme)
        self.board.hovered.connect(self.read_out)
        self.board.picked.connect(self.go_to)
        self.pages = OneOf()
        self.content.setSpacing(3)

    def headline(self) -> str:
        """What the board says while no cell is read."""
        raise NotImplementedError

    def go_to(self, row: int, column: int) -> None:
        """Look at what a cell is of."""
        raise NotImplementedError

    def read_out(self, at: At | None) -> None:
        """The words of a cell, or the headline."""
        self.words.setText(self.headline() if at is None else self.board.figure.words(*at))
