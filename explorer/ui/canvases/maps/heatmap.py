"""One attention map: a row per query, a column per key, tokens along both sides.

The widget shows levels that were worked out elsewhere and reports which cell is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPaintEngine, QPainter, QPaintEvent, QPen, QPixmap, QRegion
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.strokes import DrawnMask
from explorer.figures.drawing.colormaps import difference
from explorer.figures.drawing.map_viewport import CellView, Pooled
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.canvas import Terms
from explorer.ui.canvases.maps.colour_key import ColourKey, Styles, key_width, paint_key, styles
from explorer.ui.canvases.maps.drawing.cell_marks import kinds_of, paint_marks
from explorer.ui.canvases.maps.lut_image import (
    colour_table,
    dots,
    laid_over,
    masked_area,
    padding_brush,
    picture,
)
from explorer.ui.canvases.maps.map_labels import Axis, runs
from explorer.ui.canvases.maps.map_widget import MapWidget
from explorer.ui.canvases.maps.svg_images import draw_picture
from explorer.ui.canvases.opaque import cover, fill, painter_of, write_note
from explorer.ui.look.theme import Theme, unit

_GRID_FROM = 9  # pixels per cell from which cells are set apart
_KEY_GAP = 12  # pixels between map and key
_PLAIN = ColourKey()


@dataclass(frozen=True, slots=True)
class Frame:
    """Room around the plot in pixels, where it is not worked out from the labels."""

    left: float  # below 20: no labels there
    top: float
    key: bool = False


@dataclass(frozen=True, slots=True)
class _Mark:
    """A frame around cells, or a label that stands out."""

    area: QRect  # everything it paints on
    frame: QRectF | None = None
    label: tuple[Axis, int, str] = ("query", 0, "")


class Heatmap(MapWidget):
    """Rows and columns are slots, both beginning at slot 0."""

    def __init__(
        self,
        theme: Theme,
        read: Callable[[int, int], str] | None = None,
        parent: QWidget | None = None,
        view: CellView | None = None,
    ) -> None:
        """`read` puts one cell into words; maps that share a `view` zoom and move together."""
        super().__init__(theme, read, view, parent)
        self.setAccessibleName(self.tr("Attention map"))
        cover(self)
        self._levels = np.zeros((0, 0), np.uint8)
        self._pooled: Sequence[Pooled] = ()
        self._frame: Frame | None = None
        self._padding: list[tuple[int, int]] = []
        self._colours = "viridis"
        self._still: QPixmap | None = None  # everything but the marks
        self._colour_key = ColourKey()
        self._styles: Styles = frozenset()  # of its cells without a weight
        self._marked: list[_Mark] = []  # as they are on screen
        self._mask: DrawnMask | None = None  # what is changed in its cells
        self._place()

    # -- what is shown

    def set_map(
        self,
        levels: np.ndarray,
        labels: Sequence[Label],
        padding: Sequence[int] = (),
        key: ColourKey = _PLAIN,
        pooled: Sequence[Pooled] = (),
        signed: bool = False,
    ) -> None:
        """Draw (R, K) uint8 levels; `padding` names the slots that hold padding tokens.

        `key` says what the colours stand for; `pooled` are ever smaller copies of a large map;
        `signed` levels are those of a difference.
        """
        self._levels, self._colour_key, self._pooled = levels, key, pooled
        self._signed, self._note = signed, ""
        self._padding = runs(padding)
        self._styles = styles(levels, bool(self._padding))
        self._names.set_labels(labels, self._padding)
        self.view.set_cells(*levels.shape)
        self._place()
        if self._cursor and not (
            self._cursor[0] < levels.shape[0] and self._cursor[1] < levels.shape[1]
        ):
            self.set_cursor(None)
        self.redraw()

    def set_note(self, sentence: str) -> None:
        """Show a sentence in place of a map."""
        self._levels, self._pooled, self._note = np.zeros((0, 0), np.uint8), (), sentence
        self.redraw()

    @property
    def has_map(self) -> bool:
        """False while a sentence or nothing is shown."""
        return bool(self._levels.size)

    @property
    def levels(self) -> np.ndarray:
        """(Q, K) uint8 colours of the cells; empty without a map."""
        return self._levels

    @property
    def styles(self) -> Styles:
        """Which kinds of cells without a weight the map has; its key names these."""
        return self._styles

    def set_mask(self, mask: DrawnMask | None) -> None:
        """Mark the cells that the run or the next one changes; None = none."""
        if mask != self._mask:
            self._mask = mask
            self.redraw()

    @property
    def drawn_mask(self) -> DrawnMask | None:
        """Whose marks are on the cells."""
        return self._mask

    @property
    def changes(self) -> Styles:
        """Which kinds of changed cells the map has, in view or not."""
        return kinds_of(self._mask, *self._levels.shape)

    def set_frame(self, frame: Frame | None) -> None:
        """Fixed room around the plot, so that several maps line up; None = as needed."""
        if frame != self._frame:
            self._frame = frame
            self._place()
            self.redraw()

    def label_room(self) -> float:
        """Pixels that the labels alone would like on either side."""
        return self._names.room(self.view, least=22)

    def set_colours(self, name: str) -> None:
        """Another colour map."""
        self._colours = name
        self.redraw()

    # -- geometry

    def sizeHint(self) -> QSize:
        return QSize(round(460 * unit(self)), round(420 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(120 * unit(self)), round(120 * unit(self)))

    def _place(self) -> None:
        """Leave room for the labels and the key, and give the rest to the map."""
        u = unit(self)
        metrics = self._names.set_font(self.font(), u)
        room = round(min(self._names.room(self.view), 0.3 * min(self.width(), self.height())))
        key = round(key_width(metrics, self._colour_key) + _KEY_GAP * u)
        spare = self.width() - self.height() >= key  # beside the square of a whole map
        key = key if spare or self.width() >= 3.6 * key else 0
        frame = self._frame or Frame(room, room, key=True)
        self._key_room = key if frame.key else 0
        width = self.width() - frame.left - self._key_room - 4
        height = self.height() - frame.top - 3
        self.plot = QRectF(frame.left, frame.top, max(width, 1), max(height, 1))
        if self.parent() is None or not self.isHidden():  # the view is of those that are seen
            self.view.set_size(self.plot.width(), self.plot.height(), 56 * u)

    def filled_width(self, height: int) -> int:
        """The width at which the square of a whole map fills this height, key included."""
        metrics = self._names.set_font(self.font(), unit(self))
        return round(height + key_width(metrics, self._colour_key) + _KEY_GAP * unit(self)) + 4

    def cell_rect(self, query: int, key: int) -> QRectF:
        size = self.view.scale
        corner = self.plot.topLeft() + QPointF(self.view.x_of(key), self.view.y_of(query))
        return QRectF(corner, QPointF(corner.x() + size, corner.y() + size))

    def drawn_area(self) -> QRectF:
        """What the cells take of the plot."""
        return QRectF(
            self.plot.left(), self.plot.top(), self.view.drawn_width, self.view.drawn_height
        )

    # -- painting

    def redraw(self) -> None:
        self._still = None
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        fill(painter, event.rect(), self._theme)
        if not self._levels.size:
            write_note(painter, self.rect().adjusted(6, 6, -6, -6), self._theme, self._note)
            return
        ratio = self.devicePixelRatioF()
        scale = painter.deviceTransform().m11()
        if painter.paintEngine().type() == QPaintEngine.Type.SVG or abs(scale - ratio) > 1e-3:
            # Not on this screen: a picture for a document is drawn for its own resolution.
            self._paint_still(painter, max(scale, 2.0))
        else:
            if self._still is None:
                self._still = QPixmap(self.size() * ratio)
                self._still.setDevicePixelRatio(ratio)
                self._still.fill(Qt.GlobalColor.transparent)
                inner = painter_of(self._still)
                self._paint_still(inner, ratio)
                inner.end()
            painter.drawPixmap(0, 0, self._still)
        self._paint_marks(painter, event.region())

    def _corner(self) -> str:
        """What the axes are; nothing in the maps beside the first."""
        return self.tr("keys →\nqueries ↓") if self._frame is None else ""

    def painted_terms(self) -> Terms:
        """Those of the axes."""
        areas = self._names.corner_areas(self.plot, self._corner()) if self.has_map else []
        return list(zip(("key", "query"), areas, strict=False))

    def _paint_still(self, painter: QPainter, ratio: float) -> None:
        theme, drawn = self._theme, self.drawn_area()
        hatched = masked_area(theme, ratio, drawn.size().toSize())
        colours = difference(theme.dark) if self._signed else self._colours
        table = colour_table(theme, colours, masked_clear=True)
        pixels = self.view.pixels(self._levels, ratio, self._pooled, self._signed)
        image = picture(pixels, table, dots(theme, ratio))
        image.setDevicePixelRatio(ratio)
        # A pixel to a pixel: nothing is smoothed.
        if painter.paintEngine().type() == QPaintEngine.Type.SVG:
            draw_picture(painter, drawn.topLeft(), laid_over(hatched, image))
        else:
            painter.drawPixmap(drawn.topLeft(), hatched)
            painter.drawImage(drawn.topLeft(), image)
        if self.view.scale >= _GRID_FROM:
            self._paint_grid(painter, drawn)
        self._paint_padding(painter, drawn)
        kinds = self._styles
        if self._mask is not None:
            kinds |= paint_marks(painter, drawn, self.view, self._mask, theme, ratio)
        painter.setPen(QPen(QColor(theme.strong_border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(drawn.adjusted(-0.5, -0.5, 0.5, 0.5))
        self._names.paint(painter, self.view, self.plot, theme, self._corner())
        if self._key_room:
            left = drawn.right() + _KEY_GAP * unit(self)
            paint_key(
                painter,
                QRectF(left, drawn.top(), self._key_room, self.plot.height()),
                theme,
                colours,
                self._colour_key,
                kinds,
            )

    def _paint_grid(self, painter: QPainter, drawn: QRectF) -> None:
        painter.setPen(QPen(QColor(self._theme.card), 1))
        view = self.view
        for row in range(int(view.top) + 1, view.rows):
            y = round(drawn.top() + view.y_of(row))
            if y >= drawn.bottom():
                break
            painter.drawLine(QPointF(drawn.left(), y), QPointF(drawn.right(), y))
        for column in range(int(view.left) + 1, view.columns):
            x = round(drawn.left() + view.x_of(column))
            if x >= drawn.right():
                break
            painter.drawLine(QPointF(x, drawn.top()), QPointF(x, drawn.bottom()))

    def _paint_padding(self, painter: QPainter, drawn: QRectF) -> None:
        brush = padding_brush(self._theme)
        for first, last in self._padding:
            x0, x1 = self.view.x_of(first), self.view.x_of(last + 1)
            y0, y1 = self.view.y_of(first), self.view.y_of(last + 1)
            columns = QRectF(drawn.left() + x0, drawn.top(), x1 - x0, drawn.height())
            rows = QRectF(drawn.left(), drawn.top() + y0, drawn.width(), y1 - y0)
            painter.fillRect(columns & drawn, brush)
            painter.fillRect(rows & drawn, brush)

    def _marks_changed(self) -> None:
        """Only where a mark comes or goes: the mouse moves far more often than the map changes."""
        if not self.isVisible():
            return  # one of a comparison's maps: all of it is painted when it is shown
        before, self._marked = self._marked, self._marks()
        areas = [mark.area for mark in before if mark not in self._marked]
        areas += [mark.area for mark in self._marked if mark not in before]
        if areas:
            self.update(reduce(QRegion.united, areas, QRegion()))

    def _marks(self) -> list[_Mark]:
        if not self._levels.size:
            return []
        query, key, cursor = self._query, self._key, self._cursor
        if cursor is not None:
            key = cursor[1]
        found: list[_Mark] = []
        if query is not None and query < self.view.rows:
            band = self.cell_rect(query, 0)
            band.setLeft(self.drawn_area().left())
            band.setRight(self.drawn_area().right())
            found += [self._framed(band), self._labelled("query", query, "accent")]
            if cursor is None and key is not None and key < self.view.columns:
                found.append(self._framed(self.cell_rect(query, key)))
        if cursor is not None:
            found.append(self._framed(self.cell_rect(*cursor)))
            if cursor[0] != query:
                found.append(self._labelled("query", cursor[0], "selection"))
        if key is not None and key < self.view.columns:
            found.append(self._labelled("key", key, "selection"))
        return found

    def _framed(self, cells: QRectF) -> _Mark:
        """A frame never thinner than a mark."""
        least = 3.0
        wider, taller = max(0.0, least - cells.width()) / 2, max(0.0, least - cells.height()) / 2
        frame = cells.adjusted(-wider - 1.5, -taller - 1.5, wider + 1.5, taller + 1.5)
        frame &= self.drawn_area().adjusted(-2, -2, 2, 2)
        return _Mark(frame.adjusted(-2, -2, 2, 2).toAlignedRect(), frame)

    def _labelled(self, axis: Axis, slot: int, mark: str) -> _Mark:
        area = self._names.area(self.view, self.plot, axis, slot)
        beside = self._names.half_covered(self.view, self.plot, axis, slot)
        return _Mark(reduce(QRect.united, beside, area), None, (axis, slot, mark))

    def _paint_marks(self, painter: QPainter, region: QRegion) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._marked = self._marks()
        for mark in self._marked:
            if mark.frame is None:
                axis, slot, _ = mark.label
                for area in self._names.half_covered(self.view, self.plot, axis, slot):
                    fill(painter, area, self._theme)
        for mark in self._marked:
            if not region.intersects(mark.area):
                continue
            if mark.frame is not None:
                self._paint_frame(painter, mark.frame)
            else:
                self._names.paint_one(painter, self.view, self.plot, self._theme, *mark.label)

    def _paint_frame(self, painter: QPainter, frame: QRectF) -> None:
        """Two lines, light in dark, so that they show on any colour."""
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.cursor_halo), 3))
        painter.drawRect(frame)
        painter.setPen(QPen(QColor(self._theme.cursor), 1))
        painter.drawRect(frame)
