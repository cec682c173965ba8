"""Strokes over the cells of maps, by the mouse and by keys, while drawing is on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.strokes import Cell, between
from explorer.ui.canvases.maps.map_widget import MOVES, MapWidget

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class Pencil(QObject):
    """Takes the left button and some keys of the maps it is given, as long as it is on.

    By keys: the arrows move, with Shift they draw on, Enter ends the stroke, Escape drops it.
    """

    moved = Signal(object)  # the path so far, cells in order; () = dropped
    drawn = Signal(object)  # the whole path
    left = Signal()  # Escape, where there is no stroke to drop

    def __init__(self, maps: Sequence[MapWidget], parent: QObject) -> None:
        super().__init__(parent)
        self.on = False
        self._maps = maps
        self._path: list[Cell] = []
        self._held = False  # the button is down
        for one in maps:
            one.installEventFilter(self)

    @property
    def path(self) -> tuple[Cell, ...]:
        """The stroke that is under way."""
        return tuple(self._path)

    def switch(self, on: bool) -> None:
        """Take strokes from now on, or leave the maps alone."""
        self.on = on
        self._drop()
        for one in self._maps:
            if on:
                one.setCursor(Qt.CursorShape.CrossCursor)
            else:
                one.unsetCursor()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not self.on or not isinstance(watched, MapWidget):
            return False
        if isinstance(event, QMouseEvent):
            return self._by_mouse(watched, event)
        if isinstance(event, QKeyEvent):
            if event.type() == QEvent.Type.ShortcutOverride and self._is_ours(event):
                event.accept()  # else it would act elsewhere in the window
                return True
            if event.type() == QEvent.Type.KeyPress:
                return self._by_key(watched, event)
        return False

    # -- the mouse

    def _by_mouse(self, one: MapWidget, event: QMouseEvent) -> bool:
        kind = event.type()
        pressed = (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonDblClick)
        if kind in pressed and event.button() == Qt.MouseButton.LeftButton:
            cell = one.cell_at(event.position())
            if cell is not None:
                self._held, self._path = True, [cell]
                self._tell(one)
            return True
        if kind == QEvent.Type.MouseMove and self._held:
            cell = one.cell_at(event.position(), nearest=True)
            if cell is not None and cell != self._path[-1]:
                self._path += between(self._path[-1], cell)
                self._tell(one)
            return True
        if kind == QEvent.Type.MouseButtonRelease and event.button() == Qt.MouseButton.LeftButton:
            if self._held:
                self._held = False
                self._end()
            return True
        return False

    # -- keys

    @staticmethod
    def _is_ours(event: QKeyEvent) -> bool:
        shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        key = Qt.Key(event.key())
        return (key in MOVES and shift) or key in _ENTER or key == Qt.Key.Key_Escape

    def _by_key(self, one: MapWidget, event: QKeyEvent) -> bool:
        key = Qt.Key(event.key())
        if key in MOVES:
            return self._by_arrow(one, key, bool(event.modifiers() & _SHIFT))
        if key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._drop()
            return False
        if key in _ENTER:
            start = one.start()
            if not self._path and start is not None:
                self._path = [start]
            self._end()
            return True
        if key == Qt.Key.Key_Escape:
            if self._path:
                self._drop()
            else:
                self.left.emit()
            return True
        return False

    def _by_arrow(self, one: MapWidget, key: Qt.Key, draws: bool) -> bool:
        """Drawing on; without Shift the cursor moves as ever, and a stroke is dropped."""
        start = one.start()
        if not draws or start is None:
            self._drop()
            return False
        if not self._path:
            self._path = [start]
        down, across = MOVES[key]
        last = one.view.rows - 1, one.view.columns - 1
        here = self._path[-1]
        there = (
            min(max(here[0] + down, 0), last[0]),
            min(max(here[1] + across, 0), last[1]),
        )
        self._path += between(here, there)
        one.go_to(*there)
        self._tell(one)
        return True

    # -- the stroke

    def _tell(self, one: QWidget) -> None:
        if isinstance(one, MapWidget):
            one.set_cursor(self._path[-1])
        self.moved.emit(self.path)

    def _end(self) -> None:
        path, self._path = self.path, []
        if path:
            self.drawn.emit(path)

    def _drop(self) -> None:
        self._held = False
        if self._path:
            self._path = []
            self.moved.emit(())


_SHIFT = Qt.KeyboardModifier.ShiftModifier
