"""The numbers along the atlas: layers and heads, or ranks, and what stands in its corner."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from explorer.ui.canvases.maps.atlas_layout import AtlasLayout, Head, stride
from explorer.ui.look.theme import Theme

translate = QCoreApplication.translate


@dataclass(frozen=True, slots=True)
class AtlasLabels:
    """Drawn in the painter's font, `line` pixels high, about thumbnails at `offset`."""

    layout: AtlasLayout
    offset: QPointF
    line: float
    theme: Theme

    def paint(self, painter: QPainter, marked: Head | None, corner: str = "") -> None:
        """Every number that has room, and those of the `marked` head; `corner`: other words
        there than what the axes are."""
        place = self.layout
        rows, columns = place.shape
        down = stride(self.line, place.cell.height())
        painter.setPen(QColor(self.theme.muted))
        axes = (
            translate("AtlasView", "layers ↓   heads →")
            if place.order is None
            else translate("AtlasView", "rank ↓")
        )
        painter.drawText(QPointF(2, self.line * 0.85), corner or axes)
        if place.order is not None:
            for row in range(0, rows, down):
                self._paint_number(painter, row, row * columns + 1, False, across=False)
            return
        at = (None if marked is None else place.place_of(*marked)) or (-1, -1)
        across = stride(self.line * 1.7, place.cell.width())
        for head in (*range(0, columns, across), at[1]):
            self._paint_number(painter, head, head, head == at[1], across=True)
        for layer in (*range(0, rows, down), at[0]):
            self._paint_number(painter, layer, layer, layer == at[0], across=False)

    def _paint_number(
        self, painter: QPainter, place: int, number: int, marked: bool, across: bool
    ) -> None:
        if place < 0:
            return
        layout, line = self.layout, self.line
        thumb = layout.rect(0, place, self.offset) if across else layout.rect(place, 0, self.offset)
        if across:
            if thumb.center().x() < layout.left:
                return
            rect = QRectF(thumb.left() - 20, layout.top - line - 2, thumb.width() + 40, line)
        else:
            if thumb.center().y() < layout.top:
                return
            rect = QRectF(0, thumb.center().y() - line / 2, layout.left - 4, line)
        align = Qt.AlignmentFlag.AlignCenter if across else Qt.AlignmentFlag.AlignRight
        painter.setPen(QColor(self.theme.text if marked else self.theme.muted))
        if marked:
            box = QRectF(painter.boundingRect(rect, align, str(number))).adjusted(-3, 0, 3, 0)
            painter.fillRect(box, QColor(self.theme.selection))
            painter.setPen(QColor(self.theme.on_selection))
        painter.drawText(rect, align, str(number))
