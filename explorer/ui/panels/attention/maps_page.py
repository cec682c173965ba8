"""One map, or three side by side: with the mask, without it, and the difference."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent

from explorer.figures.attention.map_request import Beside, DrawnMap, DrawnMaps
from explorer.figures.attention.strokes import DrawnMask
from explorer.figures.drawing.colour_scale import Scale
from explorer.figures.drawing.map_viewport import CellView
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.maps.colour_key import ColourKey, Styles
from explorer.ui.canvases.maps.heatmap import Frame, Heatmap
from explorer.ui.canvases.maps.map_legend import MapLegend
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panels.attention import scales, words
from explorer.ui.panels.attention.joined_maps import JoinedMaps

_BESIDE = 4  # pixels left of or above a map whose labels stand at another one
_GAP = 3
_ABOVE_KEY = 5  # pixels
_KEY_ROWS = 3  # at the most, under maps in a row
_EDGE = 4  # pixels right of a plot, where marks may overhang


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Where three maps, their titles and the key go; `first` and `top` say who has labels."""

    maps: tuple[QRect, ...]
    titles: tuple[QRect, ...]
    key: QRect
    frames: tuple[Frame, ...]
    side: int  # of a plot


def in_a_row(
    width: int, height: int, room: int, title: int, key: int, named: int = 0
) -> Arrangement:
    """All three in one row, the key under them; apart if their names need `named` pixels."""
    under = room + title + _ABOVE_KEY + key
    side = min((width - room - 2 * (_BESIDE + _GAP) - _EDGE) // 3, height - under)
    side = max(side, 20)
    spare = (width - room - 3 * side - 2 * (_BESIDE + _GAP) - _EDGE) // 3
    apart = max(0, min(named - side, spare))
    maps, titles = [], []
    x = 0
    for place in range(3):
        left = _BESIDE if place else room
        maps.append(QRect(x, title, left + side + _EDGE, room + side + 3))
        titles.append(QRect(x + left, 0, side + apart, title))
        x += left + side + apart + _GAP
    frames = (Frame(room, room), Frame(_BESIDE, room), Frame(_BESIDE, room))
    bottom = QRect(0, title + room + side + _ABOVE_KEY, width, key)
    return Arrangement(tuple(maps), tuple(titles), bottom, frames, side)


def in_a_square(width: int, height: int, room: int, title: int) -> Arrangement:
    """Two over one, the key in the fourth corner."""
    side = (width - room - _BESIDE - _GAP - _EDGE) // 2
    side = max(min(side, (height - 2 * title - room - _BESIDE - 8) // 2), 20)
    right, below = room + side + _GAP, title + room + side + 3
    maps = (
        QRect(0, title, room + side + _EDGE, room + side + 3),
        QRect(right, title, _BESIDE + side + _EDGE, room + side + 3),
        QRect(0, below + title, room + side + _EDGE, _BESIDE + side + 3),
    )
    titles = (
        QRect(room, 0, side, title),
        QRect(right + _BESIDE, 0, side, title),
        QRect(room, below, side, title),
    )
    frames = (Frame(room, room), Frame(_BESIDE, room), Frame(room, _BESIDE))
    corner = QRect(right + _BESIDE, below + title + _BESIDE, width - right - _BESIDE, side)
    return Arrangement(maps, titles, corner, frames, side)


class MapsPage(JoinedMaps):
    """Maps in a row or a square, and the key to their colours."""

    counted = Signal()  # another number of maps is shown

    def __init__(self, theme: Theme, read: Callable[[int, int], str]) -> None:
        super().__init__()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the maps' keys
        self.view = CellView()
        self._colours = "viridis"
        self._moved = False  # it has another size, and the maps are still where they were
        self._later: deque[Callable[[], None]] = deque()  # a turn of the event loop for each
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._take_turn)
        self.maps = [Heatmap(theme, read, self, self.view) for _ in range(3)]
        self.join(self.maps)
        self._titles = [ElidedLabel("", self) for _ in range(3)]
        self.key = MapLegend(theme, self)
        self._keys = ColourKey(), ColourKey()  # of the maps and of their difference
        for title in self._titles:
            title.setProperty("look", "small")
            title.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self._name_sides(None)
        self._arrange()

    # -- what is shown

    def show_drawn(
        self, drawn: DrawnMaps, labels: Sequence[Label], padding: Sequence[int], query: int
    ) -> None:
        """Show one map or three."""
        self._later.clear()
        self._name_sides(drawn.request.beside)
        come = len(drawn.maps) - self._count
        if come:
            self._count = len(drawn.maps)
            self._arrange()
            self.counted.emit()
        shows = [
            partial(self._show_map, one, found, labels, padding, drawn.request.scale)
            for one, found in zip(self.maps, drawn.maps, strict=False)
        ]
        if come > 0 and self.isVisible():  # all painted in one turn would hold the mouse up
            for one in self.maps[1 : self._count]:
                one.set_note("")
            self._later.extend(shows[1:])
            self._turn.start(0)
            shows = shows[:1]
        for show in shows:
            show()
        if self._count > 1:
            tops = [1.0, 1.0]
            for found in filter(None, drawn.maps):
                tops[found.signed] = found.top
            scale = drawn.request.scale
            self._keys = scales.key(scale, tops[0]), scales.key(scale, tops[1], signed=True)
            self._show_key()

    def mark_cells(self, mask: DrawnMask | None, own: int) -> None:
        """Mark changed cells on one of the maps; the others are of other runs."""
        for place, one in enumerate(self.maps):
            one.set_mask(mask if place == own else None)
        self._follow_kinds()

    def _follow_kinds(self) -> None:
        if self._count > 1 and self._kinds() != self.key.shown:
            self._show_key()

    def _kinds(self) -> Styles:
        """What the maps have besides weights."""
        return frozenset[str]().union(
            *(one.styles | one.changes for one in self.maps[: self._count])
        )

    def _show_key(self) -> None:
        self.key.set_key(self._colours, self._keys, self._kinds())
        self._line_up()

    def _name_sides(self, beside: Beside | None) -> None:
        names = words.side_names(beside)
        for title, one, name in zip(self._titles, self.maps, names, strict=True):
            if title.text() != name:
                title.setText(name)
            if one is not self.maps[0]:
                one.setAccessibleName(self.tr("Attention map, {0}").format(name))

    def _show_map(
        self,
        one: Heatmap,
        found: DrawnMap | None,
        labels: Sequence[Label],
        padding: Sequence[int],
        scale: Scale,
    ) -> None:
        if found is None:
            one.set_note(self.tr("not computed yet"))
            return
        key = scales.key(scale, found.top, found.signed)
        one.set_map(found.levels, labels, padding, key, found.pooled, found.signed)

    @property
    def busy(self) -> bool:
        """True while a map is still to be shown, or to find its place."""
        return self._turn.isActive()

    def _take_turn(self) -> None:
        # Qt runs the timers that are due before it paints what an event of the same turn changed.
        QCoreApplication.sendPostedEvents(self.window(), QEvent.Type.UpdateRequest.value)
        if self._moved:
            self._line_up()
        elif self._later:
            self._later.popleft()()
            self._follow_kinds()
        if self._later:
            self._turn.start(0)

    def set_note(self, sentence: str) -> None:
        if not self._later:  # else they are on their way
            super().set_note(sentence)

    def set_colours(self, name: str) -> None:
        self._colours = name
        for one in self.maps:
            one.set_colours(name)
        self.key.set_colours(name)

    def show_part(self, zoom: float, left: float, top: float) -> None:
        """As `CellView.show_part`."""
        self.view.show_part(zoom, left, top)
        for one in self.maps:
            one.redraw()

    def minimumSizeHint(self) -> QSize:
        return QSize(round(120 * unit(self)), round(120 * unit(self)))

    @property
    def beside(self) -> bool:
        """True while maps stand side by side."""
        return self._count > 1

    # -- places

    def _arrange(self) -> None:
        """Which of the widgets are seen."""
        beside = self._count > 1
        for title, one in zip(self._titles, self.maps, strict=True):
            title.setVisible(beside)
            one.setVisible(beside or one is self.maps[0])
        self.key.setVisible(beside)
        self._line_up()

    def _line_up(self) -> None:
        """All three plots of one size, in a row or two over one, whichever makes them larger."""
        self._moved = False
        if self._count == 1:
            self.maps[0].set_frame(None)
            self.maps[0].setGeometry(self.rect())
            return
        width, height = self.width(), self.height()
        metrics = QFontMetrics(self._titles[0].font())
        title = metrics.height() + 2
        named = max(metrics.horizontalAdvance(label.text()) for label in self._titles) + 4
        room = round(min(self.maps[0].label_room(), 0.15 * width))
        key = self.key.row_height() * min(self.key.rows_in(width), _KEY_ROWS)
        row, square = (
            in_a_row(width, height, room, title, key, named),
            in_a_square(width, height, room, title),
        )
        best = square if square.side > row.side else row
        for one, place, frame in zip(self.maps, best.maps, best.frames, strict=True):
            one.set_frame(frame)
            one.setGeometry(place)
        for label, place in zip(self._titles, best.titles, strict=True):
            label.setGeometry(place)
        self.key.setGeometry(best.key)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self.isVisible():
            self._line_up()
            return
        # In a turn of its own: what made the room smaller is painted in this one.
        self._moved = True
        self._turn.start(0)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._line_up()
