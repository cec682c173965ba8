"""The key beside a map: which colour is how much, and what is no weight at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPen

from explorer.ui.canvases.maps.drawing.cell_marks import KINDS, mark_brush
from explorer.ui.canvases.maps.lut_image import (
    FIRST_LEVEL,
    absent_brush,
    colour_table,
    masked_brush,
    padding_brush,
    picture,
)
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme

translate = QCoreApplication.translate
Styles = frozenset[str]  # of cells without a weight or changed: masked, absent, padding, cut, …

_WORDS = (
    ("masked", QT_TRANSLATE_NOOP("ColourKey", "masked")),
    ("absent", QT_TRANSLATE_NOOP("ColourKey", "not computed")),
    ("padding", QT_TRANSLATE_NOOP("ColourKey", "padding")),
    ("cut", QT_TRANSLATE_NOOP("ColourKey", "cut")),
    ("allowed", QT_TRANSLATE_NOOP("ColourKey", "allowed")),
    ("cut-next", QT_TRANSLATE_NOOP("ColourKey", "cut, next run")),
    ("allowed-next", QT_TRANSLATE_NOOP("ColourKey", "allowed, next run")),
    ("restored-next", QT_TRANSLATE_NOOP("ColourKey", "restored, next run")),
)


@dataclass(frozen=True, slots=True)
class ColourKey:
    """What a scale of colours says: its name, its ends, and ticks by their share of it."""

    name: str = ""
    low: str = "0 %"
    high: str = "100 %"
    ticks: tuple[tuple[float, str], ...] = ()


def key_width(metrics: QFontMetricsF, key: ColourKey) -> float:
    """Room that the key takes, with this font."""
    usual = (translate("ColourKey", text) for kind, text in _WORDS if kind not in KINDS)
    beside = (*usual, key.low, key.high, "0.0001 %")
    wide = metrics.height() * 1.3 + max(metrics.horizontalAdvance(word) for word in beside)
    return max(wide, metrics.horizontalAdvance(key.name) + 2)


def paint_key(
    painter: QPainter, area: QRectF, theme: Theme, map_name: str, key: ColourKey, shown: Styles
) -> None:
    """Draw the scale, named, and the swatches into `area`, with the painter's font."""
    line = painter.fontMetrics().height()
    painter.setPen(QColor(theme.muted))
    begin = area.top()
    if key.name:
        painter.drawText(QPointF(area.left(), begin + line * 0.75), key.name)
        begin += line * 1.15
    high = min((area.bottom() - begin) * 0.4, 9 * line)
    bar = QRectF(area.left(), begin, round(line * 0.8), high)
    levels = np.linspace(255, FIRST_LEVEL, max(1, round(bar.height()))).astype(np.uint8)
    painter.drawImage(bar, picture(levels[:, None], colour_table(theme, map_name)))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.border), 1))
    painter.drawRect(bar)
    painter.setPen(QColor(theme.muted))
    beside = bar.right() + line * 0.35
    painter.drawText(QPointF(beside, bar.top() + line * 0.75), key.high)
    painter.drawText(QPointF(beside, bar.bottom()), key.low)
    if key.ticks and bar.height() > (len(key.ticks) + 2) * line:
        for share, words in key.ticks:
            y = bar.bottom() - share * bar.height()
            painter.drawText(QPointF(beside, y + line * 0.35), words)
    y = bar.bottom() + line * 0.8
    for brush, words in swatches(theme, painter.device().devicePixelRatioF(), shown, bar.width()):
        if y + line > area.bottom():
            break
        swatch = QRectF(bar.left(), y, bar.width(), line * 0.8)
        painter.setBrushOrigin(swatch.topLeft())
        painter.fillRect(swatch, brush)
        painter.setPen(QPen(QColor(theme.strong_border), 1))
        painter.drawRect(swatch)
        painter.setPen(QColor(theme.muted))
        for part in words.split(", "):  # no wider than the others
            painter.drawText(QPointF(beside, y + line * 0.7), part)
            y += line
        y += line * 0.25
    painter.setBrushOrigin(QPointF())


def styles(levels: np.ndarray, padding: bool) -> Styles:
    """What is no weight in a map of these levels, see `lut_image`."""
    there = {"masked": bool((levels == 1).any()), "absent": bool((levels == 0).any())}
    return frozenset(kind for kind, some in {**there, "padding": padding}.items() if some)


def swatches(
    theme: Theme, ratio: float, shown: Styles, size: float = 12.0
) -> list[tuple[QBrush, str]]:
    """What is no weight or changed, with its word: only those styles that the map has.

    `size`: pixels of a swatch.
    """
    brushes = {
        **{kind: mark_brush(kind, theme, ratio, size) for kind in KINDS if kind in shown},
        "masked": masked_brush(theme, ratio),
        "absent": absent_brush(theme, ratio),
        "padding": padding_brush(theme),
    }
    return [(brushes[kind], translate("ColourKey", text)) for kind, text in _WORDS if kind in shown]
