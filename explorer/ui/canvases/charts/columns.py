"""Upright columns over an index (layers, steps), stacked in parts; a click picks one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QWidget

from explorer.ui.access import tips
from explorer.ui.canvases.charts.column_parts import StripColumns, StripPart
from explorer.ui.canvases.keyboard_readout import KeyboardReadout
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.look.theme import Theme, unit

_TOP = 16  # pixels at a zoom of 1: room for the axis figure above the columns
_BOTTOM = 19


class ColumnStrip(KeyboardReadout):
    """Columns with a figure at the top of the axis; thinner than a pixel they keep their maxima."""

    picked = Signal(int)

    def __init__(
        self,
        theme: Theme,
        axis: str,
        figure: Callable[[float], str],
        tip: Callable[[int], str],
        parent: QWidget | None = None,
    ) -> None:
        """`axis` says what runs along the bottom; `figure` words a value; `tip` one column."""
        super().__init__(tip, parent)
        self._theme = theme
        self._axis = axis
        self._figure = figure
        self._data = StripColumns(np.zeros(0))
        self._selected: int | None = None

    def set_columns(self, data: StripColumns, selected: int | None = None) -> None:
        """Draw other columns; `selected` is marked."""
        self._data = data
        self._selected = selected
        if self._over is not None:  # the same column may say something else now
            over, self._over = self._over, None
            self._set_over(over if over < len(data.values) else None)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(200 * u), round(110 * u))

    def minimumSizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(90 * u), round(56 * u))

    # -- geometry

    def _plot(self) -> QRectF:
        u = unit(self)
        high = max(1.0, self.height() - (_TOP + _BOTTOM) * u)
        return QRectF(2, _TOP * u, max(1.0, self.width() - 4), high)

    def _top_value(self) -> float:
        data = self._data
        top = float(data.values.max(initial=0.0))
        if data.cap is not None:
            top = min(top, data.cap)
        if data.marks is not None:
            top = max(top, float(np.nan_to_num(data.marks).max(initial=0.0)))
        return max(top, data.level or 0.0) or 1.0

    def _place_at(self, x: float) -> int | None:
        plot, n = self._plot(), len(self._data.values)
        if not n or not plot.left() <= x < plot.right():
            return None
        return min(int((x - plot.left()) / plot.width() * n), n - 1)

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        fill(painter, event.rect(), self._theme)
        plot, top = self._plot(), self._top_value()
        small = QFont(self.font())
        small.setPixelSize(max(8, round(11 * unit(self))))
        painter.setFont(small)
        self._paint_axis(painter, plot, top)
        n = len(self._data.values)
        if n:
            step = plot.width() / n
            self._paint_selected(painter, plot, step)
            if step >= 2:
                self._paint_columns(painter, plot, top, step)
            else:
                self._paint_envelope(painter, plot, top)
            self._paint_marks(painter, plot, step)
        self._paint_level(painter, plot, top)

    def _paint_axis(self, painter: QPainter, plot: QRectF, top: float) -> None:
        theme = self._theme
        painter.setPen(QPen(QColor(theme.grid), 1))
        for part in (0.0, 0.5, 1.0):
            y = round(plot.bottom() - part * plot.height())
            painter.drawLine(round(plot.left()), y, round(plot.right()), y)
        painter.setPen(QColor(theme.muted))
        above = QRectF(plot.left(), 0, plot.width(), plot.top() - 1)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, self._figure(top))
        if self._data.level_words:
            metrics = painter.fontMetrics()
            room = round(above.width()) - metrics.horizontalAdvance(f"{self._figure(top)}  ")
            words = metrics.elidedText(self._data.level_words, Qt.TextElideMode.ElideRight, room)
            painter.setPen(QColor(theme.formula))
            painter.drawText(above, Qt.AlignmentFlag.AlignRight, words)
            painter.setPen(QColor(theme.muted))
        below = QRectF(self.rect()).adjusted(2, plot.bottom() + 4 * unit(self), -2, 0)
        names = self._data.names
        n = len(self._data.values)
        first = names[0] if names else "0"
        last = names[-1] if names else str(n - 1)
        if n:
            painter.drawText(below, Qt.AlignmentFlag.AlignLeft, first)
        if n > 1:
            painter.drawText(below, Qt.AlignmentFlag.AlignRight, last)
        wide = painter.fontMetrics().horizontalAdvance(f"{first}  {self._axis}  {last}{last}")
        if wide < below.width():
            painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self._axis)

    def _paint_columns(self, painter: QPainter, plot: QRectF, top: float, step: float) -> None:
        """Parts of one colour go to Qt in one call."""
        data = self._data
        gap = 1.0 if step >= 4 else 0.0
        width = min(step - gap, 34 * unit(self))
        left, bottom = plot.left() + (step - gap - width) / 2, plot.bottom()
        scale = plot.height() / top
        painter.setPen(Qt.PenStyle.NoPen)
        for kind, columns in self._by_kind().items():
            base = np.zeros(len(columns))
            for part in data.parts or (StripPart(data.values),):
                ends = np.minimum(base + part.heights[columns], top)
                painter.setBrush(self._brush(kind, part))
                tall = zip(columns, (base * scale).tolist(), (ends * scale).tolist(), strict=True)
                painter.drawRects(
                    [
                        QRectF(left + i * step, bottom - high, width, high - low)
                        for i, low, high in tall
                        if high > low
                    ]
                )
                base = ends
        for i in data.hollow:
            high = min(float(data.values[i]), top) * scale
            rect = QRectF(left + i * step, bottom - high, width, high)
            self._paint_hollow(painter, rect, self._kind(i))
        if data.cap is not None:
            for i in np.flatnonzero(data.values > data.cap).tolist():
                self._paint_break(painter, QRectF(left + i * step, plot.top(), width, 20))
        if data.marks is not None:
            self._paint_dashes(painter, data.marks, plot, step, scale)

    def _by_kind(self) -> dict[str, list[int]]:
        """The filled columns of each kind."""
        groups: dict[str, list[int]] = {}
        for i in range(len(self._data.values)):
            if i not in self._data.hollow:
                groups.setdefault(self._kind(i), []).append(i)
        return groups

    def _paint_dashes(
        self, painter: QPainter, marks: np.ndarray, plot: QRectF, step: float, scale: float
    ) -> None:
        """What was computed for each column, across it; neighbours of one height join."""
        painter.setPen(QPen(QColor(self._theme.formula), 2))
        lines = [
            QLineF(plot.left() + i * step, y, plot.left() + (i + 1) * step, y)
            for i, y in enumerate((plot.bottom() - marks * scale).tolist())
            if y == y  # not NaN
        ]
        painter.drawLines(lines)

    def _kind(self, index: int) -> str:
        kinds = self._data.kinds
        if not kinds:
            return "decode"
        return kinds[index] if index < len(kinds) else kinds[0]

    def _brush(self, kind: str, part: StripPart) -> QBrush:
        """Kinds of pass differ in pattern too, so that colour is never the only sign."""
        colour = part.ink(self._theme, kind)
        if kind == "recompute" and not part.colour:
            return QBrush(colour, Qt.BrushStyle.Dense3Pattern)
        return QBrush(colour)

    def _paint_hollow(self, painter: QPainter, rect: QRectF, kind: str) -> None:
        painter.setPen(QPen(QColor(getattr(self._theme, kind)), 1.5, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(1, 1, -1, 0))

    def _paint_break(self, painter: QPainter, rect: QRectF) -> None:
        """Two slanted cuts: this column is higher than the axis."""
        y, half = rect.top() + 9, rect.width() / 2
        painter.setPen(QPen(QColor(self._theme.card), 2))
        for offset in (0, 4):
            painter.drawLine(
                QPointF(rect.center().x() - half - 1, y + offset + 3),
                QPointF(rect.center().x() + half + 1, y + offset - 3),
            )

    def _paint_envelope(self, painter: QPainter, plot: QRectF, top: float) -> None:
        """More columns than pixels: the highest of each pixel's columns."""
        data, pixels = self._data, max(1, int(plot.width()))
        edges = np.linspace(0, len(data.values), pixels + 1).astype(int)[:-1]
        heights = np.minimum(np.maximum.reduceat(data.values, edges), top) * plot.height() / top
        painter.setPen(QPen(QColor(getattr(self._theme, self._kind(len(data.values) - 1))), 1))
        bottom, left = round(plot.bottom()), round(plot.left())
        painter.drawLines(
            [
                QLineF(left + i, bottom, left + i, bottom - high)
                for i, high in enumerate(np.rint(heights).tolist())
            ]
        )

    def _paint_marks(self, painter: QPainter, plot: QRectF, step: float) -> None:
        theme = self._theme
        if self._over is not None:
            x = plot.left() + self._over * step
            painter.setPen(QPen(QColor(theme.strong_border), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(x, plot.top(), max(step - 1, 1), plot.height()))

    def _paint_selected(self, painter: QPainter, plot: QRectF, step: float) -> None:
        """A band behind the column and a thick line under it."""
        if self._selected is None:
            return
        x = plot.left() + self._selected * step
        width = max(step - 1, 3 * unit(self))
        painter.fillRect(QRectF(x, plot.top(), width, plot.height()), QColor(self._theme.band))
        painter.fillRect(
            QRectF(x, plot.bottom() + 1, width, 3 * unit(self)), QColor(self._theme.text)
        )

    def _paint_level(self, painter: QPainter, plot: QRectF, top: float) -> None:
        if self._data.level is None:
            return
        y = round(plot.bottom() - self._data.level / top * plot.height())
        painter.setPen(QPen(QColor(self._theme.formula), 2, Qt.PenStyle.DashLine))
        painter.drawLine(round(plot.left()), y, round(plot.right()), y)

    # -- mouse and keys

    @property
    def _count(self) -> int:
        return len(self._data.values)

    def _before(self, move: int) -> int:
        return (self._selected or 0) - move  # the first one read is the one that is marked

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        index = self._place_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and index is not None:
            self.picked.emit(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._over is not None:
            self.picked.emit(self._over)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self._place_at(event.pos().x())
            text = "" if index is None else self._tip(index)
            tips.show(event, text, self)
            return True
        return super().event(event)
