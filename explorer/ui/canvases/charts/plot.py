"""The pyqtgraph side of a chart: one view, its axes, and items that are made once.

Imported late, and by `chart` alone.  Nothing here ranges by itself: each figure says its ranges.
The mouse and the keys are the chart's: pyqtgraph's own hovering costs a search of the scene for
each move, and its menu offers an export that fails.  Bars, axes and notes are one item each:
pyqtgraph has an item for each colour, axis and note, which takes three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyqtgraph as pg
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPen,
    QResizeEvent,
    QStaticText,
    QTextOption,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsLineItem, QGraphicsWidget, QWidget

from explorer.ui.canvases.charts.marks import Band, Bars, Figure, Note
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

pg.setConfigOptions(
    antialias=False, useOpenGL=False, imageAxisOrder="row-major", exitCleanup=False,
    crashWarning=False,
)  # fmt: skip

_WIDEST = 34  # pixels of a bar, at a zoom of 1
_FILLED = 0.86  # of its room
_MOST_UP = 7  # ticks of a y axis, however high it is
_SMOOTH_UP_TO = 1000  # points of a line that are antialiased
_KNOWN_TEXTS = 300  # words that are kept laid out
_SYMBOLS = {"square": "s", "round": "o", "ring": "o"}
_NO_PEN = QPen(Qt.PenStyle.NoPen)
_PATTERNS = {
    "filled": Qt.BrushStyle.SolidPattern,
    "hatched": Qt.BrushStyle.Dense3Pattern,
    "outline": Qt.BrushStyle.NoBrush,
}
_ITEM = TypeVar("_ITEM", bound=QGraphicsItem)
_Corners = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # left, right, base, top
_Ticks = Sequence[tuple[float, str]]  # places and their words
_View = tuple[float, float, float, float]  # left, right, bottom, top, in places


class Plot(pg.GraphicsView):
    """Draws figures.  It takes neither mouse nor focus: the chart that it lies in has both."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, useOpenGL=False, background=None)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setCacheMode(pg.GraphicsView.CacheModeFlag.CacheNone)  # a picture in each drawing
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.viewport().setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._theme, self._chart = theme, parent  # whose font is there before this one's
        self._figure: Figure | None = None
        self._view: _View = (0.0, 1.0, 0.0, 1.0)
        self._ranged: _View | None = None  # the view that the box has been given
        self._over: float | None = None
        self._held: list[tuple[str, Any]] = []  # lines that are read, and their items
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0)
        self._box.disableAutoRange()
        self._axes, self._notes = _Axes(-200), _Notes(40)  # the grid lies behind the bars
        self._cursor = QGraphicsLineItem()
        self._cursor.setZValue(50)
        whole = QGraphicsWidget()
        for item in (self._axes, self._box, self._notes, self._cursor):
            item.setParentItem(whole)
        self.setCentralItem(whole)
        self._bars = _Bars()
        self._box.addItem(self._bars, ignoreBounds=True)
        self._curves: list[_Curve] = []
        self._dots: list[pg.ScatterPlotItem] = []
        self.set_theme(theme)

    # -- what the chart tells it

    def set_theme(self, theme: Theme) -> None:
        """Other colours, and the font of the chart as it is now."""
        self._theme = theme
        self.setBackground(QColor(theme.card))
        for words in (self._axes, self._notes):
            words.dress(small_font(self._chart), theme, unit(self._chart))
        self._cursor.setPen(QPen(QColor(theme.text), 1))
        self._redraw()

    def show_figure(self, figure: Figure, view: _View) -> None:
        """Draw another figure; `view` is the part of it that is seen, in places."""
        self._figure, self._view = figure, view
        self._redraw()

    def show_cursor(self, place: float | None) -> None:
        """A line at one place of the x axis."""
        self._over = place
        left, right = self._view[:2]
        self._cursor.setVisible(place is not None and left <= place <= right)
        if place is not None:
            area = self.area()
            x = round(self.pixels(place, 0.0).x())
            self._cursor.setLine(x, area.top(), x, area.bottom())

    def area(self) -> QRectF:
        """Where the data are, in pixels of the chart."""
        return self._axes.area

    def places(self, point: QPointF) -> tuple[float, float]:
        """The places of both axes at a point of the chart: the inverse of `pixels`."""
        area, (left, right, low, high) = self.area(), self._view
        return (
            left + (point.x() - area.left()) / area.width() * (right - left),
            low + (area.bottom() - point.y()) / area.height() * (high - low),
        )

    # -- reading

    def drawn(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """What the items hold, by its name: places along x, and heights or values, in values.

        Bars that stand on others have their own height.
        """
        figure = self._figure
        if figure is None:
            return {}
        found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for place, bars in enumerate(figure.bars, len(figure.bands)):
            x, base, top = self._bars.corners(place)
            height = figure.y.value(top) - figure.y.value(base)
            known = found.get(bars.name)
            if known is not None:  # kinds of one part have items of their own
                x, height = np.append(known[0], x), np.append(known[1], height)
                order = np.argsort(x, kind="stable")
                x, height = x[order], height[order]
            found[bars.name] = figure.x.value(x), height
        for name, item in self._held:
            x, y = item.getData()
            found[name] = figure.x.value(x), figure.y.value(y)
        return found

    def tick_words(self) -> tuple[list[str], list[str]]:
        """The words under the x axis and beside the y axis, as they are drawn."""
        return self._axes.shown

    def notes(self) -> list[str]:
        """The words at points that are seen."""
        return self._notes.shown

    # -- layout

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if event is not None:
            self._redraw()

    def settle(self) -> None:
        """Draw at the size of now, which Qt tells only a plot that is seen."""
        self.range = QRectF(self.rect())
        self.updateMatrix()
        self._redraw()

    def _redraw(self) -> None:
        figure, view = self._figure, self._view
        if figure is None:
            return
        self._axes.lay_out(figure, view, QRectF(self.rect()))
        if self.area() != self._box.geometry():
            self._box.setGeometry(self.area())
        if view != self._ranged:
            self._ranged = view
            self._box.setRange(xRange=view[:2], yRange=view[2:], padding=0, disableAutoRange=False)
        self._box.updateMatrix()  # now, not within the painting, which would begin another
        self._fill(figure)

    def pixels(self, x: float, y: float) -> QPointF:
        """The point of the chart at places of the axes."""
        area, (left, right, low, high) = self.area(), self._view
        return QPointF(
            area.left() + (x - left) / (right - left) * area.width(),
            area.bottom() - (y - low) / (high - low) * area.height(),
        )

    # -- items

    def _fill(self, figure: Figure) -> None:
        left, right, low, high = self._view
        bounds = QRectF(left, low, right - left, high - low)
        self._bars.begin(bounds)
        for band in figure.bands:
            self._add_band(figure, band)
        for bars in figure.bars:
            self._add_bars(figure, bars)
        self._bars.update()
        self._fill_lines(figure, bounds)
        x = figure.x.place(np.array([note.x for note in figure.notes])).tolist()
        y = figure.y.place(np.array([note.y for note in figure.notes])).tolist()
        placed = [
            (note, self.pixels(*at))
            for note, *at in zip(figure.notes, x, y, strict=True)
            if note.left or left <= at[0] <= right  # those of a line stay at its end
        ]
        self._notes.lay_out(placed, self.area(), self._theme)
        self.show_cursor(self._over)

    def _add_band(self, figure: Figure, band: Band) -> None:
        low, high = self._view[2:]
        ends = figure.x.place(np.array([band.first, band.end]))
        corners = ends[:1], ends[1:], np.array([low]), np.array([high])
        self._bars.add(corners, _NO_PEN, QBrush(QColor(getattr(self._theme, band.colour))))

    def _add_bars(self, figure: Figure, bars: Bars) -> None:
        x = bars.x
        pixel = (self._view[1] - self._view[0]) / max(self.area().width(), 1.0)
        room = bars.width / pixel  # of one bar, in pixels
        half = bars.width / 2
        if room >= 4:
            half *= min(_FILLED, _WIDEST * unit(self._chart) / room)
        base, top = figure.y.place(bars.base), figure.y.place(bars.top)
        if room < 1 and len(x):
            x, base, top = _highest(x, base, top, pixel)
            half = pixel / 2
        colour = bars.paint.of(self._theme)
        pen, brush = _NO_PEN, QBrush(colour, _PATTERNS[bars.look])
        if bars.look == "outline":
            pen = pg.mkPen(colour, width=1.5, style=Qt.PenStyle.DashLine)
        self._bars.add((x - half, x + half, base, top), pen, brush)

    def _fill_lines(self, figure: Figure, bounds: QRectF) -> None:
        u, wide = unit(self._chart), self.area().width()
        joined = [line for line in figure.lines if line.width]
        dotted = [
            line for line in figure.lines
            if line.dots and (wide / max(len(line.x), 1) > 6 * u or not line.width)
        ]  # fmt: skip
        curves = _pool(self._box, self._curves, len(joined), _Curve)
        dots = _pool(self._box, self._dots, len(dotted), pg.ScatterPlotItem)
        self._held = []
        for curve, line in zip(curves, joined, strict=True):
            style = Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine
            pen = pg.mkPen(line.paint.of(self._theme), width=line.width * u, style=style)
            curve.bounds = bounds
            curve.setData(
                figure.x.place(line.x), figure.y.place(line.y), pen=pen,
                connect="pairs" if line.pairs else "finite",
                antialias=len(line.x) <= _SMOOTH_UP_TO and not line.pairs,
            )  # fmt: skip
            if line.read:
                self._held.append((line.name, curve))
        for points, line in zip(dots, dotted, strict=True):
            colour = line.paint.of(self._theme)
            fill = QColor(self._theme.card) if line.dots == "ring" else colour
            points.setZValue(20)
            points.setData(
                figure.x.place(line.x), figure.y.place(line.y), symbol=_SYMBOLS[line.dots],
                size=6 * u, pen=pg.mkPen(colour, width=1.5), brush=pg.mkBrush(fill),
                antialias=True,
            )  # fmt: skip
            if line.read and not line.width:
                self._held.append((line.name, points))


class _Words(QGraphicsItem):
    """Words at points of the chart.  Each is laid out once, however often it is drawn."""

    def __init__(self, height: float) -> None:
        super().__init__()
        self.setZValue(height)
        self._bounds = QRectF()
        self._texts: dict[str, QStaticText] = {}
        self._widths: dict[str, float] = {}
        self.font, self.metrics, self.u = QFont(), QFontMetricsF(QFont()), 1.0

    def dress(self, font: QFont, theme: Theme, u: float) -> None:
        """Another font, other colours, another zoom."""
        self.font, self.metrics, self.u = font, QFontMetricsF(font), u
        self._texts.clear()
        self._widths.clear()

    def wide(self, words: str) -> float:
        """Pixels that words take."""
        found = self._widths.get(words)
        if found is None:
            if len(self._widths) >= _KNOWN_TEXTS:
                self._widths.clear()
            found = self._widths[words] = self.metrics.horizontalAdvance(words)
        return found

    def text(self, words: str) -> QStaticText:
        """Words that run from the left, whichever way the window does: "0 ms", never "ms 0"."""
        found = self._texts.get(words)
        if found is None:
            if len(self._texts) >= _KNOWN_TEXTS:
                self._texts.clear()
            found = QStaticText(words)
            found.setTextFormat(Qt.TextFormat.PlainText)
            option = QTextOption()
            option.setTextDirection(Qt.LayoutDirection.LeftToRight)
            found.setTextOption(option)
            self._texts[words] = found
        return found

    def cover(self, bounds: QRectF) -> None:
        """What is drawn lies within."""
        if bounds != self._bounds:
            self.prepareGeometryChange()
            self._bounds = bounds
        self.update()

    def boundingRect(self) -> QRectF:
        return self._bounds


class _Axes(_Words):
    """Both axes: their lines, ticks and names, no more than fit, and lines across from y's."""

    def __init__(self, height: float) -> None:
        super().__init__(height)
        self.area = QRectF(0, 0, 1, 1)  # where the data are
        self.shown: tuple[list[str], list[str]] = ([], [])
        self._lines: list[QLineF] = []
        self._grid: list[QLineF] = []
        self._marked: QLineF | None = None
        self._words: list[tuple[QPointF, QStaticText]] = []
        self._pens: tuple[QPen, ...] = ()
        self._asked: tuple[Any, ...] = ()

    def dress(self, font: QFont, theme: Theme, u: float) -> None:
        super().dress(font, theme, u)
        strong = QPen(QColor(theme.text), 3 * u)
        strong.setCapStyle(Qt.PenCapStyle.FlatCap)
        colours = (theme.grid, theme.strong_border, theme.muted)
        self._pens = (*(QPen(QColor(colour), 1) for colour in colours), strong)
        self._asked = ()

    def lay_out(self, figure: Figure, view: _View, whole: QRectF) -> None:
        """Find the room for the data, and what is written around it."""
        u, line, wide = self.u, self.metrics.height(), self.wide
        left, right, low, high = view
        roomy = whole.height() > 150 * u
        below = line + 4 * u + (line if roomy and figure.x.name else 0)
        above = line + 3 * u if roomy and figure.y.name else 6 * u
        tall = max(1.0, whole.height() - above - below)
        up = figure.y.ticks(low, high, max(2, int(min(tall / (2.2 * line), _MOST_UP))))
        beside = max((wide(words) for _, words in up), default=0.0) + 7 * u
        if not roomy:
            beside = max(beside, wide(figure.x.name) + 12 * u)
        area = QRectF(beside, above, max(1.0, whole.width() - 8 * u - beside), tall)
        widest = max((wide(words) for _, words in figure.x.ticks(left, right, 2)), default=20.0)
        along = figure.x.ticks(left, right, max(2, int(area.width() / (widest + 14 * u))))
        asked = (figure.x.name, figure.y.name, up, along, view, whole, figure.marked)
        if asked == self._asked:
            return
        self._asked, self.area = asked, area
        self._lines = [
            QLineF(area.left(), area.bottom(), area.right(), area.bottom()),
            QLineF(area.left(), area.top(), area.left(), area.bottom()),
        ]
        self._words = []
        self.shown = (
            self._across(along, left, right, figure.x.name, roomy),
            self._up(up, low, high, figure.y.name if roomy else ""),
        )
        self._marked = None
        if figure.marked is not None:
            ends = np.clip(figure.x.place(np.array(figure.marked)), left, right)
            x = area.left() + (ends - left) / (right - left) * area.width()
            y = area.bottom() + 1.5 * u
            self._marked = QLineF(float(x[0]), y, float(x[1]), y)
        self.cover(whole)

    def _write(self, x: float, y: float, words: str) -> None:
        self._words.append((QPointF(round(x), round(y)), self.text(words)))

    def _across(self, ticks: _Ticks, low: float, high: float, name: str, roomy: bool) -> list[str]:
        """The ticks under the area that find room, in the order given, and the name."""
        area, u = self.area, self.u
        scale = area.width() / (high - low)
        taken: list[tuple[float, float]] = []
        shown = []
        y = area.bottom() + 3 * u
        for place, words in ticks:
            x = area.left() + (place - low) * scale
            wide = self.wide(words)
            left = min(max(x - wide / 2, area.left() - 6 * u), area.right() + 6 * u - wide)
            if any(left < end + 5 * u and left + wide + 5 * u > start for start, end in taken):
                continue
            taken.append((left, left + wide))
            shown.append(words)
            self._lines.append(QLineF(x, area.bottom(), x, y))
            self._write(left, y, words)
        wide = self.wide(name)
        if name and roomy:
            self._write(area.center().x() - wide / 2, y + self.metrics.height(), name)
        elif name and min((start for start, _ in taken), default=area.left()) - 4 * u >= wide:
            self._write(1, y, name)
        return shown

    def _up(self, ticks: _Ticks, low: float, high: float, name: str) -> list[str]:
        """The ticks beside the area, and the name above them."""
        area, u = self.area, self.u
        scale = area.height() / (high - low)
        self._grid = []
        for place, words in ticks:
            y = round(area.bottom() - (place - low) * scale)
            self._grid.append(QLineF(area.left(), y, area.right(), y))
            x = area.left() - 5 * u - self.wide(words)
            self._write(x, y - self.metrics.height() / 2, words)
        if name:
            self._write(2 * u + 1, 0, name)
        return [words for _, words in ticks]

    def paint(self, painter: QPainter, option: object, widget: QWidget | None = None) -> None:
        grid, line, text, strong = self._pens
        for pen, lines in ((grid, self._grid), (line, self._lines)):
            painter.setPen(pen)
            painter.drawLines(lines)
        if self._marked is not None:
            painter.setPen(strong)
            painter.drawLine(self._marked)
        painter.setFont(self.font)
        painter.setPen(text)
        for at, words in self._words:
            painter.drawStaticText(at, words)


class _Notes(_Words):
    """Notes, each on a little of the card, so that it is read over bars and lines."""

    def __init__(self, height: float) -> None:
        super().__init__(height)
        self.shown: list[str] = []
        self._placed: list[tuple[QRectF, QColor]] = []
        self._ground = QColor()

    def lay_out(self, notes: Sequence[tuple[Note, QPointF]], area: QRectF, theme: Theme) -> None:
        """Beside their points, within the area, and not one on another."""
        self._ground = QColor(theme.card)
        self._ground.setAlpha(200)
        self.shown = [note.words for note, _ in notes]
        self._placed = []
        for note, point in notes:
            box = self._beside(note, point, area)
            self._placed.append((box, QColor(getattr(theme, note.colour))))
        self.cover(area if notes else QRectF())

    def _beside(self, note: Note, at: QPointF, area: QRectF) -> QRectF:
        gap = 4 * self.u
        wide, high = self.wide(note.words), self.metrics.height()
        x = at.x() - gap - wide if note.left else at.x() + gap
        x = min(max(x, area.left()), max(area.left(), area.right() - wide))
        sides = at.y() - high - 1, at.y() + 1
        found = QRectF()
        for y in reversed(sides) if note.below else sides:
            within = min(max(y, area.top()), max(area.top(), area.bottom() - high))
            found = QRectF(round(x), round(within), wide, high)
            if not any(found.intersects(other) for other, _ in self._placed):
                break
        return found

    def paint(self, painter: QPainter, option: object, widget: QWidget | None = None) -> None:
        painter.setFont(self.font)
        for words, (box, colour) in zip(self.shown, self._placed, strict=True):
            painter.fillRect(box.adjusted(-1, 1, 1, -1), self._ground)
            painter.setPen(colour)
            painter.drawStaticText(box.topLeft(), self.text(words))


class _Bars(pg.GraphicsObject):
    """All bars of a chart, and the bands behind them: what has one look is painted in one call."""

    def __init__(self) -> None:
        super().__init__()
        self._bounds = QRectF()
        self._parts: list[tuple[QPen, QBrush, Any]] = []  # with pyqtgraph's array of QRectF
        self._used = 0

    def begin(self, bounds: QRectF) -> None:
        """What is added from now on takes the place of what was there."""
        if bounds != self._bounds:
            self.prepareGeometryChange()
            self._bounds = bounds
        self._used = 0

    def add(self, corners: _Corners, pen: QPen, brush: QBrush) -> None:
        """Bars between left, right, base and top."""
        if self._used == len(self._parts):
            self._parts.append((pen, brush, PrimitiveArray(QRectF, 4)))
        rects = self._parts[self._used][2]
        left, right, base, top = corners
        rects.resize(len(left))
        numbers = rects.ndarray()
        numbers[:, 0], numbers[:, 1] = left, base
        np.subtract(right, left, out=numbers[:, 2])
        np.subtract(top, base, out=numbers[:, 3])
        self._parts[self._used] = pen, brush, rects
        self._used += 1

    def corners(self, which: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Middles, bases and tops of what was added as the n-th."""
        left, base, wide, high = self._parts[which][2].ndarray().T
        return left + wide / 2, base.copy(), base + high

    def boundingRect(self) -> QRectF:
        return self._bounds

    def paint(self, painter: QPainter, option: object, widget: QWidget | None = None) -> None:
        for pen, brush, rects in self._parts[: self._used]:
            painter.setPen(pen)
            painter.setBrush(brush)
            painter.drawRects(*rects.drawargs())


class _Curve(pg.PlotCurveItem):
    """A line whose bounds are those of the view: nothing ranges by them."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(10)
        self.bounds = QRectF()

    def boundingRect(self) -> QRectF:
        return self.bounds


def _pool(
    box: pg.ViewBox, items: list[_ITEM], count: int, make: Callable[[], _ITEM]
) -> list[_ITEM]:
    """The first `count` of them, made if they are not there yet; those beyond are hidden."""
    while len(items) < count:
        items.append(make())
        box.addItem(items[-1], ignoreBounds=True)
    for place, item in enumerate(items):
        if item.isVisible() != (place < count):
            item.setVisible(place < count)
    return items[:count]


def _highest(
    x: np.ndarray, base: np.ndarray, top: np.ndarray, pixel: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """More bars than pixels: of each pixel's bars the highest, at the pixel's middle."""
    column = np.floor((x - x[0]) / pixel).astype(np.int64)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[first] + 0.5) * pixel
    return middle, np.minimum.reduceat(base, first), np.maximum.reduceat(top, first)
