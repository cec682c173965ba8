"""The colours of a scale from low to high, to stand between the words for its ends."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from explorer.figures.drawing.colormaps import lut
from explorer.ui.look.theme import unit


class Ramp(QWidget):
    """Those of token boxes and boards, unless it is given others by name."""

    def __init__(self, colours: str = "viridis") -> None:
        super().__init__()
        self._colours = colours
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFixedSize(round(72 * unit(self)), round(10 * unit(self)))

    def set_colours(self, colours: str) -> None:
        """Other colours."""
        self._colours = colours
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        table = lut(self._colours)
        image = QImage(256, 1, QImage.Format.Format_RGB32)
        for x in range(256):
            image.setPixelColor(x, 0, QColor(*(int(c) for c in table[x])))
        QPainter(self).drawImage(QRectF(self.rect()), image)
