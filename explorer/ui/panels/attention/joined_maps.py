"""One canvas, or three of a comparison, that share zoom, place and cursor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.maps.arcs import ArcView
from explorer.ui.canvases.maps.heatmap import Heatmap

Canvas = Heatmap | ArcView


class JoinedMaps(QWidget):
    """A page of them; a subclass makes its canvases and hands them to `join`."""

    hovered = Signal(object)  # (query, key) or None
    picked = Signal(int, int)
    menuAsked = Signal(int, int, QPoint)

    def join(self, canvases: Sequence[Canvas]) -> None:
        """From now on each follows the others."""
        self._joined = canvases
        self._count = 1  # how many are shown
        for one in canvases:
            one.hovered.connect(partial(self._on_hovered, one))
            one.picked.connect(self.picked)
            one.menuAsked.connect(self.menuAsked)
            one.viewMoved.connect(partial(self._on_moved, one))

    def set_note(self, sentence: str) -> None:
        """Why maps of this comparison are missing."""
        for one in self._joined[: self._count]:
            if not one.has_map:
                one.set_note(sentence)

    def set_marks(self, query: int | None, key: int | None) -> None:
        for one in self._joined:
            one.set_marks(query, key)

    def go_to(self, query: int, key: int) -> None:
        """Bring a cell into view and put the cursor on it."""
        self._joined[0].go_to(query, key)

    def zoom(self, factor: float) -> None:
        """Larger or smaller; 0 = everything in view."""
        if factor:
            self._joined[0].zoom(factor)
        else:
            self._joined[0].fit()

    def take_focus(self) -> None:
        self._joined[0].setFocus()

    def _on_hovered(self, this: Canvas, cell: tuple[int, int] | None) -> None:
        for one in self._joined:
            if one is not this:
                one.follow(cell)
        self.hovered.emit(cell)

    def _on_moved(self, this: Canvas) -> None:
        for one in self._joined:
            if one is not this and one.isVisible():
                one.redraw()
