"""A chart: it is read with the mouse or the keys, zoomed, moved, and put back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QKeyEvent,
    QMouseEvent,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.charts.legend import Legend
from explorer.ui.canvases.charts.marks import Figure
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.icons import icon
from explorer.ui.look.theme import Theme, unit

if TYPE_CHECKING:
    from explorer.ui.canvases.charts.plot import Plot

_ZOOM_STEP = 1.25
_LEGEND_FROM = 120  # pixels of height, at a zoom of 1
_MOVES = {
    Qt.Key.Key_Left: -1,
    Qt.Key.Key_Right: 1,
    Qt.Key.Key_PageUp: -10,
    Qt.Key.Key_PageDown: 10,
    Qt.Key.Key_Home: -sys.maxsize,
    Qt.Key.Key_End: sys.maxsize,
}
_View = tuple[float, float, float, float]  # left, right, bottom, top, in places


@dataclass(frozen=True, slots=True, eq=False)
class ChartReading:
    """What a chart shows, read off what is drawn."""

    series: dict[str, tuple[np.ndarray, np.ndarray]]  # by its name: x and y, or heights of bars
    axes: tuple[str, str]  # names of x and y
    ticks: tuple[list[str], list[str]]  # words under x and beside y
    ranges: tuple[tuple[float, float], tuple[float, float]]  # of x and y, in values
    legend: tuple[str, ...]
    notes: tuple[str, ...]  # words at points
    cursor: int | None  # the place that is read


class Chart(Canvas):
    """Shows figures.  Its plot is made when it is first seen: until then it only keeps them."""

    hovered = Signal(str)  # what the place under the cursor says; "" when it is left
    picked = Signal(int)  # a place was clicked, or chosen with Enter

    def __init__(
        self, theme: Theme, tip: Callable[[int], str], parent: QWidget | None = None
    ) -> None:
        """`tip` words one place."""
        super().__init__(parent)
        self._theme, self._tip = theme, tip
        self._given: Figure | None = None  # as it was handed over
        self._due: Callable[[], Figure | None] | None = None  # not made before it is looked at
        self._figure: Figure | None = None  # with the axes as the user has turned them
        self._over: int | None = None
        self._seen: _View | None = None  # what zooming and moving left of the figure; None = all
        self._log: tuple[bool | None, bool | None] = (None, None)  # the user's word, x and y
        self._pressed: QPointF | None = None
        self._moved = False
        self._made: Plot | None = None
        describe(self)
        cover(self)
        self.setProperty(KEEPS_ARROWS, True)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self._legend = Legend(theme)
        self._legend.setVisible(False)
        self._legend.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addStretch(1)
        self._column.addWidget(self._legend)
        self._home: QToolButton | None = None  # with the plot: a window has a dozen charts
        self._logs: tuple[QToolButton, ...] = ()

    def _build_buttons(self) -> None:
        self._home = self._button(self.tr("Show all of the chart (0)"), self.fit)
        self._home.setIcon(icon("fit", self._theme))
        self._logs = (
            self._button(self.tr("Logarithmic axis"), lambda: self._turn(0), "log x"),
            self._button(self.tr("Logarithmic axis"), lambda: self._turn(1), "log"),
        )

    def _button(self, tip: str, act: Callable[[], None], text: str = "") -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setCheckable(bool(text))
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.setProperty("look", "title-button")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setCursor(Qt.CursorShape.ArrowCursor)
        button.clicked.connect(act)
        button.hide()
        return button

    # -- figures

    def show_figure(self, figure: Figure | None) -> None:
        """Draw another one, or nothing.  What was zoomed into stays, where it is still there."""
        self._due, self._given = None, figure
        self._adopt()
        if self._over is not None:  # the same place may say something else now
            over, self._over = self._over, None
            self._set_over(over if over < self._count else None)

    def show_made(self, make: Callable[[], Figure | None]) -> None:
        """Draw what `make` gives: now, or if nobody sees the chart, when somebody does."""
        if self.isVisible():
            self.show_figure(make())
        else:
            self._due = make

    def _catch_up(self) -> None:
        if self._due is not None:
            self.show_figure(self._due())

    def _adopt(self) -> None:
        figure = self._given
        if figure is not None:
            x, y = (
                axis if log is None or not axis.switch else axis.turned(log)
                for axis, log in zip((figure.x, figure.y), self._log, strict=True)
            )
            figure = replace(figure, x=x, y=y)
        self._figure = figure
        if figure is not None and self._seen is not None:
            self._seen = _within(self._seen, _all_of(figure), _limits(figure))
        self._legend.set_entries(() if figure is None else figure.legend)
        self._show_legend()
        self._draw()

    def _draw(self) -> None:
        """Hand the figure to the plot, if there is one by now."""
        figure = self._figure
        if self._made is not None:
            self._made.setVisible(figure is not None)
            if figure is not None:
                self._made.show_figure(figure, self._view)
        self._place_buttons()

    @property
    def _view(self) -> _View:
        assert self._figure is not None
        return self._seen or _all_of(self._figure)

    @property
    def plot(self) -> Plot:
        """The pyqtgraph side; made now if it is not there yet."""
        if self._made is None:
            from explorer.ui.canvases.charts.plot import Plot

            self._made = Plot(self._theme, self)
            self._build_buttons()
            self._column.takeAt(0)  # what kept its room
            self._column.insertWidget(0, self._made, 1)
            self._made.lower()
            self._made.show()
            self._column.activate()
            self._draw()
        self._catch_up()
        return self._made

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._legend.set_theme(theme)
        if self._home is not None:
            self._home.setIcon(icon("fit", theme))
        if self._made is not None:
            self._made.set_theme(theme)
        self.update()

    # -- reading

    def summary(self) -> str:
        """What a screen reader says before anything is looked at: how much there is."""
        self._catch_up()
        if not self._count:
            return ""
        first = self._tip(0)
        if self._count == 1:
            return first
        return self.tr("{0} places; first: {1}").format(f"{self._count:,}", first)

    @property
    def over(self) -> int | None:
        """The place under the mouse or the cursor, if any."""
        return self._over

    @property
    def drawn(self) -> ChartReading | None:
        """What is drawn, as the plot has it; None while there is nothing to draw."""
        self._catch_up()
        figure = self._figure
        if figure is None:
            return None
        left, right, bottom, top = self._view
        return ChartReading(
            series=self.plot.drawn(),
            axes=(figure.x.name, figure.y.name),
            ticks=self.plot.tick_words(),
            ranges=(
                tuple(figure.x.value(np.array([left, right])).tolist()),
                tuple(figure.y.value(np.array([bottom, top])).tolist()),
            ),
            legend=tuple(entry.words for entry in figure.legend),
            notes=tuple(self.plot.notes()),
            cursor=self._over,
        )

    def point_of(self, place: int, y: float | None = None) -> QPointF:
        """Where a place lies in this widget, at a value of y, or halfway up."""
        plot, figure = self.plot, self._figure
        assert figure is not None
        if y is None:
            return QPointF(plot.pixels(self._x_of(place), 0.0).x(), plot.area().center().y())
        return plot.pixels(self._x_of(place), float(figure.y.place(np.array([y]))[0]))

    def _x_of(self, place: int) -> float:
        """Where it lies along the x axis."""
        assert self._figure is not None
        return float(self._figure.x.place(self._figure.places[place : place + 1])[0])

    @property
    def _count(self) -> int:
        return 0 if self._figure is None else len(self._figure.places)

    def _place_at(self, point: QPointF) -> int | None:
        """The place that is nearest along x; None beside the data."""
        figure = self._figure
        if figure is None or self._made is None or not self._count:
            return None
        area = self._made.area()
        if not area.left() <= point.x() < area.right():
            return None
        x, _ = self._made.places(point)
        return int(np.abs(figure.x.place(figure.places) - x).argmin())

    def _set_over(self, place: int | None, aloud: bool = False) -> None:
        if place == self._over:
            return
        self._over = place
        words = "" if place is None else self._tip(place)
        say(self, words, aloud)
        self.hovered.emit(words)
        if self._made is not None and self._figure is not None:
            self._made.show_cursor(None if place is None else self._x_of(place))

    # -- zoom

    def fit(self) -> None:
        """Show all of the figure."""
        self._look_at(None)

    @property
    def zoomed(self) -> bool:
        """True if only a part of the figure is seen."""
        return self._seen is not None

    def zoom(self, factor: float, at: QPointF | None = None) -> None:
        """Along x about a point of this widget, or the cursor; beside the y axis along y."""
        if self._figure is None:
            return
        if at is None:
            at = self.point_of(self._over) if self._over is not None else self.plot.area().center()
        left, right, bottom, top = self._view
        x, y = self.plot.places(at)
        if at.x() >= self.plot.area().left():
            left, right = x - (x - left) / factor, x + (right - x) / factor
        else:
            bottom, top = y - (y - bottom) / factor, y + (top - y) / factor
        self._look_at((left, right, bottom, top))

    def pan(self, dx: float, dy: float) -> None:
        """Move what is seen by pixels."""
        if self._figure is None:
            return
        area = self.plot.area()
        left, right, bottom, top = self._view
        x, y = dx / area.width() * (right - left), dy / area.height() * (top - bottom)
        self._look_at((left - x, right - x, bottom + y, top + y))

    def _look_at(self, view: _View | None) -> None:
        if self._figure is None:
            return
        whole = _all_of(self._figure)
        self._seen = None if view is None else _within(view, whole, _limits(self._figure))
        self._draw()

    def _turn(self, which: int) -> None:
        """The x (0) or y (1) axis logarithmic or not."""
        log = list(self._log)
        log[which] = self._logs[which].isChecked()
        self._log = log[0], log[1]
        self._seen = None
        self._adopt()

    def _place_buttons(self) -> None:
        """Over the top right corner: log, where it helps, and home, where it would do something."""
        figure = self._figure
        if self._home is None:
            return
        axes = () if figure is None else (figure.x, figure.y)
        right = self.width()
        for button, axis in zip(self._logs, axes, strict=False):
            button.setChecked(axis.log)
        shown = [
            (self._home, self._seen is not None),
            *((b, bool(axes) and axes[i].switch) for i, b in enumerate(self._logs)),
        ]
        for button, seen in shown:
            if seen:
                size = button.sizeHint()
                right -= size.width()
                button.setGeometry(QRect(right, 0, size.width(), size.height()))
            if seen != button.isVisibleTo(self):
                button.setVisible(seen)

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        point = event.position()
        if self._pressed is not None:
            move = point - self._pressed
            if self._moved or move.manhattanLength() >= 4:
                self._moved, self._pressed = True, point
                self.pan(move.x(), move.y())
            return
        self._set_over(self._place_at(point))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._moved = event.position(), False

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        place = self._place_at(event.position())
        if self._pressed is not None and not self._moved and place is not None:
            self.picked.emit(place)
        self._pressed = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.zoomed:
            self.fit()
        else:
            self.zoom(4.0, event.position())

    def wheelEvent(self, event: QWheelEvent) -> None:
        steps = event.angleDelta().y() / 120
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier or self._figure is None:
            event.ignore()  # Ctrl and wheel zoom the whole program
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.pan(40 * steps * unit(self), 0)
        else:
            self.zoom(_ZOOM_STEP**steps, event.position())
        self._set_over(self._place_at(event.position()))
        event.accept()

    def pointer_left(self) -> None:
        self._set_over(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if not self._count:
            super().keyPressEvent(event)
        elif key in _MOVES:
            start = self._over if self._over is not None else self._before(_MOVES[key])
            place = min(max(start + _MOVES[key], 0), self._count - 1)
            self._reveal(place)
            self._set_over(place, aloud=True)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._over is not None:
            self.picked.emit(self._over)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(_ZOOM_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / _ZOOM_STEP)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self.zoomed:
            self.pan(0, (40 if key == Qt.Key.Key_Up else -40) * unit(self))
        elif key == Qt.Key.Key_0:
            self.fit()
        else:
            super().keyPressEvent(event)

    def _before(self, move: int) -> int:
        """The place that the first move starts from: one that it leads onto the marked place."""
        figure = self._figure
        if figure is None or figure.marked is None or abs(move) > 10:
            return -1 if move == 1 else 0
        middle = sum(figure.marked) / 2
        return int(np.abs(figure.places - middle).argmin()) - move

    def _reveal(self, place: int) -> None:
        """Move what is seen, so that a place is in it."""
        if self._seen is None or self._figure is None:
            return
        left, right, bottom, top = self._seen
        x = self._x_of(place)
        slack = (right - left) * 0.05
        by = min(0.0, x - slack - left) + max(0.0, x + slack - right)
        if by:
            self._look_at((left + by, right + by, bottom, top))

    # -- events

    def tip_at(self, point: QPoint) -> str:
        place = self._place_at(QPointF(point))
        return "" if place is None else self._tip(place)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.set_theme(self._theme)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.plot.update()

    def render(self, *arguments: Any) -> None:
        """As on screen, also while another chart has its place there."""
        plot, parent = self.plot, self.parentWidget()
        if self.isVisible():
            super().render(*arguments)
            return
        self._show_legend()  # Qt lays out only what is seen
        self._column.setGeometry(self.rect())
        plot.settle()
        super().render(*arguments)
        around = None if parent is None else parent.layout()
        if around is not None:  # it has made room for what it takes to be seen now
            around.invalidate()
            around.activate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_legend()
        self._place_buttons()

    def _show_legend(self) -> None:
        roomy = self.height() >= _LEGEND_FROM * unit(self)
        self._legend.setVisible(roomy and self._figure is not None and bool(self._figure.legend))

    def paintEvent(self, event: QPaintEvent) -> None:
        fill(painter_of(self), event.rect(), self._theme)

    def sizeHint(self) -> QSize:
        return QSize(round(240 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(140 * unit(self)), round(54 * unit(self)))


def _all_of(figure: Figure) -> _View:
    """The whole figure, in places; a range that is no number, as of figures that are none, is 0."""
    ends = (*figure.x.place(np.array(figure.x_range)), *figure.y.place(np.array(figure.y_range)))
    left, right, bottom, top = (float(end) if isfinite(end) else 0.0 for end in ends)
    return left, right if right > left else left + 1, bottom, top if top > bottom else bottom + 1


def _limits(figure: Figure) -> _View:
    """How far it can be moved: up to the highest value, which the whole may leave out."""
    left, right, bottom, top = _all_of(figure)
    if figure.top is None:
        return left, right, bottom, top
    return left, right, bottom, max(top, float(figure.y.place(np.array([figure.top]))[0]))


def _within(view: _View, whole: _View, limits: _View) -> _View | None:
    """The nearest view that does not leave the limits; None if it is the whole."""
    found: list[float] = []
    for i in (0, 2):
        low, high, first, last = view[i], view[i + 1], limits[i], limits[i + 1]
        span = min(max(high - low, (whole[i + 1] - whole[i]) / 1e4), last - first)
        middle = min(max((low + high) / 2, first + span / 2), last - span / 2)
        found += [middle - span / 2, middle + span / 2]
    close = all(abs(a - b) <= 1e-6 * max(abs(b), 1e-6) for a, b in zip(found, whole, strict=True))
    return None if close else (found[0], found[1], found[2], found[3])
