"""The first heads of an order, larger and with name and figure, over the atlas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from explorer.figures.attention.atlas import Atlas
from explorer.ui.canvases.maps.atlas_layout import Head
from explorer.ui.canvases.maps.svg_images import draw_picture
from explorer.ui.canvases.maps.thumbnails import Sheet, SheetPlan
from explorer.ui.look.theme import Theme

_MOST = 3
_HIGHEST = 70  # pixels of a thumbnail at a zoom of 1
_GAP = 4


@dataclass(frozen=True, slots=True)
class Best:
    """One head, and the words under its thumbnail."""

    at: Head
    name: str
    figure: str


class BestHeads:
    """Side by side at `top`; none where there is no room for one."""

    def __init__(self) -> None:
        self._heads: Sequence[Best] = ()
        self._places: list[tuple[Best, QRectF]] = []  # thumbnails on screen
        self._sheet: tuple[Atlas, Sheet] | None = None
        self._line = 0.0
        self.height = 0.0  # of all of it, captions included

    def set_heads(self, heads: Sequence[Best]) -> None:
        """The first of an order; empty = none are shown."""
        self._heads = heads[:_MOST]

    def set_space(self, space: QSizeF, metrics: QFontMetricsF, top: float, u: float) -> None:
        """As many as fit side by side, in no more than half the height."""
        self._line = metrics.height()
        self._places, self.height = [], 0.0
        words = [text for one in self._heads for text in (one.name, one.figure)]
        if not words:
            return
        least = max(metrics.horizontalAdvance(text) for text in words) + _GAP
        count = min(len(self._heads), int(space.width() // least))
        if not count:
            return
        width = int(space.width() / count) - _GAP
        high = int(min(width, _HIGHEST * u))
        whole = high + 2 * self._line + _GAP
        if whole > space.height() / 2:
            return
        self.height = whole
        for place, one in enumerate(self._heads[:count]):
            left = place * (width + _GAP) + (width - min(width, high * 2)) / 2
            self._places.append((one, QRectF(left, top, min(width, high * 2), high)))

    def head_at(self, point: QPointF) -> Head | None:
        """Which of them is drawn under a point, its words included."""
        words = 2 * self._line
        hit = (one for one, box in self._places if box.adjusted(0, 0, 0, words).contains(point))
        found = next(hit, None)
        return None if found is None else found.at

    def paint(
        self, painter: QPainter, atlas: Atlas, plan: SheetPlan, theme: Theme, selected: Head | None
    ) -> None:
        """Thumbnails as `plan` draws them, only larger, and the words in the painter's font."""
        if not self._places:
            return
        picture = self._picture(atlas, plan)
        step = picture.image.width() / picture.image.devicePixelRatio() / len(self._places)
        for place, (one, box) in enumerate(self._places):
            painter.save()
            painter.setClipRect(box)
            draw_picture(painter, QPointF(box.left() - place * step, box.top()), picture.image)
            painter.restore()
            mine = one.at == selected
            painter.setPen(QPen(QColor(theme.accent if mine else theme.grid), 2.5 if mine else 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 2, 2)
            painter.setPen(QColor(theme.text))
            for row, text in enumerate((one.name, one.figure)):
                under = QRectF(box.left() - 20, box.bottom() + 1 + row * self._line,
                               box.width() + 40, self._line)  # fmt: skip
                painter.drawText(under, Qt.AlignmentFlag.AlignCenter, text)

    def _picture(self, atlas: Atlas, plan: SheetPlan) -> Sheet:
        box = self._places[0][1]
        size = round(box.height() * plan.ratio), round(box.width() * plan.ratio)
        order = [one.at for one, _ in self._places]
        larger = replace(plan, size=size, step=size, shape=(1, len(order)), order=order)
        kept = self._sheet
        if kept is None or kept[0] is not atlas or kept[1].plan != larger:
            self._sheet = kept = atlas, larger.sheet(atlas)
        return kept[1]
