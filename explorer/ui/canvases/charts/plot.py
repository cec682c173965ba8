"""The pyqtgraph side of a chart: one view, two rulers, and items that are made once.

Imported late, and by `chart` alone.  Nothing here ranges by itself: each figure says its ranges.
The mouse and the keys are the chart's: pyqtgraph's own hovering costs a search of the scene for
each move, and its menu offers an export that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyqtgraph as pg
from pyqtgraph.Qt.internals import PrimitiveArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QPainter,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QGraphicsItem, QGraphicsSimpleTextItem, QGraphicsWidget, QWidget

from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.marks import Band, Bars, Figure, Line, Note
from explorer.ui.look.theme import Theme, unit

pg.setConfigOptions(
    antialias=False, useOpenGL=False, imageAxisOrder="row-major", exitCleanup=False,
    crashWarning=False,
)  # fmt: skip

_WIDEST = 34  # pixels of a bar, at a zoom of 1
_FILLED = 0.86  # of its room
_MOST_UP = 7  # ticks of a y axis, however high it is
_SMOOTH_UP_TO = 1000  # points of a line that are antialiased
_SYMBOLS = {"square": "s", "round": "o", "ring": "o"}
_NO_PEN = QPen(Qt.PenStyle.NoPen)
_PATTERNS = {
    "filled": Qt.BrushStyle.SolidPattern,
    "hatched": Qt.BrushStyle.Dense3Pattern,
    "outline": Qt.BrushStyle.NoBrush,
}
# The same in every direction that the language of the window may run in.
_CENTRE = Qt.AlignmentFlag.AlignCenter.value | Qt.TextFlag.TextDontClip.value
_ITEM = TypeVar("_ITEM", bound=QGraphicsItem)
_Corners = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # left, right, base, top
_Rects = Any  # pyqtgraph's array of QRectF
_Ticks = Sequence[tuple[float, str]]


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
        self._view: tuple[float, float, float, float] = (0.0, 1.0, 0.0, 1.0)  # places
        self._over: float | None = None
        self.box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0)
        self.box.disableAutoRange()
        self._rulers = _Ruler("bottom"), _Ruler("left")
        whole = QGraphicsWidget()
        for item in (self.box, *self._rulers):
            item.setParentItem(whole)
        for ruler in self._rulers:
            ruler.linkToView(self.box)
            ruler.setZValue(-200)  # below the box: its grid lies behind the bars
        self.setCentralItem(whole)
        self._bars = _Bars()
        self.box.addItem(self._bars, ignoreBounds=True)
        self._lines: list[pg.PlotCurveItem] = []
        self._dots: list[pg.ScatterPlotItem] = []
        self._notes: list[_Words] = []
        self._cursor = _line(30)
        self.box.addItem(self._cursor, ignoreBounds=True)
        self.set_theme(theme)

    # -- what the chart tells it

    def set_theme(self, theme: Theme) -> None:
        """Other colours, and the font of the chart as it is now."""
        self._theme = theme
        self.setBackground(QColor(theme.card))
        font = QFont(self._chart.font())
        font.setPixelSize(max(8, round(11 * unit(self._chart))))
        for ruler in self._rulers:
            ruler.dress(theme, font, unit(self._chart))
        self._cursor.setPen(pg.mkPen(QColor(theme.text), width=1))
        if self._figure is not None:
            self.show_figure(self._figure, self._view)

    def show_figure(self, figure: Figure, view: tuple[float, float, float, float]) -> None:
        """Draw another figure; `view` is the part of it that is seen, in places."""
        self._figure, self._view = figure, view
        across, up = self._rulers
        across.axis, up.axis, across.marked = figure.x, figure.y, _places(figure.x, figure.marked)
        self._lay_out()
        self.box.setRange(xRange=view[:2], yRange=view[2:], padding=0, disableAutoRange=False)
        self.box.updateMatrix()  # now, not within the painting, which would begin another
        self._fill()
        for ruler in self._rulers:
            ruler.redraw()

    def show_cursor(self, place: float | None) -> None:
        """A line at one place of the x axis."""
        self._over = place
        self._cursor.setVisible(place is not None)
        if place is not None:
            self._cursor.setData([place, place], list(self._view[2:]))

    def area(self) -> QRectF:
        """Where the data are, in pixels of the chart."""
        area: QRectF = self.box.geometry()
        return area

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
        for line, curve, dots in zip(figure.lines, self._lines, self._dots, strict=False):
            if line.read:
                x, y = dots.getData() if line.dots and not line.width else curve.getData()
                found[line.name] = figure.x.value(x), figure.y.value(y)
        return found

    def tick_words(self) -> tuple[list[str], list[str]]:
        """The words under the x axis and beside the y axis, as they are drawn."""
        across, up = self._rulers
        return across.drawn_words(), up.drawn_words()

    def notes(self) -> list[str]:
        """The words at points that are seen."""
        return [item.text() for item in self._notes if item.isVisible()]

    # -- layout

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        if event is not None and self._figure is not None:
            self.show_figure(self._figure, self._view)

    def settle(self) -> None:
        """Draw at the size of now, which Qt tells only a plot that is seen."""
        self.range = QRectF(self.rect())
        self.updateMatrix()
        if self._figure is not None:
            self.show_figure(self._figure, self._view)

    def _lay_out(self) -> None:
        across, up = self._rulers
        u, wide, high = unit(self._chart), float(self.width()), float(self.height())
        below = across.metrics.height() + 4 * u
        roomy = high > 150 * u
        if roomy and across.axis.name:
            below += across.metrics.height()
        above = across.metrics.height() + 3 * u if roomy and up.axis.name else 6 * u
        area = QRectF(0, above, 1, max(1.0, high - above - below))
        up.length = area.height()
        beside = up.widest(self._view[2], self._view[3]) + 7 * u
        if not roomy:
            beside = max(beside, across.metrics.horizontalAdvance(across.axis.name) + 12 * u)
        area.setLeft(beside)
        area.setRight(max(beside + 1, wide - 8 * u))
        across.length = area.width()
        for ruler in self._rulers:
            ruler.roomy, ruler.whole = roomy, area
        if area == self.box.geometry():
            return
        self.box.setGeometry(area)
        up.setWidth(round(beside))
        up.setGeometry(QRectF(0, 0, beside, high))
        across.setHeight(round(below))
        across.setGeometry(QRectF(0, area.bottom(), wide, below))

    # -- items

    def _fill(self) -> None:
        figure = self._figure
        assert figure is not None
        left, right, low, high = self._view
        self._bars.begin(QRectF(left, low, right - left, high - low))
        for band in figure.bands:
            self._add_band(band, low, high)
        for bars in figure.bars:
            self._add_bars(bars)
        self._bars.end()
        curves = _pool(self.box, self._lines, len(figure.lines), lambda: _line(10))
        dots = _pool(self.box, self._dots, len(figure.lines), _scatter)
        for line, curve, points in zip(figure.lines, curves, dots, strict=True):
            self._fill_line(curve, points, line)
        notes = _pool(self.box, self._notes, len(figure.notes), _Words)
        taken: list[QRectF] = []
        for note, words in zip(figure.notes, notes, strict=True):
            self._fill_note(words, note, taken)
        self.show_cursor(self._over)

    def _add_band(self, band: Band, low: float, high: float) -> None:
        assert self._figure is not None
        ends = self._figure.x.place(np.array([band.first, band.end]))
        corners = ends[:1], ends[1:], np.array([low]), np.array([high])
        self._bars.add(corners, _NO_PEN, QBrush(QColor(getattr(self._theme, band.colour))))

    def _add_bars(self, bars: Bars) -> None:
        figure = self._figure
        assert figure is not None
        x = bars.x
        pixel = (self._view[1] - self._view[0]) / max(self._rulers[0].length, 1.0)
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

    def _fill_line(self, curve: pg.PlotCurveItem, dots: pg.ScatterPlotItem, line: Line) -> None:
        figure, u = self._figure, unit(self._chart)
        assert figure is not None
        x, y = figure.x.place(line.x), figure.y.place(line.y)
        colour = line.paint.of(self._theme)
        curve.setVisible(line.width > 0)
        if line.width:
            style = Qt.PenStyle.DashLine if line.dashed else Qt.PenStyle.SolidLine
            curve.setPen(pg.mkPen(colour, width=line.width * u, style=style))
            smooth = len(x) <= _SMOOTH_UP_TO and not line.pairs
            connect = "pairs" if line.pairs else "finite"
            curve.setData(x, y, connect=connect, antialias=smooth)
        apart = self._rulers[0].length / max(len(x), 1)
        shown = bool(line.dots) and (apart > 6 * u or not line.width)
        dots.setVisible(shown)
        if shown:
            fill = QColor(self._theme.card) if line.dots == "ring" else colour
            dots.setData(
                x, y, symbol=_SYMBOLS[line.dots], size=6 * u, pen=pg.mkPen(colour, width=1.5),
                brush=pg.mkBrush(fill), antialias=True,
            )  # fmt: skip

    def _fill_note(self, words: _Words, note: Note, taken: list[QRectF]) -> None:
        figure = self._figure
        assert figure is not None
        x = float(figure.x.place(np.array([note.x]))[0])
        y = float(figure.y.place(np.array([note.y]))[0])
        area, view = self.box.geometry(), self._view
        at = QPointF(
            (x - view[0]) / (view[1] - view[0]) * area.width(),
            (view[3] - y) / (view[3] - view[2]) * area.height(),
        )
        colour, card = QColor(getattr(self._theme, note.colour)), QColor(self._theme.card)
        words.put(note.words, colour, card, self._rulers[0].style["tickFont"])
        taken.append(words.settle(note, at, area, 4 * unit(self._chart), taken))


class _Ruler(pg.AxisItem):
    """Ticks of one `Axis` with their words, no more than fit; lines across the chart from y's."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.enableAutoSIPrefix(False)
        self.axis = Axis("")
        self.length = 1.0  # pixels
        self.roomy = False
        self.whole = QRectF()
        self.marked: tuple[float, float] | None = None
        self.metrics = QFontMetricsF(QFont())
        self._grid = self._strong = QPen()
        self._u = 1.0
        self._shown: list[str] = []
        self._specs: tuple[Any, ...] | None = None
        self._asked: tuple[Any, ...] = (None, 0.0, 0.0, 0.0)
        self._known: list[tuple[float, str]] = []

    def dress(self, theme: Theme, font: QFont, u: float) -> None:
        self.setStyle(tickFont=font)
        self.metrics, self._u = QFontMetricsF(font), u
        self._asked = (None, 0.0, 0.0, 0.0)
        self.setPen(QColor(theme.strong_border))
        self.setTextPen(QColor(theme.muted))
        self._grid = QPen(QColor(theme.grid), 1)
        self._strong = QPen(QColor(theme.text), 3 * u)
        self._strong.setCapStyle(Qt.PenCapStyle.FlatCap)

    def redraw(self) -> None:
        self._specs = None
        self.update()

    def drawn_words(self) -> list[str]:
        self.generateDrawSpecs(None)
        return list(self._shown)

    def paint(self, painter: QPainter, option: object, widget: QWidget | None = None) -> None:
        """At once, not by way of a recording."""
        if self._specs is None:
            self._specs = self.generateDrawSpecs(painter)
        painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # "0 ms", never "ms 0"
        self.drawPicture(painter, *self._specs)

    def ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        """As many as fit the length, at least two."""
        asked = (self.axis, low, high, self.length)
        if self._asked[1:] != asked[1:] or self._asked[0] is not asked[0]:
            self._asked, self._known = asked, self._worked_out(low, high)
        return self._known

    def _worked_out(self, low: float, high: float) -> list[tuple[float, str]]:
        if self.orientation == "left":
            fitting = min(self.length / (2.2 * self.metrics.height()), _MOST_UP)
        else:
            ends = self.axis.ticks(low, high, 2)
            widest = max((self.metrics.horizontalAdvance(w) for _, w in ends), default=20.0)
            fitting = self.length / (widest + 14 * self._u)
        return self.axis.ticks(low, high, max(2, int(fitting)))

    def widest(self, low: float, high: float) -> float:
        """Pixels that the words take beside a y axis."""
        words = (self.metrics.horizontalAdvance(w) for _, w in self.ticks(low, high))
        return max(words, default=0.0)

    def boundingRect(self) -> QRectF:
        own = QRectF(QPointF(), self.size())
        return own if self.orientation == "bottom" else own | self.whole

    def generateDrawSpecs(self, painter: QPainter | None) -> tuple[Any, ...]:
        """The line of the axis, the ticks, and their words: as pyqtgraph draws them."""
        low, high = self.range
        ticks = self.ticks(low, high) if high > low else []
        draw = self._across if self.orientation == "bottom" else self._up
        return draw(ticks, low, high)

    def _across(
        self, ticks: Sequence[tuple[float, str]], low: float, high: float
    ) -> tuple[Any, ...]:
        area, line = self.whole, self.metrics.height()
        scale = area.width() / max(high - low, 1e-300)
        lines, words = [], []
        taken: list[tuple[float, float]] = []
        y = 3 * self._u
        for place, text in ticks:
            x = area.left() + (place - low) * scale
            wide = self.metrics.horizontalAdvance(text)
            left = min(
                max(x - wide / 2, area.left() - 6 * self._u), area.right() + 6 * self._u - wide
            )
            gap = 5 * self._u
            if any(left < end + gap and left + wide + gap > begin for begin, end in taken):
                continue
            taken.append((left, left + wide))
            lines.append((self.pen(), QPointF(x, 0.0), QPointF(x, 3 * self._u)))
            words.append((QRectF(left - 1, y, wide + 2, line), _CENTRE, text))
        self._shown = [text for _, _, text in words]
        name = self.axis.name
        if name and self.roomy:
            words.append((QRectF(area.left(), y + line, area.width(), line), _CENTRE, name))
        elif name:
            first = min((begin for begin, _ in taken), default=area.left())
            wide = self.metrics.horizontalAdvance(name)
            if first - 4 * self._u >= wide:
                words.append((QRectF(0, y, wide + 2, line), _CENTRE, name))
        if self.marked is not None:
            ends = (min(max(m, low), high) for m in self.marked)
            first, last = (area.left() + (m - low) * scale for m in ends)
            height = 1.5 * self._u
            lines.insert(0, (self._strong, QPointF(first, height), QPointF(last, height)))
        axis = (self.pen(), QPointF(area.left(), 0.5), QPointF(area.right(), 0.5))
        return axis, lines, words

    def _up(self, ticks: _Ticks, low: float, high: float) -> tuple[Any, ...]:
        area, line = self.whole, self.metrics.height()
        scale = area.height() / max(high - low, 1e-300)
        lines, words = [], []
        right = area.left() - 5 * self._u
        for place, text in ticks:
            y = area.bottom() - (place - low) * scale
            lines.append(
                (self._grid, QPointF(area.left(), round(y)), QPointF(area.right(), round(y)))
            )
            wide = self.metrics.horizontalAdvance(text)
            words.append((QRectF(right - wide - 1, y - line / 2, wide + 2, line), _CENTRE, text))
        self._shown = [text for _, _, text in words]
        if self.axis.name and self.roomy:
            wide = self.metrics.horizontalAdvance(self.axis.name)
            words.append((QRectF(2 * self._u, 0, wide + 2, line), _CENTRE, self.axis.name))
        axis = (self.pen(), QPointF(area.left(), area.top()), QPointF(area.left(), area.bottom()))
        return axis, lines, words


