"""Tokens along both sides of a map: as many as can be read, all that are marked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPixmap

from explorer.figures.drawing.map_viewport import CellView
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.text_size import small_px
from explorer.ui.look.theme import Theme

Axis = Literal["query", "key"]
_LONGEST = 16  # characters
_PICTURES = 4096  # kept at most
_LEAST_ROOM = 20  # pixels beside the plot; with less, the map beside this one has the labels
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_CORNER = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom


class MapLabels:
    """Queries to the left of the plot, keys above it, turned a quarter."""

    def __init__(self) -> None:
        self._labels: Sequence[Label] = ()
        self._texts: list[str] = []
        self._padding: Sequence[tuple[int, int]] = ()
        self._longest: dict[int, float] = {}  # label from this slot on, in pixels
        self._font = QFont()
        self._fits, self._pictures = _kept(self._font.key())
        self._unit = 1.0
        self._line = 1.0

    def set_labels(self, labels: Sequence[Label], padding: Sequence[tuple[int, int]]) -> None:
        """One label per slot; `padding` holds the (first, last) slots of each padded run."""
        self._padding = padding
        if self._labels is not labels:
            self._labels, self._longest = labels, {}
            self._texts = [elide(label.text, _LONGEST) for label in labels]

    def set_font(self, font: QFont, unit: float) -> QFontMetricsF:
        """Use a small version of the widget's font; returns its metrics."""
        small = QFont(font)
        small.setPixelSize(small_px(unit))
        if small != self._font:
            self._font, self._unit, self._longest = small, unit, {}
            self._fits, self._pictures = _kept(small.key())
        metrics = QFontMetricsF(small)
        self._line = metrics.height()
        return metrics

    def room(self, view: CellView, least: float = 62) -> float:
        """Pixels that the labels in view would like, on either side; `least` at a zoom of 1."""
        # What is in view decides, or a single long token far away would take the room.
        first = max(0, int(min(view.top, view.left)))
        if first not in self._longest:
            texts = set(self._texts[first : first + 400])
            widths = [self._fitted(text, 130 * self._unit)[1] for text in texts]
            self._longest = {first: max(widths, default=0.0)}  # asked for a dozen times in a row
        return max(self._longest[first] + 8 * self._unit, least * self._unit)

    def paint(
        self, painter: QPainter, view: CellView, plot: QRectF, theme: Theme, corner: str
    ) -> None:
        """All labels that have room, and what the axes are in the corner."""
        u = self._unit
        painter.setFont(self._font)
        painter.setPen(QColor(theme.muted))
        if self.corner_areas(plot, corner):
            box = QRectF(0, 0, plot.left() - 5 * u, plot.top() - 3 * u)
            painter.drawText(box, _CORNER, corner)
        stride = view.stride(self._line * 0.86)
        rows = self._shown(view.top, view.drawn_height / view.scale, view.rows, stride)
        if plot.left() >= _LEAST_ROOM:
            self._paint_all(painter, view, plot, theme, "query", rows)
        self.paint_keys(painter, view, plot, theme)

    def corner_areas(self, plot: QRectF, corner: str) -> list[QRectF]:
        """Where each line in the corner is; none if there is no room for them."""
        metrics, u = QFontMetricsF(self._font), self._unit
        right, bottom = plot.left() - 5 * u, plot.top() - 3 * u
        lines = corner.split("\n") if corner else []
        widths = [metrics.horizontalAdvance(line) for line in lines]
        if max(widths, default=0) > right:
            return []
        high = metrics.lineSpacing()
        tops = [bottom - high * below for below in range(len(lines), 0, -1)]
        return [
            QRectF(right - wide, top, wide, high) for wide, top in zip(widths, tops, strict=True)
        ]

    def paint_keys(self, painter: QPainter, view: CellView, plot: QRectF, theme: Theme) -> None:
        """The labels above the plot alone."""
        stride = view.stride(self._line * 0.86)
        columns = self._shown(view.left, view.drawn_width / view.scale, view.columns, stride)
        self._paint_all(painter, view, plot, theme, "key", columns)

    def _shown(self, first: float, count: float, cells: int, stride: int) -> range:
        begin = -(-int(first) // stride) * stride
        return range(begin, min(cells, len(self._texts), int(np.ceil(first + count))), stride)

    def _paint_all(
        self,
        painter: QPainter,
        view: CellView,
        plot: QRectF,
        theme: Theme,
        axis: Axis,
        slots: range,
    ) -> None:
        """Unmarked labels: as pictures that are kept, where the painter is one for the screen.

        Setting text is by far the dearest part of painting a map that grows with every step.
        """
        device = painter.device()
        ratio = device.devicePixelRatioF()
        if not isinstance(device, QPixmap) or painter.deviceTransform().m11() != ratio:
            for slot in slots:
                self.paint_one(painter, view, plot, theme, axis, slot)
            return
        turned = axis == "key"
        gap, half = 4 * self._unit, self._line / 2
        room = (plot.top() if turned else plot.left()) - gap
        first, last = (plot.left(), plot.right()) if turned else (plot.top(), plot.bottom())
        for slot in slots:
            at = slot + 0.5
            middle = first + (view.x_of(at) if turned else view.y_of(at))
            if not first <= middle <= last:
                continue
            picture, length = self._pictured(slot, theme, room, turned, ratio)
            x, y = (middle - half, room - length) if turned else (room - length, middle - half)
            # On whole pixels, or it would be blurred.
            at_pixel = QPointF(round(x * ratio) / ratio, round(y * ratio) / ratio)
            painter.drawPixmap(at_pixel, picture)

    def area(self, view: CellView, plot: QRectF, axis: Axis, slot: int) -> QRect:
        """Everything that `paint_one` may paint on."""
        half = self._line / 2 + 1
        if axis == "query":
            middle = plot.top() + view.y_of(slot + 0.5)
            return QRectF(0, middle - half, plot.left(), 2 * half).toAlignedRect()
        middle = plot.left() + view.x_of(slot + 0.5)
        return QRectF(middle - half, 0, 2 * half, plot.top()).toAlignedRect()

    def half_covered(self, view: CellView, plot: QRectF, axis: Axis, slot: int) -> list[QRect]:
        """Where labels stand that one at `slot` leaves too little of to be read."""
        stride = view.stride(self._line * 0.86)
        before = slot // stride * stride
        found = []
        for other in (before, before + stride):
            near = 0 < abs(other - slot) * view.scale < self._line * 0.86
            if near and other < len(self._texts):
                # Not as far as the line around the map.
                area = self.area(view, plot, axis, other)
                found.append(area.adjusted(0, 0, *((-2, 0) if axis == "query" else (0, -2))))
        return found

    def paint_one(
        self,
        painter: QPainter,
        view: CellView,
        plot: QRectF,
        theme: Theme,
        axis: Axis,
        slot: int,
        mark: str = "",
    ) -> None:
        """One label, on a surface of the theme's colour `mark` if that is given."""
        line = self._line
        if slot >= len(self._texts):
            return
        painter.setFont(self._font)
        if axis == "query":
            if plot.left() < _LEAST_ROOM:
                return
            middle = plot.top() + view.y_of(slot + 0.5)
            if plot.top() <= middle <= plot.bottom():
                rect = QRectF(0, middle - line / 2, plot.left() - 4 * self._unit, line)
                self._paint(painter, rect, theme, slot, mark, _RIGHT)
            return
        middle = plot.left() + view.x_of(slot + 0.5)
        if plot.left() <= middle <= plot.right():
            painter.save()
            painter.translate(QPointF(middle, plot.top() - 4 * self._unit))
            painter.rotate(-90)
            rect = QRectF(0, -line / 2, plot.top() - 4 * self._unit, line)
            self._paint(painter, rect, theme, slot, mark, _LEFT)
            painter.restore()

    def _pictured(
        self, slot: int, theme: Theme, room: float, turned: bool, ratio: float
    ) -> tuple[QPixmap, float]:
        """A label as a picture, and how long it is."""
        text, width = self._fitted(self._texts[slot], room)
        colour = theme.muted if self._is_padding(slot) else theme.text
        key = (text, colour, turned, ratio)
        if key not in self._pictures:
            if len(self._pictures) >= _PICTURES:
                self._pictures.clear()
            self._pictures[key] = self._picture(text, width, colour, turned, ratio)
        picture = self._pictures[key]
        return picture, picture.height() / ratio if turned else width

    def _picture(self, text: str, width: float, colour: str, turned: bool, ratio: float) -> QPixmap:
        across, line = int(np.ceil(width)) + 2, int(np.ceil(self._line))
        size = QSize(line, across) if turned else QSize(across, line)
        picture = QPixmap(size * ratio)
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = painter_of(picture)
        painter.setFont(self._font)
        painter.setPen(QColor(colour))
        if turned:
            painter.translate(QPointF(0, across))
            painter.rotate(-90)
        painter.drawText(QRectF(0, 0, across, line), _LEFT, text)
        painter.end()
        return picture

    def _is_padding(self, slot: int) -> bool:
        return any(first <= slot <= last for first, last in self._padding)

    def _paint(
        self,
        painter: QPainter,
        rect: QRectF,
        theme: Theme,
        slot: int,
        mark: str,
        align: Qt.AlignmentFlag,
    ) -> None:
        text, width = self._fitted(self._texts[slot], rect.width())
        if mark:
            left = rect.left() - 3 if align == _LEFT else rect.right() - width - 3
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(getattr(theme, mark)))
            painter.drawRoundedRect(QRectF(left, rect.top(), width + 6, rect.height()), 3, 3)
            on = {"accent": theme.on_accent, "selection": theme.on_selection}[mark]
            painter.setPen(QColor(on))
        else:
            painter.setPen(QColor(theme.muted if self._is_padding(slot) else theme.text))
        painter.drawText(rect, align, text)

    def _fitted(self, text: str, width: float) -> tuple[str, float]:
        """A label cut to a width, and how wide it is; measuring text is dear, so it is kept."""
        key = (text, round(width))
        if key not in self._fits:
            metrics = QFontMetricsF(self._font)
            cut = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width)
            self._fits[key] = (cut, metrics.horizontalAdvance(cut))
        return self._fits[key]


@lru_cache(maxsize=4)
def _kept(
    font: str,
) -> tuple[dict[tuple[str, int], tuple[str, float]], dict[tuple[str, str, bool, float], QPixmap]]:
    """What was measured and painted in one font: maps side by side have the same labels."""
    return {}, {}


def runs(slots: Sequence[int]) -> list[tuple[int, int]]:
    """Slots as (first, last) of each unbroken run."""
    found: list[tuple[int, int]] = []
    for slot in slots:
        if found and found[-1][1] == slot - 1:
            found[-1] = (found[-1][0], slot)
        else:
            found.append((slot, slot))
    return found
