"""The stages of a block from top to bottom: a name, a strip of its numbers, shape and norm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFontMetricsF,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.drawing.colormaps import difference, lut
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import ScrollCanvas, Terms
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_HIGH, _STREAM, _GAP = 23, 16, 8  # pixels at a zoom of 1: of a row, to its name, between columns
_MOST = 262  # pixels of width at most that it must have
_STRIP, _SHAPE_FROM = 44, 110  # pixels: the least strip, and the one that shapes give way to
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_COLOURS = {"stream": "accent", "attention": "prefill", "mlp": "decode", "other": "rest"}


@dataclass(frozen=True, slots=True, eq=False)
class StageRow:
    """What a row shows."""

    title: str
    term: str  # of the glossary; "" = none
    group: str  # stream, attention, mlp or other
    shape: str
    norm: str
    strip: np.ndarray  # (n,) float32; -inf where hidden; empty = too many to send
    top: float  # the number of the strongest colour
    share: bool  # 0 to 1 instead of -top to top
    told: str  # for tips and screen readers


class StageList(ScrollCanvas):
    """A click, Enter, or ↑ and ↓ choose a stage; the mouse over one has it explained."""

    picked = Signal(int)  # row

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.List)
        self._theme = theme
        self._rows: Sequence[StageRow] = ()
        self._chosen = 0
        self._over: int | None = None
        self._strips: dict[tuple[int, str], QImage] = {}
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_rows(self, rows: Sequence[StageRow], chosen: int) -> None:
        """Draw other stages, one of them chosen."""
        self._rows, self._chosen = rows, chosen
        self._strips = {}
        self.updateGeometry()
        if self._over is not None and self._over >= len(rows):
            self._over = None
        self._lay_out()
        self.scroll_to(self.rect_of(chosen))

    @property
    def rows(self) -> Sequence[StageRow]:
        """What is drawn."""
        return self._rows

    @property
    def chosen(self) -> int:
        """The row that is enlarged."""
        return self._chosen

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._strips = {}
        self._lay_out()

    # -- geometry

    @property
    def _high(self) -> float:
        return max(_HIGH * unit(self), QFontMetricsF(self.font()).height() + 4)

    def rect_of(self, row: int) -> QRectF:
        """A row, in the viewport."""
        top = row * self._high - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), self._high)

    def _columns(self) -> tuple[float, float, float, float]:
        """Left of names, strips, shapes and norms; the last two are as wide as their words."""
        u, width = unit(self), self.viewport().width()
        names, shapes, norms = self._widest()
        name, gap = _STREAM * u, _GAP * u
        norm = width - norms - gap / 2
        most = norm - 2 * gap - _STRIP * u - name
        strip = name + min(names + 4, max(most, 0.0)) + gap
        shape = norm - shapes - gap
        if shape - strip < _SHAPE_FROM * u:  # no room for shapes
            shape = norm
        return name, strip, shape, norm

    def _widest(self) -> tuple[float, float, float]:
        """Pixels of the longest name, shape and norm."""
        text, small = QFontMetricsF(self.font()), QFontMetricsF(small_font(self))
        return (
            max((text.horizontalAdvance(row.title) for row in self._rows), default=0.0),
            max((small.horizontalAdvance(row.shape) for row in self._rows), default=0.0),
            max((small.horizontalAdvance(row.norm) for row in self._rows), default=0.0),
        )

    def _lay_out(self) -> None:
        self.set_extent(len(self._rows) * self._high, self._high)
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(self._needed, round(160 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(min(self._needed, round(_MOST * unit(self))), round(70 * unit(self)))

    @property
    def _needed(self) -> int:
        """Pixels of width for whole names, the least strip, and norms."""
        u = unit(self)
        names, _, norms = self._widest()
        bar = self.verticalScrollBar().sizeHint().width()
        return round((_STREAM + 2.5 * _GAP + _STRIP) * u + names + norms + bar + 6)

    def _in_view(self) -> Iterator[tuple[int, QRectF]]:
        for row in range(len(self._rows)):
            rect = self.rect_of(row)
            if rect.bottom() > 0 and rect.top() < self.viewport().height():
                yield row, rect

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self.viewport())
        fill(painter, event.rect(), self._theme)
        if not self._rows:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ends = self.rect_of(0).center().y(), self.rect_of(len(self._rows) - 1).center().y()
        x, columns = _STREAM / 2 * unit(self), self._columns()
        for row, rect in self._in_view():
            self._paint_back(painter, row, rect)
        painter.setPen(QPen(QColor(self._theme.accent), 2 * unit(self)))
        painter.drawLine(QLineF(x, ends[0], x, ends[1]))
        for row, rect in self._in_view():
            self._paint_row(painter, row, rect, columns)

    def _paint_back(self, painter: QPainter, row: int, rect: QRectF) -> None:
        theme = self._theme
        if row == self._chosen:
            painter.fillRect(rect, QColor(theme.selection))
        elif row == self._over:
            painter.fillRect(rect, QColor(theme.hover))

    def _paint_row(
        self, painter: QPainter, row: int, rect: QRectF, columns: tuple[float, float, float, float]
    ) -> None:
        one, theme, u = self._rows[row], self._theme, unit(self)
        name, strip, shape, norm = columns
        chosen = row == self._chosen
        self._paint_node(painter, one, rect)
        painter.setFont(self.font())
        painter.setPen(QColor(theme.on_selection if chosen else theme.text))
        words = QRectF(name, rect.top(), strip - name - _GAP * u, rect.height())
        metrics = QFontMetricsF(self.font())
        told = metrics.elidedText(one.title, Qt.TextElideMode.ElideRight, words.width())
        painter.drawText(words, _LEFT, told)
        if one.term:
            self._dot(painter, words, metrics.horizontalAdvance(told), metrics)
        area = QRectF(strip, rect.top() + 4 * u, shape - strip - _GAP * u, rect.height() - 8 * u)
        self._paint_strip(painter, row, area)
        small = small_font(self)
        painter.setFont(small)
        painter.setPen(QColor(theme.on_selection if chosen else theme.muted))
        if shape < norm:
            room = QRectF(shape, rect.top(), norm - shape - _GAP * u, rect.height())
            painter.drawText(room, _RIGHT, one.shape)
        right = QRectF(norm, rect.top(), self.viewport().width() - norm - 4 * u, rect.height())
        painter.drawText(right, _RIGHT, one.norm)

    def _paint_node(self, painter: QPainter, one: StageRow, rect: QRectF) -> None:
        """A ring where the stream itself stands, a dash in the colour of its part elsewhere."""
        u, y = unit(self), rect.center().y()
        x, colour = _STREAM / 2 * u, QColor(getattr(self._theme, _COLOURS[one.group]))
        if one.group == "stream":
            painter.setPen(QPen(colour, 1.5 * u))
            painter.setBrush(QColor(self._theme.card))
            painter.drawEllipse(QPointF(x, y), 4 * u, 4 * u)
            return
        bar = QRectF(x + 3 * u, rect.top() + 3 * u, 3 * u, rect.height() - 6 * u)
        painter.fillRect(bar, colour)

    def _dot(self, painter: QPainter, words: QRectF, width: float, metrics: QFontMetricsF) -> None:
        pen = QPen(painter.pen().color(), max(1.0, round(unit(self))))
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        pen.setDashPattern([1.0, 2.0])
        painter.setPen(pen)
        y = words.center().y() + metrics.height() / 2 - metrics.descent() + 2
        painter.drawLine(QLineF(words.left(), y, words.left() + width, y))

    def _paint_strip(self, painter: QPainter, row: int, area: QRectF) -> None:
        one = self._rows[row]
        if area.width() < 4 or not len(one.strip):
            return
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(area, self._image(row))
        painter.setPen(QPen(QColor(self._theme.strong_border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5))

    def _image(self, row: int) -> QImage:
        key = row, self._theme.name
        if key not in self._strips:
            self._strips[key] = strip_image(self._rows[row], self._theme)
        return self._strips[key]

    # -- reading

    def painted_terms(self) -> Terms:
        columns, metrics = self._columns(), QFontMetricsF(self.font())
        left, right = columns[0], columns[1] - _GAP * unit(self)
        return [
            (self._rows[row].term, QRectF(left, rect.top(), min(
                metrics.horizontalAdvance(self._rows[row].title), right - left), rect.height()))
            for row, rect in self._in_view() if self._rows[row].term
        ]  # fmt: skip

    def summary(self) -> str:
        """What a screen reader says: the stage that is enlarged."""
        return self._rows[self._chosen].told if self._chosen < len(self._rows) else ""

    def tip_at(self, point: QPoint) -> str:
        row = self._row_at(QPointF(point))
        return "" if row is None else self._rows[row].told

    def _row_at(self, point: QPointF) -> int | None:
        row = int((point.y() + self.verticalScrollBar().value()) // self._high)
        return row if 0 <= row < len(self._rows) else None

    def _look_at(self, row: int | None) -> None:
        if row != self._over:
            self._over = row
            self.viewport().update()

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._look_at(self._row_at(event.position()))

    def pointer_left(self) -> None:
        self._look_at(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self._row_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and row is not None:
            self.picked.emit(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -8, Qt.Key.Key_PageDown: 8,
            Qt.Key.Key_Home: -(1 << 30), Qt.Key.Key_End: 1 << 30,
        }  # fmt: skip
        key = Qt.Key(event.key())
        if self._rows and key in moves:
            row = min(max(self._chosen + moves[key], 0), len(self._rows) - 1)
            say(self, self._rows[row].told, aloud=True)
            self.picked.emit(row)
        else:
            super().keyPressEvent(event)

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()
        self.scroll_to(self.rect_of(self._chosen))

    def restyled(self) -> None:
        self._lay_out()


def strip_image(row: StageRow, theme: Theme) -> QImage:
    """One pixel a number, in the colours of its scale; hidden numbers in those of a mask."""
    values, top = row.strip, row.top or 1.0
    hidden = ~np.isfinite(values)
    shown = np.where(hidden, 0, values)
    levels = shown if row.share else (shown / top + 1) / 2
    table = lut("viridis" if row.share else difference(theme.dark))
    colours = table[np.rint(255 * np.clip(levels, 0, 1)).astype(int)].copy()
    masked = QColor(theme.masked)
    colours[hidden] = (masked.red(), masked.green(), masked.blue())
    data = np.ascontiguousarray(colours)
    image = QImage(data.data, len(values), 1, 3 * len(values), QImage.Format.Format_RGB888)
    return image.copy()
