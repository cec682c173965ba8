"""A heading of one line that names a term of the glossary, and ends in … without room."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QStyle, QWidget

from explorer.ui.glossary.labels import Dotted
from explorer.ui.kit.elided import ElidedLabel


class TermElided(Dotted, ElidedLabel):
    """Dotted as far as its words are shown."""

    def __init__(self, term: str, look: str = "", parent: QWidget | None = None) -> None:
        super().__init__("", parent, look=look)
        self.set_term(term)

    def words_area(self) -> QRect:
        aligned = QStyle.visualAlignment(self.layoutDirection(), self.alignment())
        return self.style().itemTextRect(
            self.fontMetrics(), self.contentsRect(), int(aligned), True, self.shown
        )
