"""One row that says what the colours of a chart mean; what does not fit is left out at the end."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.charts.marks import LegendEntry, Paint
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_ROW, _SWATCH, _GAP = 16, 10, 12  # pixels at a zoom of 1


class Legend(Canvas):
    """Set once or with other data; the words are also its accessible name."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: tuple[LegendEntry, ...] = ()
        cover(self)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the charts
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_entries(self, entries: Sequence[LegendEntry]) -> None:
        if tuple(entries) == self._entries:
            return
        self._entries = tuple(entries)
        self.setAccessibleName(", ".join(entry.words for entry in entries))
        self.updateGeometry()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        u, metrics = unit(self), QFontMetricsF(small_font(self))
        words = sum(metrics.horizontalAdvance(entry.words) for entry in self._entries)
        marks = len(self._entries) * (_SWATCH + 4 + _GAP) * u
        return QSize(round(words + marks + 4), round(_ROW * u))

    def minimumSizeHint(self) -> QSize:
        return QSize(10, round(_ROW * unit(self)))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, u = painter_of(self), unit(self)
        fill(painter, self.rect(), self._theme)
        painter.setFont(small_font(self))
        x, high = 2.0, float(self.height())
        for entry in self._entries:
            wide = painter.fontMetrics().horizontalAdvance(entry.words)
            if x + (_SWATCH + 4) * u + wide > self.width():
                break
            self._swatch(
                painter, QRectF(x, (high - _SWATCH * u) / 2, _SWATCH * u, _SWATCH * u), entry
            )
            x += (_SWATCH + 4) * u
            painter.setPen(QColor(self._theme.muted))
            painter.drawText(
                QRectF(x, 0, wide + 2, high), Qt.AlignmentFlag.AlignVCenter, entry.words
            )
            x += wide + _GAP * u

    def _swatch(self, painter: QPainter, box: QRectF, entry: LegendEntry) -> None:
        colour = Paint(entry.colour, entry.strength).of(self._theme)
        if entry.look == "filled":
            painter.fillRect(box, colour)
        elif entry.look == "outline":
            painter.setPen(QPen(colour, 1.5, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box)
        else:
            painter.setPen(QPen(colour, 2))
            middle = box.center().y()
            painter.drawLine(QPointF(box.left(), middle), QPointF(box.right(), middle))
            self._dot(painter, box, colour, entry.look)

    def _dot(self, painter: QPainter, box: QRectF, colour: QColor, look: str) -> None:
        """In the middle of the line, as in the chart."""
        size = box.width() * 0.3
        painter.setBrush(QColor(self._theme.card) if look == "ring" else colour)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if look == "square":
            painter.drawRect(box.adjusted(size, size, -size, -size))
        elif look in ("round", "ring"):
            painter.drawEllipse(box.center(), size, size)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