class _Bars(pg.GraphicsObject):
    """All bars of a chart, and the bands behind them: what has one look is painted in one call.

    pyqtgraph's own BarGraphItem has one colour; a dozen of them take four times as long.
    """

    def __init__(self) -> None:
        super().__init__()
        self._bounds = QRectF()
        self._parts: list[tuple[QPen, QBrush, _Rects]] = []
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
        numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3] = (
            left,
            base,
            right - left,
            top - base,
        )
        self._parts[self._used] = pen, brush, rects
        self._used += 1

    def end(self) -> None:
        """All are there."""
        self.update()

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


class _Words(QGraphicsSimpleTextItem):
    """A note, on a little of the card, so that it is read over bars and lines."""

    def __init__(self) -> None:
        super().__init__()
        self.setZValue(40)
        self._ground = QColor()

    def put(self, words: str, colour: QColor, card: QColor, font: QFont) -> None:
        if words != self.text():
            self.setText(words)
        if font != self.font():
            self.setFont(font)
        self.setBrush(colour)
        card.setAlpha(200)
        self._ground = card

    def settle(
        self, note: Note, at: QPointF, area: QRectF, gap: float, taken: Sequence[QRectF]
    ) -> QRectF:
        """Beside a point of the box, within it, and not on another note; where it lies."""
        size = self.boundingRect().size()
        x = at.x() - gap - size.width() if note.left else at.x() + gap
        x = min(max(x, 0.0), max(0.0, area.width() - size.width()))
        above, below = at.y() - size.height() - 1, at.y() + 1
        found = QRectF()
        for y in (below, above) if note.below else (above, below):
            within = min(max(y, 0.0), max(0.0, area.height() - size.height()))
            found = QRectF(QPointF(x, within), size)
            if not any(found.intersects(other) for other in taken):
                break
        self.setPos(found.topLeft())
        return found

    def paint(self, painter: QPainter, option: Any, widget: Any = None) -> None:
        painter.fillRect(self.boundingRect().adjusted(-1, 1, 1, -1), self._ground)
        super().paint(painter, option, widget)


