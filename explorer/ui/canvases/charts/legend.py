"""One row that says what the colours of a chart mean; what does not fit is left out at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.ui.canvases.charts.column_parts import mixed
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.theme import Theme, unit

_ROW, _SWATCH, _GAP = 16, 10, 12  # pixels at a zoom of 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One colour and its word."""

    words: str
    colour: str  # theme attribute
    strength: float = 1.0
    look: Literal["filled", "outline", "line"] = "filled"


class Legend(QWidget):
    """Set once or with other data; the words are also its accessible name."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entries: tuple[Entry, ...] = ()
        cover(self)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the charts
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_entries(self, entries: Sequence[Entry]) -> None:
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
        u, metrics = unit(self), QFontMetricsF(_small(self))
        words = sum(metrics.horizontalAdvance(entry.words) for entry in self._entries)
        marks = len(self._entries) * (_SWATCH + 4 + _GAP) * u
        return QSize(round(words + marks + 4), round(_ROW * u))

    def minimumSizeHint(self) -> QSize:
        return QSize(10, round(_ROW * unit(self)))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, u = painter_of(self), unit(self)
        fill(painter, self.rect(), self._theme)
        painter.setFont(_small(self))
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

    def _swatch(self, painter: QPainter, box: QRectF, entry: Entry) -> None:
        colour = mixed(self._theme, entry.colour, entry.strength)
        if entry.look == "filled":
            painter.fillRect(box, colour)
        elif entry.look == "line":
            painter.setPen(QPen(colour, 2))
            painter.drawLine(box.left(), box.center().y(), box.right(), box.center().y())
        else:
            painter.setPen(QPen(colour, 1.5, Qt.PenStyle.DashLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box)


def _small(widget: QWidget) -> QFont:
    font = QFont(widget.font())
    font.setPixelSize(max(8, round(11 * unit(widget))))
    return font
