"""Arcs from token to token: over the tokens what looks back, under them what looks ahead.

All arcs are one picture; hovering or walking to a token shows its own arcs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPaintEngine, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.arcs import Arcs, strongest
from explorer.figures.attention.maps import Map
from explorer.figures.drawing.colormaps import difference, lut
from explorer.figures.drawing.colour_scale import Scale, scaled
from explorer.figures.drawing.map_viewport import CellView
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.maps.arc_raster import rasterise
from explorer.ui.canvases.maps.lut_image import picture
from explorer.ui.canvases.maps.map_labels import runs
from explorer.ui.canvases.maps.map_widget import MapWidget
from explorer.ui.canvases.maps.svg_images import draw_picture
from explorer.ui.canvases.opaque import painter_of, write_note
from explorer.ui.look.text_size import for_back_row
from explorer.ui.look.theme import Theme, unit

_FEW = 400  # arcs up to which they are smoothed
_SIDE = 24  # pixels left and right of the tokens: no labels beside an axis


class ArcView(MapWidget):
    """One token a column; several views may share a `CellView` and move together."""

    moved = Signal(object)  # the token under mouse or cursor, or None

    def __init__(
        self,
        theme: Theme,
        read: Callable[[int, int], str] | None = None,
        view: CellView | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(theme, read, view, parent)
        self.setAccessibleName(self.tr("Attention as arcs"))
        self._map: Map | None = None
        self._arcs: Arcs | None = None  # of the whole map
        self._top: float | np.ndarray = 1.0
        self._scale: Scale = "fixed"
        self.images: tuple[QImage, QImage] | None = None
        self._stale = False  # a picture is there, but not the newest
        self._my_turn = True
        # Not `singleShot`: at 0 ms that would be run in the same turn.
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._take_turn)
        self.patient = False  # its arcs are drawn in a turn of their own, so that none is long
        self._of: int | None = None  # the token whose arcs the images hold
        self.hovered.connect(lambda cell: self.moved.emit(None if cell is None else cell[1]))
        self._place()

    def set_arcs(
        self,
        whole: Map,
        arcs: Arcs,
        labels: Sequence[Label],
        padding: Sequence[int],
        top: float | np.ndarray,
        signed: bool = False,
        scale: Scale = "fixed",
    ) -> None:
        """Draw other arcs; `top` is the weight of the strongest ink, or (R, 1) of each query's."""
        self._map, self._arcs, self._top, self._signed, self._note = whole, arcs, top, signed, ""
        self._scale = scale
        self._names.set_labels(labels, runs(padding))
        self.view.set_cells(*whole.weights.shape)
        self._place()
        if self._cursor is not None and self._cursor[1] >= len(whole.weights):
            self.set_cursor(None)
        self.redraw()

    def set_note(self, sentence: str) -> None:
        """Show a sentence in place of arcs."""
        self._map, self._arcs, self.images, self._note = None, None, None, sentence
        self.redraw()

    @property
    def has_map(self) -> bool:
        """False while a sentence or nothing is shown."""
        return self._map is not None

    @property
    def left_out(self) -> int:
        """Weights above 0 that are drawn only when their token is hovered."""
        return 0 if self._arcs is None else self._arcs.left_out

    def sizeHint(self) -> QSize:
        return QSize(round(460 * unit(self)), round(200 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        high = 30 if for_back_row() else 60  # three of them over one another leave no more
        return QSize(round(160 * unit(self)), round(high * unit(self)))

    def redraw(self) -> None:
        self._stale, self._my_turn = True, not self.patient
        self.update()

    def _take_turn(self) -> None:
        self._my_turn = True
        self.update()

    # -- geometry

    def _place(self) -> None:
        u = unit(self)
        self._names.set_font(self.font(), u)
        width = max(self.width() - 2 * _SIDE, 1)
        self.plot = QRectF(_SIDE, 0, width, max(self.height(), 1))
        # One row of cells high without an end: only the columns are ever zoomed or moved.
        self.view.set_size(width, 1e9, 40 * u)

    def _strip(self) -> tuple[float, float]:
        """Top and height of the labels: arcs that look ahead need room below."""
        room = min(self._names.room(self.view) - 6 * unit(self), 0.34 * self.height())
        rest = self.height() - room
        return (rest * 0.5 if self._looks_ahead() else rest - 1), room

    def _looks_ahead(self) -> bool:
        return self._arcs is not None and bool((self._arcs.keys > self._arcs.queries).any())

    def _cell(self, point: QPointF) -> tuple[int, int] | None:
        found = self.view.cell_at(point.x() - self.plot.left(), 0)
        return None if found is None else (found[1], found[1])

    def set_cursor(self, cell: tuple[int, int] | None, aloud: bool = False) -> None:
        """The cursor is a token; keys that move it in either direction are all the same."""
        if cell is not None and cell[0] != cell[1]:
            before = self._cursor
            token = cell[1] if before is None or cell[1] != before[1] else cell[0]
            cell = (token, token)
        super().set_cursor(cell, aloud)

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        if self._arcs is None or self._map is None:
            write_note(painter, self.rect(), self._theme, self._note)
            return
        top, room = self._strip()
        images = self._pictured(painter, top, room)
        if images is not None:
            draw_picture(painter, QPointF(0, 0), images[0])
            if not images[1].isNull():
                draw_picture(painter, QPointF(0, top + room), images[1])
        self._paint_tokens(painter, top, room)

    def _pictured(self, painter: QPainter, top: float, room: float) -> tuple[QImage, QImage] | None:
        """The arcs as pictures; older ones, or none yet, while others have their turn."""
        assert self._arcs is not None
        assert self._map is not None
        screen, seen = self.devicePixelRatioF(), painter.deviceTransform().m11()
        ratio = max(screen, seen)
        token = None if self._cursor is None else self._cursor[1]
        known = self.images
        if (
            known is not None
            and not self._stale
            and (token, ratio) == (self._of, known[0].devicePixelRatio())
        ):
            return known
        document = painter.paintEngine().type() == QPaintEngine.Type.SVG or seen != screen
        if self._stale and not self._my_turn and not document:
            self._turn.start(0)
            return known
        arcs = self._arcs if token is None else strongest(self._map, token)
        self._of, self._stale = token, False
        self.images = self._draw(arcs, top, self.height() - top - room, ratio)
        return self.images

    def _draw(self, arcs: Arcs, above: float, below: float, ratio: float) -> tuple[QImage, QImage]:
        """The arcs over and under the labels."""
        back = arcs.keys <= arcs.queries
        over = self._picture(arcs, back, above, ratio)
        under = self._picture(arcs, ~back, below, ratio) if below > 8 else QImage()
        return over, under.flipped(Qt.Orientation.Vertical) if not under.isNull() else under

    def _picture(self, arcs: Arcs, which: np.ndarray, height: float, ratio: float) -> QImage:
        # Few arcs are drawn twice as large and made smaller, which smooths them.
        fine = 2 if np.count_nonzero(which) <= _FEW else 1
        scale = ratio * fine
        x = (np.arange(self.view.columns) + 0.5 - self.view.left) * self.view.scale
        x = (x + self.plot.left()) * scale
        weights = arcs.weights[which]
        top = self._top if isinstance(self._top, float) else self._top[arcs.queries[which], 0]
        share = np.abs(scaled(weights, self._scale, top))
        levels = np.rint(share * 126).astype(np.uint8) + 1
        if self._signed:  # by strength still, whichever the sign
            levels = np.where(weights < 0, 2 * levels + np.uint8(1), 2 * levels)
        widths = (1 + (share > 0.12) + (share > 0.4)).astype(np.uint8)
        shape = (max(int(height * scale), 1), max(int(self.width() * scale), 1))
        found = rasterise(x[arcs.queries[which]], x[arcs.keys[which]], levels, widths * fine, shape)
        image = picture(found, _inks(self._theme, self._signed))
        if fine > 1:
            size = image.size() / fine
            smooth = Qt.TransformationMode.SmoothTransformation
            image = image.scaled(size, Qt.AspectRatioMode.IgnoreAspectRatio, smooth)
        image.setDevicePixelRatio(ratio)
        return image

    def _paint_tokens(self, painter: QPainter, top: float, room: float) -> None:
        painter.setPen(QPen(QColor(self._theme.border), 1))
        for y in (top, top + room):
            painter.drawLine(QPointF(_SIDE, y), QPointF(_SIDE + self.view.drawn_width, y))
        painter.save()
        painter.translate(0, top)
        strip = QRectF(_SIDE, room, self.plot.width(), 1e9)
        names = self._names
        names.paint_keys(painter, self.view, strip, self._theme)
        marks = [(self._query, "accent")]
        marks.append((self._key if self._cursor is None else self._cursor[1], "selection"))
        for slot, mark in marks:
            if slot is not None and slot < self.view.columns:
                names.paint_one(painter, self.view, strip, self._theme, "key", slot, mark)
        painter.restore()


@lru_cache(maxsize=8)
def _inks(theme: Theme, signed: bool) -> list[int]:
    """Colours of levels, faint to strong: from 1 to 127; of a difference from 2 to 255, those of
    less weight at the odd ones."""
    share = np.arange(1, 128) / 127
    alpha = 0.12 + 0.88 * share**0.6
    table = np.zeros(256, np.uint32)
    if signed:
        colours, far = lut(difference(theme.dark)) / 255, np.arange(1, 128) * 100 // 127
        table[2::2] = _ink(colours[128 + far], alpha)
        table[3::2] = _ink(colours[127 - far], alpha)
    else:
        weak, strong = (
            np.array([c.redF(), c.greenF(), c.blueF()])
            for c in map(QColor, (theme.strong_border, theme.accent))
        )
        table[1:128] = _ink(weak + (strong - weak) * share[:, None] ** 0.5, alpha)
    return [int(ink) for ink in table]


def _ink(colours: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(N, 3) red, green and blue from 0 to 1 as pictures hold them: times their (N,) opacity."""
    parts = np.rint(255 * np.column_stack([alpha, colours * alpha[:, None]])).astype(np.uint32)
    return np.asarray(parts @ np.array([1 << 24, 1 << 16, 1 << 8, 1], np.uint32))
