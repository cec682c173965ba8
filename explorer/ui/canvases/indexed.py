"""Levels to pictures: 0 absent, 1 masked, 2 to 255 from weight 0 to the top of the scale."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen, QPixmap, qRgb, qRgba

from explorer.ui.colormaps import lut
from explorer.ui.theme import Theme

FIRST_LEVEL = 2  # of a cell that is read
_FASTEST = QImage.Format.Format_ARGB32_Premultiplied


def picture(levels: np.ndarray, table: list[int]) -> QImage:
    """(height, width) uint8 levels as an image of that many pixels."""
    height, width = levels.shape
    if not height or not width:
        return QImage()
    # In the format that is painted fastest; every colour is either opaque or clear black.
    pixels = np.array(table, np.uint32)[levels]
    image = QImage(pixels.data, width, height, 4 * width, _FASTEST)
    return image.copy()  # for Qt does not keep the array alive


@lru_cache(maxsize=32)
def _table(theme: Theme, map_name: str, masked_clear: bool) -> tuple[int, ...]:
    colours = lut(map_name)
    shown = np.rint(np.linspace(0, 255, 256 - FIRST_LEVEL)).astype(int)
    absent, masked = QColor(theme.absent).rgb(), QColor(theme.masked).rgb()
    special = (absent, qRgba(0, 0, 0, 0) if masked_clear else masked)
    return (*special, *(qRgb(*(int(c) for c in colours[i])) for i in shown))


def colour_table(theme: Theme, map_name: str, *, masked_clear: bool = False) -> list[int]:
    """256 colours for levels; with `masked_clear` what lies beneath shows through masked cells."""
    return list(_table(theme, map_name, masked_clear))


@lru_cache(maxsize=8)
def masked_brush(theme: Theme, ratio: float) -> QBrush:
    """Masked cells: one flat colour with fine slanted lines, so that it is no colour of a map."""
    size = 7
    tile = QPixmap(round(size * ratio), round(size * ratio))
    tile.setDevicePixelRatio(ratio)
    tile.fill(QColor(theme.masked))
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    colour = QColor(theme.hatch)
    colour.setAlphaF(0.55)
    painter.setPen(QPen(colour, 1))
    for offset in (-size, 0, size):
        painter.drawLine(offset, size, offset + size, 0)
    painter.end()
    return QBrush(tile)


@lru_cache(maxsize=4)
def masked_area(theme: Theme, ratio: float, size: QSize) -> QPixmap:
    """So much of `masked_brush`; filling with a pattern takes ten times as long as a picture."""
    area = QPixmap(size * ratio)
    area.setDevicePixelRatio(ratio)
    painter = QPainter(area)
    painter.fillRect(QRect(QPoint(), size), masked_brush(theme, ratio))
    painter.end()
    return area


def laid_over(below: QPixmap, image: QImage) -> QImage:
    """Both as one picture of the upper one's size."""
    whole = QImage(image.size(), QImage.Format.Format_ARGB32_Premultiplied)
    whole.setDevicePixelRatio(image.devicePixelRatio())
    whole.fill(Qt.GlobalColor.transparent)
    painter = QPainter(whole)
    painter.drawPixmap(0, 0, below)
    painter.drawImage(0, 0, image)
    painter.end()
    return whole


def padding_brush(theme: Theme) -> QBrush:
    """Laid over rows and columns of padding tokens."""
    return QBrush(QColor(theme.hatch), Qt.BrushStyle.DiagCrossPattern)
