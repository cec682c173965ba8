"""How far each layer's output moves when the last token is dropped, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.theme import Theme, unit

_LOWEST = 1e-8  # below float32's rounding nothing is told apart


@dataclass(frozen=True, slots=True)
class Series:
    """One run: a figure per layer, then one for the logits.  `hollow` tells it by shape too."""

    name: str
    colour: str  # a name of the theme
    values: Sequence[float]
    hollow: bool = False


class PrefixPlot(QWidget):
    """Dots over layers, the logits at the end; 0 has a line of its own below the axis."""

    def __init__(
        self, theme: Theme, tip: Callable[[int], str], parent: QWidget | None = None
    ) -> None:
        """`tip` puts one column into words."""
        super().__init__(parent)
        describe(self)
        self.setAccessibleName(self.tr("What moves when the last token is dropped"))
        self.setProperty(KEEPS_ARROWS, True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._theme = theme
        self._tip = tip
        self._series: Sequence[Series] = ()
        self._over: int | None = None

    def set_series(self, series: Sequence[Series]) -> None:
        """Draw other figures."""
        self._series, self._over = series, None
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(240 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(140 * unit(self)), round(80 * unit(self)))

    # -- geometry

    def _columns(self) -> int:
        return max((len(series.values) for series in self._series), default=0)

    def _plot(self) -> QRectF:
        u = unit(self)
        wide, high = self.width() - 42 * u, self.height() - 35 * u
        return QRectF(36 * u, 18 * u, max(1.0, wide), max(1.0, high))

    def _decades(self) -> tuple[int, int]:
        """The axis runs from 10**low to 10**high."""
        values = [max(v, _LOWEST) for s in self._series for v in s.values if v > 0]
        low = floor(log10(min(values, default=1e-6)) + 1e-9)
        high = ceil(log10(max(values, default=1.0)) - 1e-9)
        return low, max(high, low + 1)

    def _x(self, plot: QRectF, column: int) -> float:
        """The logits stand half a column apart from the layers."""
        step = plot.width() / (self._columns() + 0.5)
        return plot.left() + (column + 0.5 + 0.5 * (column == self._columns() - 1)) * step

    def _y(self, plot: QRectF, value: float) -> float:
        if value <= 0:
            return plot.bottom()
        low, high = self._decades()
        share = (log10(max(value, _LOWEST)) - low) / (high - low)
        return plot.bottom() - (0.1 + 0.9 * share) * plot.height()

    def _column_at(self, x: float) -> int | None:
        plot, count = self._plot(), self._columns()
        if not count or not plot.left() <= x <= plot.right():
            return None
        return min(range(count), key=lambda column: abs(self._x(plot, column) - x))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        small = QFont(self.font())
        small.setPixelSize(max(8, round(11 * unit(self))))
        painter.setFont(small)
        plot = self._plot()
        if not self._series:
            return
        self._paint_axes(painter, plot, QFontMetricsF(small))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for series in self._series:
            self._paint_series(painter, plot, series)
        self._paint_legend(painter, QFontMetricsF(small))

    def _paint_axes(self, painter: QPainter, plot: QRectF, metrics: QFontMetricsF) -> None:
        theme = self._theme
        low, high = self._decades()
        every = max(1, ceil((high - low) * metrics.height() / max(plot.height() * 0.85, 1)))
        lines = [(0.0, "0")]
        lines += [(10.0**d, f"10{_raised(d)}" if d else "1") for d in range(high, low - 1, -every)]
        for value, words in lines:
            y = round(self._y(plot, value))
            painter.setPen(QPen(QColor(theme.grid), 1))
            painter.drawLine(round(plot.left()), y, round(plot.right()), y)
            if value and y > plot.bottom() - metrics.height():
                continue  # no room above the 0
            painter.setPen(QColor(theme.muted))
            box = QRectF(0, y - 8, plot.left() - 4, 16)
            painter.drawText(box, _RIGHT, words)
        if self._over is not None:
            x = self._x(plot, self._over)
            painter.setPen(QPen(QColor(theme.strong_border), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(x, plot.top()), QPointF(x, plot.bottom()))
        below = QRectF(plot.left(), plot.bottom() + 3, plot.width(), metrics.height())
        painter.setPen(QColor(theme.muted))
        last = self._columns() - 2
        names = self.tr("layer 0 … {0}").format(last) if last > 0 else self.tr("layer 0")
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, names)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, self.tr("logits"))

    def _paint_series(self, painter: QPainter, plot: QRectF, series: Series) -> None:
        colour = QColor(getattr(self._theme, series.colour))
        points = [
            QPointF(self._x(plot, i), self._y(plot, value)) for i, value in enumerate(series.values)
        ]
        painter.setPen(QPen(colour, 1.2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPolyline(points[:-1])
        for point in points:
            self._dot(painter, point, colour, series.hollow)

    def _dot(self, painter: QPainter, point: QPointF, colour: QColor, hollow: bool) -> None:
        size = 2.8 * unit(self)
        painter.setPen(QPen(colour, 1.5))
        painter.setBrush(QColor(self._theme.card) if hollow else colour)
        painter.drawEllipse(point, size, size)

    def _paint_legend(self, painter: QPainter, metrics: QFontMetricsF) -> None:
        u = unit(self)
        x = self._plot().left()
        for series in self._series:
            self._dot(
                painter, QPointF(x + 4 * u, 8 * u), QColor(getattr(self._theme, series.colour)),
                series.hollow,
            )  # fmt: skip
            painter.setPen(QColor(self._theme.text))
            width = metrics.horizontalAdvance(series.name)
            painter.drawText(QRectF(x + 11 * u, 0, width + 4, 16 * u), _LEFT, series.name)
            x += width + 24 * u

    def summary(self) -> str:
        """What a screen reader says before anything is looked at."""
        return self._tip(self._columns() - 1) if self._columns() else ""

    # -- mouse and keys

    def _set_over(self, column: int | None, aloud: bool = False) -> None:
        if column != self._over:
            self._over = column
            words = "" if column is None else self._tip(column)
            say(self, words, aloud)
            self.setToolTip(words)
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_over(self._column_at(event.position().x()))

    def leaveEvent(self, event: QEvent) -> None:
        self._set_over(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if move is None or not self._columns():
            super().keyPressEvent(event)
            return
        start = -1 if self._over is None else self._over
        self._set_over(min(max(start + move, 0), self._columns() - 1), aloud=True)


def _raised(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
