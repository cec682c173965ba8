"""A chart along one axis: the mouse, or the arrow keys, go to a place and what it says is read."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.opaque import cover

_MOVES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class KeyboardReadout(QWidget):
    """A subclass paints `over`, and says how many places there are and which one is where."""

    hovered = Signal(str)  # what the place under the cursor says; "" when it is left

    def __init__(self, tip: Callable[[int], str], parent: QWidget | None = None) -> None:
        """`tip` words one place."""
        super().__init__(parent)
        self._tip = tip
        self._over: int | None = None
        describe(self)
        cover(self)
        self.setProperty(KEEPS_ARROWS, True)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def summary(self) -> str:
        """What a screen reader says before anything is looked at: how much there is."""
        if not self._count:
            return ""
        first = self._tip(0)
        return (
            first
            if self._count == 1
            else self.tr("{0} places; first: {1}").format(f"{self._count:,}", first)
        )

    @property
    def over(self) -> int | None:
        """The place under the mouse or the cursor, if any."""
        return self._over

    @property
    def _count(self) -> int:
        raise NotImplementedError

    def _place_at(self, x: float) -> int | None:
        raise NotImplementedError

    def _before(self, move: int) -> int:
        """The place that the first move starts from: one that it leads onto the chart."""
        return -move

    def _set_over(self, place: int | None, aloud: bool = False) -> None:
        if place != self._over:
            self._over = place
            words = "" if place is None else self._tip(place)
            say(self, words, aloud)
            self.hovered.emit(words)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_over(self._place_at(event.position().x()))

    def leaveEvent(self, event: QEvent) -> None:
        self._set_over(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None or not self._count:
            super().keyPressEvent(event)
            return
        start = self._over if self._over is not None else self._before(move)
        self._set_over(min(max(start + move, 0), self._count - 1), aloud=True)