def _pool(
    box: pg.ViewBox, items: list[_ITEM], count: int, make: Callable[[], _ITEM]
) -> list[_ITEM]:
    """The first `count` of them, made if they are not there yet; those beyond are hidden."""
    while len(items) < count:
        item = make()
        if isinstance(item, _Words):
            item.setParentItem(box)  # in pixels
        else:
            box.addItem(item, ignoreBounds=True)
        items.append(item)
    for place, item in enumerate(items):
        if item.isVisible() != (place < count):
            item.setVisible(place < count)
    return items[:count]


def _line(z: int) -> pg.PlotCurveItem:
    curve = pg.PlotCurveItem()
    curve.setZValue(z)
    return curve


def _scatter() -> pg.ScatterPlotItem:
    dots = pg.ScatterPlotItem(pxMode=True)
    dots.setZValue(20)
    return dots


def _highest(
    x: np.ndarray, base: np.ndarray, top: np.ndarray, pixel: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """More bars than pixels: of each pixel's bars the highest, at the pixel's middle."""
    column = np.floor((x - x[0]) / pixel).astype(np.int64)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    middle = x[0] + (column[first] + 0.5) * pixel
    return middle, np.minimum.reduceat(base, first), np.maximum.reduceat(top, first)


def _places(axis: Axis, ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    first, last = axis.place(np.array(ends)).tolist()
    return first, last
