"""All heads of all layers as one picture of small maps; a click looks at one of them.

Layers run down, heads run across.  A layer without attention keeps its row, greyed, with its
reason.  Everything is one image: hundreds of heads cost no more to paint than one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QToolTip, QWidget

from explorer.figures.atlas import LEVELS, Atlas
from explorer.figures.blocks import READ
from explorer.figures.pooling import maxima
from explorer.ui.canvases.accessible import describe, say
from explorer.ui.canvases.indexed import FIRST_LEVEL, colour_table, picture
from explorer.ui.keys import KEEPS_ARROWS
from explorer.ui.theme import Theme, unit

_LEAST, _MOST = 9, 150  # pixels a side of a thumbnail, at a zoom of 1
_STRETCH = 2.2  # thumbnails may be that much wider than high


class AtlasView(QAbstractScrollArea):
    """Shows thumbnails; reports which head is hovered and which is picked."""

    hovered = Signal(object)  # (layer, head) or None
    picked = Signal(int, int)  # layer, head

    def __init__(
        self,
        theme: Theme,
        read: Callable[[int, int], str] | None = None,
        parent: QWidget | None = None,
    ) -> None:
        """`read` puts one head into words, for tips and screen readers."""
        super().__init__(parent)
        describe(self)
        self.setAccessibleName(self.tr("All heads of all layers"))
        self.setProperty(KEEPS_ARROWS, True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAutoFillBackground(False)
        self._theme = theme
        self._read = read or (lambda layer, head: f"{layer} {head}")
        self._atlas: Atlas | None = None
        self._colours, self._per_head = "viridis", False
        self._selected: tuple[int, int] | None = None
        self._over: tuple[int, int] | None = None
        self._image: QImage | None = None
        self._cell = QSize(1, 1)  # logical pixels of a thumbnail

    # -- what is shown

    def set_atlas(self, atlas: Atlas | None) -> None:
        """Show other thumbnails."""
        self._atlas = atlas
        self._lay_out()

    def set_selected(self, layer: int, head: int) -> None:
        """Mark the head that is looked at."""
        if (layer, head) != self._selected:
            self._selected = (layer, head)
            self._show_cell(layer, head)
            self.viewport().update()

    def set_colours(self, name: str, per_head: bool) -> None:
        """Another colour map; `per_head`: bright is each head's largest weight, not 100 %."""
        self._colours, self._per_head = name, per_head
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw()

    # -- geometry

    def sizeHint(self) -> QSize:
        return QSize(round(300 * unit(self)), round(420 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(130 * unit(self)), round(110 * unit(self)))

    def _shape(self) -> tuple[int, int]:
        return (0, 0) if self._atlas is None else self._atlas.levels.shape[:2]

    def _gap(self) -> int:
        return 1 if self._cell.height() < 20 * unit(self) else 3

    def _lay_out(self) -> None:
        layers, heads = self._shape()
        u = unit(self)
        self._small = QFont(self.font())
        self._small.setPixelSize(max(8, round(10.5 * u)))
        metrics = QFontMetricsF(self._small)
        self._line = metrics.height()
        self._left = round(metrics.horizontalAdvance("00") + 8 * u)
        self._top = round(2 * self._line + 4 * u)
        if layers and heads:
            space = self.viewport().size()
            wide = (space.width() - self._left - 2) / heads
            high = (space.height() - self._top - 2) / layers
            high = min(max(min(wide, high), _LEAST * u), _MOST * u)
            wide = min(max(wide, _LEAST * u), high * _STRETCH)
            self._cell = QSize(int(wide), int(high))
        for bar, length, room in (
            (self.horizontalScrollBar(), self._whole().width(), self.viewport().width()),
            (self.verticalScrollBar(), self._whole().height(), self.viewport().height()),
        ):
            bar.setRange(0, max(0, length - room))
            bar.setPageStep(room)
            bar.setSingleStep(self._cell.height())
        self._redraw()

    def _whole(self) -> QSize:
        layers, heads = self._shape()
        return QSize(
            self._left + heads * self._cell.width(), self._top + layers * self._cell.height()
        )

    def _offset(self) -> QPointF:
        return QPointF(
            self._left - self.horizontalScrollBar().value(),
            self._top - self.verticalScrollBar().value(),
        )

    def _rect(self, layer: int, head: int) -> QRectF:
        width, height, gap = self._cell.width(), self._cell.height(), self._gap()
        corner = self._offset() + QPointF(head * width, layer * height)
        return QRectF(corner.x(), corner.y(), width - gap, height - gap)

    def _head_at(self, point: QPointF) -> tuple[int, int] | None:
        layers, heads = self._shape()
        if point.x() < self._left or point.y() < self._top or self._atlas is None:
            return None
        at = point - self._offset()
        layer, head = int(at.y() // self._cell.height()), int(at.x() // self._cell.width())
        return (layer, head) if 0 <= layer < layers and 0 <= head < heads else None

    # -- painting

    def _redraw(self) -> None:
        self._image = None
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self.viewport())
        if self._atlas is None or not all(self._shape()):
            return
        inside = QRectF(self.viewport().rect()).adjusted(self._left, self._top, 0, 0)
        painter.setClipRect(inside)
        ratio = self.devicePixelRatioF()
        if self._image is None:
            self._image = self._painted(ratio)
        painter.drawImage(self._offset(), self._image)
        self._paint_absent(painter)
        painter.setClipping(False)
        self._paint_labels(painter)
        painter.setClipRect(inside.adjusted(-3, -3, 0, 0))
        self._paint_marks(painter)

    def _painted(self, ratio: float) -> QImage:
        """All thumbnails, gaps between them clear."""
        assert self._atlas is not None
        gap = self._gap()
        size = (self._cell - QSize(gap, gap)) * ratio
        levels = _fit(self._atlas.levels, max(size.height(), 1), max(size.width(), 1))
        shown = _shown(levels, self._per_head)
        layers, heads, height, width = shown.shape
        step_y, step_x = round(self._cell.height() * ratio), round(self._cell.width() * ratio)
        sheet = np.zeros((layers, step_y, heads, step_x), np.uint8)
        sheet[:, :height, :, :width] = shown.transpose(0, 2, 1, 3)
        table = colour_table(self._theme, self._colours)
        sheet = sheet.reshape(layers * step_y, heads * step_x)
        table[0] = 0  # clear: gaps, absent cells and absent heads show the surface beneath
        image = picture(sheet, table)
        image.setDevicePixelRatio(ratio)
        return image

    def _paint_absent(self, painter: QPainter) -> None:
        assert self._atlas is not None
        _, most = self._shape()
        hatch = QBrush(QColor(self._theme.hatch), Qt.BrushStyle.BDiagPattern)
        painter.setFont(self._small)
        for layer, heads in enumerate(self._atlas.heads):
            if heads == most:
                continue
            area = self._rect(layer, heads) | self._rect(layer, most - 1)
            painter.fillRect(area, QColor(self._theme.absent))
            painter.fillRect(area, hatch)
            reason = self._atlas.reasons[layer]
            if reason and self._line <= self._cell.height():
                text = painter.fontMetrics().elidedText(
                    reason, Qt.TextElideMode.ElideRight, int(area.width() - 8)
                )
                box = QRectF(painter.boundingRect(area, Qt.AlignmentFlag.AlignCenter, text))
                painter.fillRect(box.adjusted(-4, 0, 4, 0), QColor(self._theme.card))
                painter.setPen(QColor(self._theme.muted))
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_labels(self, painter: QPainter) -> None:
        layers, heads = self._shape()
        marked = self._over or self._selected or (-1, -1)
        painter.setFont(self._small)
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(QPointF(2, self._line * 0.85), self.tr("layers ↓   heads →"))
        across = _stride(self._line * 1.7, self._cell.width())
        for head in range(0, heads, across):
            self._paint_number(painter, head, head == marked[1], across=True)
        down = _stride(self._line, self._cell.height())
        for layer in range(0, layers, down):
            self._paint_number(painter, layer, layer == marked[0], across=False)
        if marked[1] % across and 0 <= marked[1] < heads:
            self._paint_number(painter, marked[1], True, across=True)
        if marked[0] % down and 0 <= marked[0] < layers:
            self._paint_number(painter, marked[0], True, across=False)

    def _paint_number(self, painter: QPainter, number: int, marked: bool, across: bool) -> None:
        thumb = self._rect(0, number) if across else self._rect(number, 0)
        if across:
            rect = QRectF(thumb.left() - 20, self._top - self._line - 2, thumb.width() + 40, 0)
            rect.setHeight(self._line)
            if thumb.center().x() < self._left:
                return
        else:
            rect = QRectF(0, thumb.center().y() - self._line / 2, self._left - 4, self._line)
            if thumb.center().y() < self._top:
                return
        align = Qt.AlignmentFlag.AlignCenter if across else Qt.AlignmentFlag.AlignRight
        painter.setPen(QColor(self._theme.text if marked else self._theme.muted))
        if marked:
            box = QRectF(painter.boundingRect(rect, align, str(number))).adjusted(-3, 0, 3, 0)
            painter.fillRect(box, QColor(self._theme.selection))
            painter.setPen(QColor(self._theme.on_selection))
        painter.drawText(rect, align, str(number))

    def _paint_marks(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        layers, heads = self._shape()
        for cell, colour, width in (
            (self._over, self._theme.text, 1.5),
            (self._selected, self._theme.accent, 2.5),
        ):
            if cell is not None and cell[0] < layers and cell[1] < heads:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRoundedRect(self._rect(*cell).adjusted(-1, -1, 1, 1), 2, 2)

    # -- mouse and keys

    def _set_over(self, cell: tuple[int, int] | None, aloud: bool = False) -> None:
        if cell != self._over:
            self._over = cell
            if cell is not None:
                say(self, self._read(*cell), aloud)
            self.hovered.emit(cell)
            self.viewport().update()

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            cell = self._head_at(QPointF(event.pos()))
            text = "" if cell is None else self._read(*cell)
            QToolTip.showText(event.globalPos(), text, self)
            return True
        if event.type() == QEvent.Type.Leave:
            self._set_over(None)
        return super().viewportEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_over(self._head_at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._head_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self._pick(cell)

    def _pick(self, cell: tuple[int, int]) -> None:
        assert self._atlas is not None
        layer, head = cell
        if head < self._atlas.heads[layer]:
            self.picked.emit(layer, head)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press has said it all

    def keyPressEvent(self, event: QKeyEvent) -> None:
        layers, heads = self._shape()
        moves = {
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
            Qt.Key.Key_PageUp: (-5, 0),
            Qt.Key.Key_PageDown: (5, 0),
            Qt.Key.Key_Home: (0, -heads),
            Qt.Key.Key_End: (0, heads),
        }
        move = moves.get(Qt.Key(event.key()))
        if move is None or not heads:
            super().keyPressEvent(event)
            return
        layer, head = self._selected or (0, 0)
        layer = min(max(layer + move[0], 0), layers - 1)
        head = min(max(head + move[1], 0), heads - 1)
        self._show_cell(layer, head)
        say(self, self._read(layer, head), aloud=True)
        self._pick((layer, head))

    def _show_cell(self, layer: int, head: int) -> None:
        for bar, at, size, room in (
            (
                self.horizontalScrollBar(),
                head * self._cell.width(),
                self._cell.width(),
                self.viewport().width() - self._left,
            ),
            (
                self.verticalScrollBar(),
                layer * self._cell.height(),
                self._cell.height(),
                self.viewport().height() - self._top,
            ),
        ):
            if at < bar.value():
                bar.setValue(at)
            elif at + size > bar.value() + room:
                bar.setValue(at + size - room)

    # -- changes from outside

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._lay_out()
            self.updateGeometry()


def _stride(room: float, cell: int) -> int:
    """Every how many thumbnails a number of that many pixels fits."""
    return next((n for n in (1, 2, 4, 8, 16) if n * cell >= room), 32)


def _fit(levels: np.ndarray, height: int, width: int) -> np.ndarray:
    """(L, H, height, width): thumbnails at their size on screen, maxima kept where they shrink."""
    size = levels.shape[2]
    down, across = np.arange(height) * size // height, np.arange(width) * size // width
    wide = maxima(levels, across, 3) if width < size else levels.take(across, 3)
    return maxima(wide, down, 2) if height < size else wide.take(down, 2)


def _shown(levels: np.ndarray, per_head: bool) -> np.ndarray:
    """uint16 levels of the figures as uint8 levels of the colour table."""
    steps = 255 - FIRST_LEVEL
    top = np.float32(LEVELS)
    if per_head:
        most = levels.max(axis=(2, 3), keepdims=True).astype(np.float32) - READ
        top = np.where(most > 0, most, np.float32(LEVELS))
    scaled = np.rint((levels.astype(np.float32) - READ) * (steps / top)) + FIRST_LEVEL
    return np.where(levels < READ, levels, scaled).astype(np.uint8)
