"""The key under maps that stand side by side: one scale for two runs, one for their difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.drawing.colormaps import difference
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.maps.colour_key import ColourKey, Styles, swatches
from explorer.ui.canvases.maps.lut_image import FIRST_LEVEL, colour_table, picture
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_BAR, _ROW, _BETWEEN = 80, 18, 14  # pixels at a zoom of 1


class MapLegend(Canvas):
    """0 to the top of the scale, -top to +top of the difference, and kinds of cells."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._colours = "viridis"
        self._keys = (ColourKey(), ColourKey(low="−100 %", high="+100 %"))
        self._shown: Styles = frozenset()
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)  # as the maps
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_key(self, colours: str, keys: tuple[ColourKey, ColourKey], shown: Styles) -> None:
        """Colour map and scale of the maps, of their difference; kinds of cells to be named."""
        self._colours, self._keys, self._shown = colours, keys, shown
        self.update()

    @property
    def shown(self) -> Styles:
        """The kinds of cells that are named."""
        return self._shown

    def set_colours(self, colours: str) -> None:
        self._colours = colours
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(round(300 * unit(self)), self.row_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(10, self.row_height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        small = small_font(self)
        painter.setFont(small)
        metrics = QFontMetricsF(small)
        plain, change = self._keys
        shown = np.arange(FIRST_LEVEL, 256, dtype=np.uint8)
        signed = np.arange(FIRST_LEVEL, 255, dtype=np.uint8)
        name = difference(self._theme.dark)
        pieces: list[Callable[[QPointF], float]] = [
            lambda at: self._scale(painter, metrics, at, *_ends(plain), shown, self._colours),
            lambda at: self._scale(painter, metrics, at, *_ends(change), signed, name),
        ]
        ratio, size = self.devicePixelRatioF(), _side(metrics)
        for brush, words in swatches(self._theme, ratio, self._shown, size):
            pieces.append(partial(self._swatch, painter, metrics, brush, words))
        at = QPointF(2, 0)
        for piece in pieces:
            end = piece(at)
            if end > self.width() and at.x() > 2:  # the next row, if there is one
                at = QPointF(2, at.y() + self.row_height())
                end = piece(at)
            at.setX(end + _BETWEEN * unit(self))
            if at.y() + self.row_height() > self.height() + 1:
                break

    def rows_in(self, width: float) -> int:
        """How many rows the key takes at this width."""
        u, metrics = unit(self), QFontMetricsF(small_font(self))
        ends = [_ends(key) for key in self._keys]
        lengths = [(_BAR + 8) * u + sum(map(metrics.horizontalAdvance, both)) for both in ends]
        words = [text for _, text in swatches(self._theme, 1.0, self._shown)]
        lengths += [_side(metrics) + 4 * u + metrics.horizontalAdvance(text) for text in words]
        rows, at = 1, 2.0
        for length in lengths:
            if at + length > width and at > 2:
                rows, at = rows + 1, 2.0
            at += length + _BETWEEN * u
        return rows

    def row_height(self) -> int:
        """Pixels of one row of the key."""
        return round(_ROW * unit(self))

    def _scale(
        self,
        painter: QPainter,
        metrics: QFontMetricsF,
        at: QPointF,
        low: str,
        high: str,
        shown: np.ndarray,
        name: str,
    ) -> float:
        """Draw a scale and return where it ends; nothing if it does not fit."""
        u, line = unit(self), metrics.height()
        before = metrics.horizontalAdvance(low) + 4 * u
        words = before + 4 * u + metrics.horizontalAdvance(high)
        long = _BAR * u
        if at.x() <= 2:  # alone in its row: shorter if it must be
            long = max(min(long, self.width() - at.x() - words), 10 * u)
        end = at.x() + words + long
        if end > self.width() and at.x() > 2:
            return end
        self._words(painter, at, low)
        bar = QRectF(round(at.x() + before), self._middle(at, line), long, line * 0.7)
        painter.drawImage(bar, picture(shown[None, :], colour_table(self._theme, name)))
        painter.setPen(QPen(QColor(self._theme.border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(bar)
        self._words(painter, QPointF(bar.right() + 4 * u, at.y()), high)
        return end

    def _swatch(
        self, painter: QPainter, metrics: QFontMetricsF, brush: QBrush, words: str, at: QPointF
    ) -> float:
        """The same for a swatch with its word."""
        u, side = unit(self), _side(metrics)
        end = at.x() + side + 4 * u + metrics.horizontalAdvance(words)
        if end > self.width() and at.x() > 2:
            return end
        top = round(at.y() + (self.row_height() - side) / 2)
        box = QRectF(round(at.x()), top, side, side)
        painter.setBrushOrigin(box.topLeft())
        painter.fillRect(box, brush)
        painter.setBrushOrigin(QPointF())
        painter.setPen(QPen(QColor(self._theme.strong_border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(box)
        self._words(painter, QPointF(box.right() + 4 * u, at.y()), words)
        return end

    def _middle(self, at: QPointF, line: float) -> float:
        return round(at.y() + (self.row_height() - line * 0.7) / 2)

    def _words(self, painter: QPainter, at: QPointF, words: str) -> None:
        painter.setPen(QColor(self._theme.muted))
        box = QRectF(at.x(), at.y(), 400, self.row_height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, words)


def _ends(key: ColourKey) -> tuple[str, str]:
    """What stands at the ends of a scale."""
    return key.low, f"{key.high} · {key.name}" if key.name else key.high


def _side(metrics: QFontMetricsF) -> int:
    """Pixels of a swatch: a square, as the cells whose marks it shows."""
    return round(0.85 * metrics.height())
