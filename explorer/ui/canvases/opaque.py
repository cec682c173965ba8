"""A canvas covers its own rectangle, so that painting it again leaves what lies under it alone.

Without this Qt paints every ancestor's background first, rounded borders and all: twice the work
of the canvas itself for each move of the mouse.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPaintDevice, QPainter
from PySide6.QtWidgets import QWidget

from explorer.ui.look.theme import Theme


def cover(widget: QWidget) -> None:
    """Promise Qt that every paint event begins with `fill`."""
    widget.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)


def painter_of(device: QPaintDevice) -> QPainter:
    """One whose left is the left, whichever way the language of the window runs."""
    painter = QPainter(device)
    painter.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    return painter


def write_note(painter: QPainter, area: QRect, theme: Theme, sentence: str) -> None:
    """A sentence in the middle, in place of what there is to paint."""
    painter.setPen(QColor(theme.muted))
    painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, sentence)


def fill(painter: QPainter, area: QRect, theme: Theme) -> None:
    """The surface of the card on which every canvas lies."""
    painter.fillRect(area, QColor(theme.card))
