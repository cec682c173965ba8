"""The key beside a map: which colour is how much, and what is no weight at all."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPen

from explorer.ui.canvases.indexed import (
    FIRST_LEVEL,
    colour_table,
    masked_brush,
    padding_brush,
    picture,
)
from explorer.ui.theme import Theme

_WORDS = (
    ("masked", QT_TRANSLATE_NOOP("ColourKey", "masked")),
    ("absent", QT_TRANSLATE_NOOP("ColourKey", "not seen")),
    ("padding", QT_TRANSLATE_NOOP("ColourKey", "padding")),
)


def key_width(metrics: QFontMetricsF) -> float:
    """Room that the key takes, with this font."""
    words = (*(text for _, text in _WORDS), "0.0001 %")
    return metrics.height() * 1.3 + max(metrics.horizontalAdvance(_tr(word)) for word in words)


def paint_key(
    painter: QPainter, area: QRectF, theme: Theme, map_name: str, top: str, padding: bool
) -> None:
    """Draw the scale from 0 to `top` and the swatches into `area`, with the painter's font."""
    line = painter.fontMetrics().height()
    bar = QRectF(area.left(), area.top(), round(line * 0.8), min(area.height() * 0.4, 9 * line))
    levels = np.linspace(255, FIRST_LEVEL, max(1, round(bar.height()))).astype(np.uint8)
    painter.drawImage(bar, picture(levels[:, None], colour_table(theme, map_name)))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor(theme.border), 1))
    painter.drawRect(bar)
    painter.setPen(QColor(theme.muted))
    beside = bar.right() + line * 0.35
    painter.drawText(QPointF(beside, bar.top() + line * 0.75), top)
    painter.drawText(QPointF(beside, bar.bottom()), "0 %")
    y = bar.bottom() + line * 0.8
    for brush, words in swatches(theme, painter.device().devicePixelRatioF(), padding):
        if y + line > area.bottom():
            break
        swatch = QRectF(bar.left(), y, bar.width(), line * 0.8)
        painter.setBrushOrigin(swatch.topLeft())
        painter.fillRect(swatch, brush)
        painter.setPen(QPen(QColor(theme.strong_border), 1))
        painter.drawRect(swatch)
        painter.setPen(QColor(theme.muted))
        painter.drawText(QPointF(beside, y + line * 0.7), words)
        y += line * 1.25
    painter.setBrushOrigin(QPointF())


def swatches(theme: Theme, ratio: float, padding: bool) -> list[tuple[QBrush, str]]:
    """What is no weight, with its word; padding only where there is some."""
    brushes = {
        "masked": masked_brush(theme, ratio),
        "absent": QBrush(QColor(theme.absent)),
        "padding": padding_brush(theme),
    }
    return [(brushes[kind], _tr(text)) for kind, text in _WORDS if padding or kind != "padding"]


def _tr(text: str) -> str:
    return QCoreApplication.translate("ColourKey", text)
