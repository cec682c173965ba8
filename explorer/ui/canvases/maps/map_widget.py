"""A map that is walked over: wheel and keys zoom, dragging moves, arrows move a cell cursor."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.drawing.map_viewport import CellView
from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.maps.map_labels import MapLabels
from explorer.ui.look.theme import Theme, unit

_ZOOM_STEP = 1.25
MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_PageUp: (-10, 0),
    Qt.Key.Key_PageDown: (10, 0),
}


class MapWidget(Canvas):
    """Rows and columns of cells behind a `CellView`; several widgets may share one view."""

    hovered = Signal(object)  # (query, key) or None
    picked = Signal(int, int)  # query, key
    viewMoved = Signal()  # zoomed or panned by the user
    menuAsked = Signal(int, int, QPoint)  # of query and key, at a point of the screen

    def __init__(
        self,
        theme: Theme,
        read: Callable[[int, int], str] | None = None,
        view: CellView | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """`read` puts one cell into words, for screen readers."""
        super().__init__(parent)
        describe(self)
        self.setProperty(KEEPS_ARROWS, True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._theme = theme
        self._signed = False
        self._note = ""
        self._names = MapLabels()
        self.view = view or CellView()
        self._read = read or (lambda query, key: f"{query} {key}")
        self.plot = QRectF()  # where the cells have room
        self._cursor: tuple[int, int] | None = None
        self._query: int | None = None
        self._key: int | None = None
        self._dragged: QPointF | None = None
        self._moved = False

    @property
    def current(self) -> tuple[int, int] | None:
        """The cell that the cursor is on."""
        return self._cursor

    @property
    def query(self) -> int | None:
        """The query whose row is marked."""
        return self._query

    def summary(self) -> str:
        """What a screen reader says before the cursor has moved: the marked cell."""
        start = self.start()
        return "" if start is None else self._read(*start)

    def start(self) -> tuple[int, int] | None:
        """Where the cursor is, or would begin; None without cells."""
        last = (self.view.rows - 1, self.view.columns - 1)
        if min(last) < 0:
            return None
        return self._cursor or (
            last[0] if self._query is None else min(self._query, last[0]),
            last[1] if self._key is None else min(self._key, last[1]),
        )

    def set_marks(self, query: int | None, key: int | None) -> None:
        """Mark the selected query's row, and the key that is looked at anywhere."""
        if (query, key) != (self._query, self._key):
            self._query, self._key = query, key
            self._marks_changed()

    def follow(self, cell: tuple[int, int] | None) -> None:
        """Show the cursor of a map beside this one, without telling anyone."""
        if cell != self._cursor:
            self._cursor = cell
            self._marks_changed()

    def _marks_changed(self) -> None:
        """Paint other marks on the same map."""
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.redraw()

    def redraw(self) -> None:
        """Paint everything again."""
        self.update()

    def _place(self) -> None:
        """Work out where the plot is in a widget of this size and font."""

    def go_to(self, query: int, key: int) -> None:
        """Bring a cell into view and put the cursor on it."""
        self.view.reveal(query, key)
        self.set_cursor((query, key), aloud=True)
        self._view_moved()

    def fit(self) -> None:
        """Show the whole map."""
        self.view.fit()
        self._view_moved()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom about a point of the widget, or about the cursor or the middle."""
        plot = self.plot
        if at is not None:
            x, y = at.x() - plot.left(), at.y() - plot.top()
        elif self._cursor is not None:
            x = self.view.x_of(self._cursor[1] + 0.5)
            y = self.view.y_of(self._cursor[0] + 0.5)
        else:
            x, y = self.view.drawn_width / 2, self.view.drawn_height / 2
        self.view.zoom(factor, x, y)
        self._view_moved()

    def _pan(self, dx: float, dy: float) -> None:
        self.view.pan(dx, dy)
        self._view_moved()

    def _view_moved(self) -> None:
        self.redraw()
        self.viewMoved.emit()

    def cell_at(self, point: QPointF, nearest: bool = False) -> tuple[int, int] | None:
        """The cell under a point of the widget, or the one in view that is nearest to it."""
        x, y = point.x() - self.plot.left(), point.y() - self.plot.top()
        if nearest:
            x = min(max(x, 0.0), self.view.drawn_width - 0.01)
            y = min(max(y, 0.0), self.view.drawn_height - 0.01)
        return self.view.cell_at(x, y)

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place()
        self.redraw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._place()
            self.redraw()
            self.updateGeometry()

    # -- mouse

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if self._dragged is not None:
            move = point - self._dragged
            if self._moved or move.manhattanLength() >= 4:
                self._moved = True
                self._dragged = point
                self._pan(move.x(), move.y())
            return
        self.set_cursor(self.cell_at(point))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged, self._moved = event.position(), False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        cell = self.cell_at(event.position())
        if not self._moved and self._dragged is not None and cell is not None:
            self.picked.emit(*cell)
        self._dragged = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.view.fitted:
            self.zoom(4.0, event.position())
        else:
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._pan(40 * steps * unit(self), 0)
        elif not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(_ZOOM_STEP**steps, event.position())
        else:
            event.ignore()  # Ctrl and wheel zoom the whole program
            return
        self.set_cursor(self.cell_at(event.position()))
        event.accept()

    def pointer_left(self) -> None:
        self.set_cursor(None)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By the mouse for the cell under it, by the keyboard for that of the cursor."""
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        cell = self.cell_at(QPointF(event.pos())) if by_mouse else self._cursor
        if cell is not None:
            self.menuAsked.emit(*cell, event.globalPos())

    # -- keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), (self.view.rows - 1, self.view.columns - 1)
        start = self.start()
        if start is None:
            super().keyPressEvent(event)
            return
        row, column = start
        whole = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if key in MOVES:
            if self._cursor is not None or whole:
                down, across = MOVES[key]
                row, column = row + down, column + across
        elif key == Qt.Key.Key_Home:
            row, column = (0, 0) if whole else (row, 0)
        elif key == Qt.Key.Key_End:
            row, column = last if whole else (row, last[1])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.picked.emit(row, column)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Minus):
            self.zoom(1 / _ZOOM_STEP if key == Qt.Key.Key_Minus else _ZOOM_STEP)
            return
        elif key == Qt.Key.Key_0:
            self.fit()
            return
        else:
            super().keyPressEvent(event)
            return
        self.go_to(min(max(row, 0), last[0]), min(max(column, 0), last[1]))

    def set_cursor(self, cell: tuple[int, int] | None, aloud: bool = False) -> None:
        """Look at a cell, as the mouse over it does; `aloud` also has it read."""
        if cell == self._cursor:
            return
        self._cursor = cell
        if cell is not None:
            say(self, self._read(*cell), aloud)
        self.hovered.emit(cell)
        self._marks_changed()
