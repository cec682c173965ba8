"""Signed figures as bars from one line of zero, a row each; a click picks the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFontMetricsF,
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
from explorer.ui.canvases.canvas import ScrollCanvas
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_HIGH, _TEXT, _PAD = 19, 11.5, 6  # pixels of a row, its text and beside it, at a zoom of 1
_LESS, _MORE = 30, 225  # of 255: the colours of a map of differences near its ends
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One bar; `words` is what is said of it."""

    name: str
    value: float
    figure: str  # the value as it is written, sign included
    words: str
    selected: bool = False


class RankedBars(ScrollCanvas):
    """Bars to the right are above zero, those to the left below, in two colours."""

    picked = Signal(int)  # row
    hovered = Signal(object)  # row or None

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.List)
        self._theme = theme
        self._rows: Sequence[RankedRow] = ()
        self._over: int | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_rows(self, rows: Sequence[RankedRow]) -> None:
        """Draw other rows, from the top; the place that is scrolled to stays."""
        self._rows = rows
        if self._over is not None and self._over >= len(rows):
            self._move_to(None)
        self._lay_out()

    @property
    def rows(self) -> Sequence[RankedRow]:
        """What is drawn, from the top."""
        return self._rows

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._lay_out()

    # -- geometry

    @property
    def _high(self) -> float:
        return max(_HIGH * unit(self), QFontMetricsF(small_font(self, _TEXT)).height() + 2)

    def row_rect(self, row: int) -> QRectF:
        """One row, in the viewport."""
        top = row * self._high - self.verticalScrollBar().value()
        return QRectF(0, top, self.viewport().width(), self._high)

    def bar_rect(self, row: int) -> QRectF:
        """The bar of a row, in the viewport."""
        left, right = self._room()
        low, high = self._ends()
        scale = (right - left) / ((high - low) or 1.0)
        rect, zero, value = self.row_rect(row), left - low * scale, self._rows[row].value
        start, end = sorted((zero, zero + value * scale))
        inset = rect.height() * 0.18
        # A hair's breadth for all that is not 0, so that nothing small looks like nothing.
        wide = max(end - start, 1.0 if value else 0.0)
        return QRectF(start, rect.top() + inset, wide, rect.height() - 2 * inset)

    def _ends(self) -> tuple[float, float]:
        values = [row.value for row in self._rows]
        return min([0.0, *values]), max([0.0, *values])

    def _room(self) -> tuple[float, float]:
        """Between names and figures."""
        metrics, pad = QFontMetricsF(small_font(self, _TEXT)), _PAD * unit(self)
        names = max((metrics.horizontalAdvance(row.name) for row in self._rows), default=0.0)
        figures = max((metrics.horizontalAdvance(row.figure) for row in self._rows), default=0.0)
        width = self.viewport().width()
        left = min(names, 0.4 * width) + 2 * pad
        return left, max(left + 1, width - figures - 2 * pad)

    def _lay_out(self) -> None:
        self.set_extent(len(self._rows) * self._high, self._high)
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(round(260 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(150 * unit(self)), round(60 * unit(self)))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, view = painter_of(self.viewport()), self.viewport().rect()
        fill(painter, view, self._theme)
        if not self._rows:
            return
        painter.setFont(small_font(self, _TEXT))
        left, right = self._room()
        first = int(self.verticalScrollBar().value() / self._high)
        last = min(len(self._rows), first + int(view.height() / self._high) + 2)
        self._paint_zero(painter, left, right, self.row_rect(last - 1).bottom())
        for row in range(first, last):
            self._paint_row(painter, row, left)

    def _paint_zero(self, painter: QPainter, left: float, right: float, bottom: float) -> None:
        low, high = self._ends()
        x = round(left - low * (right - left) / ((high - low) or 1.0))
        painter.setPen(QPen(QColor(self._theme.muted), 1))
        painter.drawLine(QPointF(x, 0), QPointF(x, min(bottom, self.viewport().height())))

    def _paint_row(self, painter: QPainter, index: int, left: float) -> None:
        row, rect, theme = self._rows[index], self.row_rect(index), self._theme
        pad = _PAD * unit(self)
        if index == self._over:
            painter.fillRect(rect, QColor(theme.hover))
        colours = lut(difference(theme.dark))[_MORE if row.value > 0 else _LESS]
        painter.fillRect(self.bar_rect(index), QColor(*(int(part) for part in colours)))
        named = QRectF(pad / 2, rect.top() + 1, left - pad, rect.height() - 2)
        if row.selected:
            painter.fillRect(named, QColor(theme.selection))
        painter.setPen(QColor(theme.on_selection if row.selected else theme.text))
        inner = named.adjusted(pad / 2, 0, 0, 0)
        metrics = QFontMetricsF(painter.font())
        name = metrics.elidedText(row.name, Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, _LEFT, name)
        painter.setPen(QColor(theme.text))
        painter.drawText(rect.adjusted(0, 0, -pad, 0), _RIGHT, row.figure)

    # -- reading

    def tip_at(self, point: QPoint) -> str:
        row = self._row_at(QPointF(point))
        return "" if row is None else self._rows[row].words

    def summary(self) -> str:
        """What a screen reader says before a row was looked at: how many there are, the first."""
        if not self._rows:
            return ""
        return self.tr("{0} bars; first: {1}").format(len(self._rows), self._rows[0].words)

    def _row_at(self, point: QPointF) -> int | None:
        row = int((point.y() + self.verticalScrollBar().value()) / self._high)
        return row if 0 <= row < len(self._rows) else None

    def _move_to(self, row: int | None, aloud: bool = False) -> None:
        if row == self._over:
            return
        self._over = row
        say(self, "" if row is None else self._rows[row].words, aloud)
        self.hovered.emit(row)
        self.viewport().update()

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._move_to(self._row_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        row = self._row_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and row is not None:
            self.picked.emit(row)

    def pointer_left(self) -> None:
        self._move_to(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._rows) - 1
        moves = {
            Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -10,
            Qt.Key.Key_PageDown: 10, Qt.Key.Key_Home: -last - 1, Qt.Key.Key_End: last + 1,
        }  # fmt: skip
        key = Qt.Key(event.key())
        if last >= 0 and key in moves:
            start = -1 if self._over is None else self._over
            row = min(max(start + moves[key], 0), last)
            self.scroll_to(self.row_rect(row))
            self._move_to(row, aloud=True)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._over is not None:
            self.picked.emit(self._over)
        else:
            super().keyPressEvent(event)

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def restyled(self) -> None:
        self._lay_out()
