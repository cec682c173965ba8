"""Levels to pictures: 0 absent, 1 masked, 2 to 255 from weight 0 to the top of the scale."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen, QPixmap, qRgb, qRgba

from explorer.figures.drawing.colormaps import COLOUR_MAPS, lut
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.theme import Theme

FIRST_LEVEL = 2  # of a cell that is read
_DARKEST = 36  # of the 256 colours of a map: the one for 0 in a dark theme
_DOTS = 6  # pixels from one dot to the next where nothing was computed
_FASTEST = QImage.Format.Format_ARGB32_Premultiplied


def picture(levels: np.ndarray, table: list[int], dots: tuple[int, float] | None = None) -> QImage:
    """(height, width) uint8 levels as an image of that many pixels.

    `dots`: a colour and device pixels per pixel, for what was not computed.
    """
    height, width = levels.shape
    if not height or not width:
        return QImage()
    # In the format that is painted fastest; every colour is either opaque or clear black.
    pixels = np.array(table, np.uint32)[levels]
    if dots is not None:
        _dot(pixels, levels == 0, *dots)
    image = QImage(pixels.data, width, height, 4 * width, _FASTEST)
    return image.copy()  # for Qt does not keep the array alive


def dots(theme: Theme, ratio: float) -> tuple[int, float]:
    """How `picture` marks what was not computed."""
    return QColor(theme.strong_border).rgb(), ratio


def _dot(pixels: np.ndarray, where: np.ndarray, colour: int, ratio: float) -> None:
    step, size = round(_DOTS * ratio), max(1, round(ratio))
    for down in range(size):
        for across in range(size):
            at = np.s_[step // 2 + down :: step, step // 2 + across :: step]
            pixels[at][where[at]] = colour


@lru_cache(maxsize=8)
def absent_brush(theme: Theme, ratio: float) -> QBrush:
    """What was not computed: dots, as `picture` draws them."""
    size = round(_DOTS * ratio)
    image = picture(
        np.zeros((size, size), np.uint8), colour_table(theme, "viridis"), dots(theme, ratio)
    )
    tile = QPixmap.fromImage(image)
    tile.setDevicePixelRatio(ratio)
    return QBrush(tile)


@lru_cache(maxsize=32)
def _table(theme: Theme, map_name: str, masked_clear: bool) -> tuple[int, ...]:
    colours = lut(map_name)
    # On a dark surface the darkest colours of a map would be no more than that surface.
    first = _DARKEST if theme.dark and map_name in COLOUR_MAPS else 0
    shown = np.rint(np.linspace(first, 255, 256 - FIRST_LEVEL)).astype(int)
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
    painter = painter_of(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(theme.hatch), 1.3))
    for offset in (-size, 0, size):
        painter.drawLine(offset, size, offset + size, 0)
    painter.end()
    return QBrush(tile)


@lru_cache(maxsize=4)
def masked_area(theme: Theme, ratio: float, size: QSize) -> QPixmap:
    """So much of `masked_brush`; filling with a pattern takes ten times as long as a picture."""
    area = QPixmap(size * ratio)
    area.setDevicePixelRatio(ratio)
    painter = painter_of(area)
    painter.fillRect(QRect(QPoint(), size), masked_brush(theme, ratio))
    painter.end()
    return area


def laid_over(below: QPixmap, image: QImage) -> QImage:
    """Both as one picture of the upper one's size."""
    whole = QImage(image.size(), QImage.Format.Format_ARGB32_Premultiplied)
    whole.setDevicePixelRatio(image.devicePixelRatio())
    whole.fill(Qt.GlobalColor.transparent)
    painter = painter_of(whole)
    painter.drawPixmap(0, 0, below)
    painter.drawImage(0, 0, image)
    painter.end()
    return whole


def padding_brush(theme: Theme) -> QBrush:
    """Laid over rows and columns of padding tokens."""
    return QBrush(QColor(theme.hatch), Qt.BrushStyle.DiagCrossPattern)
