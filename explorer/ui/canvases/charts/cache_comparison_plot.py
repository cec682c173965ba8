"""One generation done in two ways: positions and time of each step, two lines in each plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.keyboard_readout import ReadAlong
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.look.theme import Theme, unit

_TOP, _BOTTOM, _GAP, _DOT = 16, 17, 14, 5  # pixels at a zoom of 1


@dataclass(frozen=True, slots=True)
class Ways:
    """(N,) a plot: what the first way took at each step, and the second."""

    name: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    figure: Callable[[float], str]

    @property
    def top(self) -> float:
        """Where the axis ends."""
        return max(*self.first, *self.second, 0.0) or 1.0


class BothWays(ReadAlong):
    """Plots side by side; the first way in squares, the second in dots, never by colour alone."""

    def __init__(
        self,
        theme: Theme,
        axis: str,
        colours: tuple[str, str],
        tip: Callable[[int], str],
        parent: QWidget | None = None,
    ) -> None:
        """`colours` are theme attributes; `tip` words a step."""
        super().__init__(tip, parent)
        self._theme = theme
        self._axis = axis
        self._colours = colours
        self._plots: tuple[Ways, ...] = ()

    def set_plots(self, *plots: Ways) -> None:
        """Draw others."""
        self._plots = plots
        self._set_over(None)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(320 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(160 * unit(self)), round(48 * unit(self)))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        fill(painter, self.rect(), self._theme)
        font = QFont(self.font())
        font.setPixelSize(max(8, round(11 * unit(self))))
        painter.setFont(font)
        for plot, area in zip(self._plots, self._areas(), strict=True):
            self._paint_frame(painter, area, plot)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for place, values in enumerate((plot.first, plot.second)):
                self._paint_line(painter, area, plot.top, values, place)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _areas(self) -> list[QRectF]:
        u, count = unit(self), len(self._plots)
        wide = (self.width() - 4 - (count - 1) * _GAP * u) / max(count, 1)
        high = self.height() - (_TOP + _BOTTOM) * u
        return [QRectF(2 + i * (wide + _GAP * u), _TOP * u, wide, high) for i in range(count)]

    def _x(self, area: QRectF, step: int) -> float:
        return area.left() + area.width() * (step + 0.5) / max(self._count, 1)

    def _paint_frame(self, painter: QPainter, area: QRectF, plot: Ways) -> None:
        painter.setPen(QPen(QColor(self._theme.grid), 1))
        for part in (0.0, 0.5, 1.0):
            y = round(area.bottom() - part * area.height())
            painter.drawLine(round(area.left()), y, round(area.right()), y)
        if self._over is not None:
            x = round(self._x(area, self._over))
            painter.setPen(QPen(QColor(self._theme.strong_border), 1))
            painter.drawLine(x, round(area.top()), x, round(area.bottom()))
        painter.setPen(QColor(self._theme.muted))
        above = QRectF(area.left(), 0, area.width(), area.top() - 1)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, plot.figure(plot.top))
        painter.drawText(above, Qt.AlignmentFlag.AlignRight, plot.name)
        below = QRectF(area.left(), area.bottom() + 2, area.width(), _BOTTOM * unit(self))
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, "0")
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self._axis)
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, str(len(plot.first) - 1))

    def _paint_line(
        self, painter: QPainter, area: QRectF, top: float, values: tuple[float, ...], place: int
    ) -> None:
        colour, u = QColor(getattr(self._theme, self._colours[place])), unit(self)
        points = [
            QPointF(self._x(area, step), area.bottom() - value / top * area.height())
            for step, value in enumerate(values)
        ]
        painter.setPen(QPen(colour, 1.5 * u))
        painter.drawPolyline(points)
        if len(points) * (_DOT + 2) * u > area.width():
            return
        painter.setBrush(colour)
        half = _DOT * u / 2
        for point in points:
            box = QRectF(point.x() - half, point.y() - half, 2 * half, 2 * half)
            if place:
                painter.drawEllipse(box)
            else:
                painter.drawRect(box)
        painter.setBrush(Qt.BrushStyle.NoBrush)

    # -- reading

    @property
    def _count(self) -> int:
        return len(self._plots[0].first) if self._plots else 0

    def _place_at(self, x: float) -> int | None:
        for area in self._areas():
            if area.left() <= x < area.right():
                return min(int((x - area.left()) / area.width() * self._count), self._count - 1)
        return None
