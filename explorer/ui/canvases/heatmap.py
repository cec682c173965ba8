"""One attention map: a row per query, a column per key, tokens along both sides.

Wheel and keys zoom, dragging moves, the arrows walk a cell cursor.  The widget shows levels that
were worked out elsewhere and reports which cell is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPaintEngine,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.tokens import Label
from explorer.ui.canvases.accessible import describe, say
from explorer.ui.canvases.cell_view import CellView, Pooled
from explorer.ui.canvases.colour_key import key_width, paint_key
from explorer.ui.canvases.indexed import colour_table, masked_brush, padding_brush, picture
from explorer.ui.canvases.map_labels import Axis, MapLabels, runs
from explorer.ui.keys import KEEPS_ARROWS
from explorer.ui.theme import Theme, unit

_GRID_FROM = 9  # pixels per cell from which cells are set apart
_ZOOM_STEP = 1.25
_KEY_GAP = 12  # pixels between map and key
_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_PageUp: (-10, 0),
    Qt.Key.Key_PageDown: (10, 0),
}


class Heatmap(QWidget):
    """Rows and columns are slots, both beginning at slot 0."""

    hovered = Signal(object)  # (query, key) or None
    picked = Signal(int, int)  # query, key

    def __init__(
        self,
        theme: Theme,
        read: Callable[[int, int], str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """`read` puts one cell into words, for screen readers."""
        super().__init__(parent)
        describe(self)
        self.setAccessibleName(self.tr("Attention map"))
        self.setProperty(KEEPS_ARROWS, True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.view = CellView()
        self._theme = theme
        self._read = read or (lambda query, key: f"{query} {key}")
        self._levels = np.zeros((0, 0), np.uint8)
        self._pooled: Pooled | None = None
        self._names = MapLabels()
        self._padding: list[tuple[int, int]] = []
        self._colours = "viridis"
        self._cursor: tuple[int, int] | None = None
        self._query: int | None = None
        self._key: int | None = None
        self._dragged: QPointF | None = None
        self._moved = False
        self._still: QPixmap | None = None  # everything but the marks
        self._top = "100 %"
        self._place()

    # -- what is shown

    def set_map(
        self,
        levels: np.ndarray,
        labels: Sequence[Label],
        padding: Sequence[int] = (),
        top: str = "100 %",
        pooled: Pooled | None = None,
    ) -> None:
        """Draw (R, K) uint8 levels; `padding` names the slots that hold padding tokens.

        `top` is what the brightest colour stands for; `pooled` a smaller copy of a huge map.
        """
        self._levels, self._top, self._pooled = levels, top, pooled
        self._padding = runs(padding)
        self._names.set_labels(labels, self._padding)
        self.view.set_cells(*levels.shape)
        self._place()
        if self._cursor and not (
            self._cursor[0] < levels.shape[0] and self._cursor[1] < levels.shape[1]
        ):
            self._set_cursor(None)
        self._redraw()

    def set_marks(self, query: int | None, key: int | None) -> None:
        """Mark the selected query's row, and the key that is looked at anywhere."""
        if (query, key) != (self._query, self._key):
            self._query, self._key = query, key
            self.update()

    def set_colours(self, name: str) -> None:
        """Another colour map."""
        self._colours = name
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw()

    def go_to(self, query: int, key: int) -> None:
        """Bring a cell into view and put the cursor on it."""
        self.view.reveal(query, key)
        self._set_cursor((query, key), aloud=True)
        self._redraw()

    def fit(self) -> None:
        """Show the whole map."""
        self.view.fit()
        self._redraw()

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Zoom about a point of the widget, or about the cursor or the middle."""
        plot = self._plot
        if at is not None:
            x, y = at.x() - plot.left(), at.y() - plot.top()
        elif self._cursor is not None:
            x = self.view.x_of(self._cursor[1] + 0.5)
            y = self.view.y_of(self._cursor[0] + 0.5)
        else:
            x, y = self.view.drawn_width / 2, self.view.drawn_height / 2
        self.view.zoom(factor, x, y)
        self._redraw()

    # -- geometry

    def sizeHint(self) -> QSize:
        return QSize(round(460 * unit(self)), round(420 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(160 * unit(self)), round(140 * unit(self)))

    def _place(self) -> None:
        """Leave room for the labels and the key, and give the rest to the map."""
        u = unit(self)
        metrics = self._names.set_font(self.font(), u)
        room = round(min(self._names.room(self.view), 0.3 * min(self.width(), self.height())))
        key = round(key_width(metrics) + _KEY_GAP * u)
        self._key_room = key if self.width() >= 4.5 * key else 0
        width, height = self.width() - room - self._key_room - 4, self.height() - room - 3
        self._plot = QRectF(room, room, max(width, 1), max(height, 1))
        self.view.set_size(self._plot.width(), self._plot.height(), 56 * u)

    def _cell(self, point: QPointF) -> tuple[int, int] | None:
        return self.view.cell_at(point.x() - self._plot.left(), point.y() - self._plot.top())

    def _cell_rect(self, query: int, key: int) -> QRectF:
        size = self.view.scale
        corner = self._plot.topLeft() + QPointF(self.view.x_of(key), self.view.y_of(query))
        return QRectF(corner, QPointF(corner.x() + size, corner.y() + size))

    def _drawn(self) -> QRectF:
        return QRectF(
            self._plot.left(), self._plot.top(), self.view.drawn_width, self.view.drawn_height
        )

    # -- painting

    def _redraw(self) -> None:
        self._still = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if not self._levels.size:
            return
        ratio = self.devicePixelRatioF()
        scale = painter.deviceTransform().m11()
        if painter.paintEngine().type() == QPaintEngine.Type.SVG or abs(scale - ratio) > 1e-3:
            # Not on this screen: a picture for a document is drawn for its own resolution.
            self._paint_still(painter, max(scale, 2.0))
        else:
            if self._still is None:
                self._still = QPixmap(self.size() * ratio)
                self._still.setDevicePixelRatio(ratio)
                self._still.fill(Qt.GlobalColor.transparent)
                inner = QPainter(self._still)
                self._paint_still(inner, ratio)
                inner.end()
            painter.drawPixmap(0, 0, self._still)
        self._paint_marks(painter)

    def _paint_still(self, painter: QPainter, ratio: float) -> None:
        theme, drawn = self._theme, self._drawn()
        painter.fillRect(drawn, masked_brush(theme, ratio))
        table = colour_table(theme, self._colours, masked_clear=True)
        image = picture(self.view.pixels(self._levels, ratio, self._pooled), table)
        image.setDevicePixelRatio(ratio)
        painter.drawImage(drawn.topLeft(), image)  # a pixel to a pixel: nothing is smoothed
        if self.view.scale >= _GRID_FROM:
            self._paint_grid(painter, drawn)
        self._paint_padding(painter, drawn)
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(drawn.adjusted(-0.5, -0.5, 0.5, 0.5))
        self._names.paint(painter, self.view, self._plot, theme, self.tr("keys →\nqueries ↓"))
        if self._key_room:
            left = drawn.right() + _KEY_GAP * unit(self)
            paint_key(
                painter,
                QRectF(left, drawn.top(), self._key_room, self._plot.height()),
                theme,
                self._colours,
                self._top,
                bool(self._padding),
            )

    def _paint_grid(self, painter: QPainter, drawn: QRectF) -> None:
        painter.setPen(QPen(QColor(self._theme.card), 1))
        view = self.view
        for row in range(int(view.top) + 1, view.rows):
            y = round(drawn.top() + view.y_of(row))
            if y >= drawn.bottom():
                break
            painter.drawLine(QPointF(drawn.left(), y), QPointF(drawn.right(), y))
        for column in range(int(view.left) + 1, view.columns):
            x = round(drawn.left() + view.x_of(column))
            if x >= drawn.right():
                break
            painter.drawLine(QPointF(x, drawn.top()), QPointF(x, drawn.bottom()))

    def _paint_padding(self, painter: QPainter, drawn: QRectF) -> None:
        brush = padding_brush(self._theme)
        for first, last in self._padding:
            x0, x1 = self.view.x_of(first), self.view.x_of(last + 1)
            y0, y1 = self.view.y_of(first), self.view.y_of(last + 1)
            columns = QRectF(drawn.left() + x0, drawn.top(), x1 - x0, drawn.height())
            rows = QRectF(drawn.left(), drawn.top() + y0, drawn.width(), y1 - y0)
            painter.fillRect(columns & drawn, brush)
            painter.fillRect(rows & drawn, brush)

    def _paint_marks(self, painter: QPainter) -> None:
        drawn, names = self._drawn(), self._names
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        query, key, cursor = self._query, self._key, self._cursor
        if cursor is not None:
            key = cursor[1]
        marks: list[tuple[Axis, int, str]] = []
        if query is not None and query < self.view.rows:
            band = self._cell_rect(query, 0)
            band.setLeft(drawn.left())
            band.setRight(drawn.right())
            self._paint_frame(painter, band)
            marks.append(("query", query, "accent"))
            if cursor is None and key is not None and key < self.view.columns:
                self._paint_frame(painter, self._cell_rect(query, key))
        if cursor is not None:
            self._paint_frame(painter, self._cell_rect(*cursor))
            if cursor[0] != query:
                marks.append(("query", cursor[0], "selection"))
        if key is not None and key < self.view.columns:
            marks.append(("key", key, "selection"))
        for axis, slot, mark in marks:
            names.paint_one(painter, self.view, self._plot, self._theme, axis, slot, mark)

    def _paint_frame(self, painter: QPainter, rect: QRectF) -> None:
        """Two lines, light in dark, so that they show on any colour; never thinner than a mark."""
        least = 3.0
        wider, taller = max(0.0, least - rect.width()) / 2, max(0.0, least - rect.height()) / 2
        frame = rect.adjusted(-wider - 1.5, -taller - 1.5, wider + 1.5, taller + 1.5)
        frame &= self._drawn().adjusted(-2, -2, 2, 2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.cursor_halo), 3))
        painter.drawRect(frame)
        painter.setPen(QPen(QColor(self._theme.cursor), 1))
        painter.drawRect(frame)

    # -- mouse

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if self._dragged is not None:
            move = point - self._dragged
            if self._moved or move.manhattanLength() >= 4:
                self._moved = True
                self._dragged = point
                self.view.pan(move.x(), move.y())
                self._redraw()
            return
        self._set_cursor(self._cell(point))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged, self._moved = event.position(), False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        cell = self._cell(event.position())
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
            self.view.pan(40 * steps * unit(self), 0)
            self._redraw()
        elif not event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(_ZOOM_STEP**steps, event.position())
        else:
            event.ignore()  # Ctrl and wheel zoom the whole program
            return
        self._set_cursor(self._cell(event.position()))
        event.accept()

    def leaveEvent(self, event: QEvent) -> None:
        self._set_cursor(None)

    # -- keys

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), (self.view.rows - 1, self.view.columns - 1)
        if min(last) < 0:
            super().keyPressEvent(event)
            return
        row, column = self._cursor or (
            last[0] if self._query is None else min(self._query, last[0]),
            last[1] if self._key is None else min(self._key, last[1]),
        )
        whole = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if key in _MOVES:
            if self._cursor is not None or whole:
                down, across = _MOVES[key]
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

    def _set_cursor(self, cell: tuple[int, int] | None, aloud: bool = False) -> None:
        if cell == self._cursor:
            return
        self._cursor = cell
        if cell is not None:
            say(self, self._read(*cell), aloud)
        self.hovered.emit(cell)
        self.update()

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._place()
        self._redraw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._place()
            self._redraw()
            self.updateGeometry()
