"""The views of the attention panel: one is seen, all share cursor, marks and theme."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent

from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention.arcs_page import ArcsPage
from explorer.ui.panels.attention.maps_page import MapsPage
from explorer.ui.panels.attention.row_page import RowPage


class Pages(OneOf):
    """Map, arcs and row, or a sentence in their place; draws only what is seen."""

    grew = Signal()  # it has another height

    def __init__(
        self,
        theme: Theme,
        cell: Callable[[int, int], str],
        token: Callable[[int], str],
        key: Callable[[int], str],
    ) -> None:
        """The three put a cell, a token's row and a key of the selected row into words."""
        super().__init__()
        self.maps = MapsPage(theme, cell)
        self.arcs = ArcsPage(theme, token)
        self.row = RowPage(theme, key)
        self.reason = SentenceLabel(look="muted")
        self.reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.by_view: Mapping[str, MapsPage | ArcsPage | RowPage] = {
            "maps": self.maps,
            "arcs": self.arcs,
            "row": self.row,
        }
        for page in (*self.by_view.values(), self.reason):
            self.addWidget(page)

    def turn_to(self, view: str) -> MapsPage | ArcsPage | RowPage:
        """Show the view of this name; the page to draw in."""
        page = self.by_view[view]
        self.setCurrentWidget(page)
        return page

    def show_reason(self, sentence: str) -> None:
        """Say why there is nothing to draw."""
        self.reason.setText(sentence)
        self.setCurrentWidget(self.reason)

    def set_note(self, sentence: str) -> None:
        """Say why one side of a comparison is missing."""
        for page in (self.maps, self.arcs):
            page.set_note(sentence)

    def set_marks(self, query: int | None, key: int | None) -> None:
        for page in (self.maps, self.arcs):
            page.set_marks(query, key)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().height() != event.oldSize().height():
            self.grew.emit()

    def filled_width(self) -> int | None:
        """The width that one map fills at this height; None where any width is filled."""
        if self.currentWidget() is not self.maps or self.maps.beside:
            return None
        return self.maps.maps[0].filled_width(self.height())

    def take_focus(self) -> None:
        """The keys act on what is seen."""
        if self.currentWidget() is self.row:
            self.row.bars_shown.setFocus()
        else:
            self.walked.take_focus()

    @property
    def walked(self) -> MapsPage | ArcsPage:
        """Where zooming and going to a token take place."""
        return self.arcs if self.currentWidget() is self.arcs else self.maps
