"""Attention as arcs: one run, or three rows of arcs over one another that move together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout

from explorer.figures.attention.map_request import DrawnMaps
from explorer.figures.drawing.map_viewport import CellView
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.maps.arcs import ArcView
from explorer.ui.kit.elided import ElidedLabel, ResultLabel
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention import words
from explorer.ui.panels.attention.joined_maps import JoinedMaps


class ArcsPage(JoinedMaps):
    """Hovering a token isolates it in every row."""

    moved = Signal(object)  # token or None

    def __init__(self, theme: Theme, read: Callable[[int], str]) -> None:
        super().__init__()
        view = CellView()
        self.rows = [ArcView(theme, lambda _, token: read(token), view) for _ in range(3)]
        self.join(self.rows)
        self._titles = [ElidedLabel("") for _ in range(3)]
        self._line = ResultLabel(look="small")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        for title, row in zip(self._titles, self.rows, strict=True):
            title.setProperty("look", "small")
            column.addWidget(title)
            column.addWidget(row, 1)
            row.moved.connect(self.moved)
        column.addWidget(self._line)
        self._count = 0

    def show_drawn(
        self, drawn: DrawnMaps, labels: Sequence[Label], padding: Sequence[int], query: int
    ) -> None:
        """Show one row of arcs or three; nothing if none were asked for."""
        names = (*words.side_names(drawn.request.beside)[:2], self.tr("difference"))
        for title, name in zip(self._titles, names, strict=True):
            title.setText(name)
        if len(drawn.maps) != self._count:
            self._count = len(drawn.maps)
            for place, (title, row) in enumerate(zip(self._titles, self.rows, strict=True)):
                title.setVisible(self._count > 1)
                row.setVisible(place < self._count)
                row.patient = place > 0
        for row, found in zip(self.rows, drawn.maps, strict=False):
            if found is None:
                row.set_note(self.tr("not computed yet"))
            elif found.arcs is not None:
                top = found.top if found.row_tops is None else found.row_tops
                row.set_arcs(
                    found.map, found.arcs, labels, padding, top, found.signed, drawn.request.scale
                )
        self._say()

    def _say(self) -> None:
        left = max(row.left_out for row in self.rows[: self._count])
        ahead = self.tr(
            "Arcs above point to earlier tokens, below to later ones. Hover over a token "
            "to isolate it."
        )
        if left:
            words = self.tr("The 2,000 strongest arcs; {0} weaker ones are hidden.").format(
                f"{left:,}"
            )
            ahead = f"{words}; {ahead}"
        self._line.setText(ahead[:1].upper() + ahead[1:])

    def go_to(self, query: int, key: int) -> None:
        super().go_to(query, query)
