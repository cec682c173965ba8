"""All heads of all layers as one picture of small maps; a click looks at one of them.

Layers run down, heads run across.  A layer without attention keeps its row, greyed, with its
reason.  Everything is one image: hundreds of heads cost no more to paint than one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Literal

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.atlas import Atlas
from explorer.figures.drawing.colormaps import difference
from explorer.figures.drawing.colour_scale import Scale
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import ScrollCanvas, Terms
from explorer.ui.canvases.maps.atlas_labels import AtlasLabels
from explorer.ui.canvases.maps.atlas_layout import AtlasLayout
from explorer.ui.canvases.maps.best_heads import Best, BestHeads
from explorer.ui.canvases.maps.lut_image import colour_table
from explorer.ui.canvases.maps.svg_images import draw_picture
from explorer.ui.canvases.maps.thumbnails import Sheet, SheetPlan
from explorer.ui.canvases.opaque import cover, fill, painter_of, write_note
from explorer.ui.look.text_size import for_back_row, small_font
from explorer.ui.look.theme import Theme, unit
from explorer.ui.threads.worker import Worker

HeadChange = Literal["silenced", "patched", "named"]
_AT_ONCE = 1 << 17  # cells of thumbnails that are drawn in the window's thread: a few milliseconds
_MOVES = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
    Qt.Key.Key_PageUp: (-5, 0),
    Qt.Key.Key_PageDown: (5, 0),
    Qt.Key.Key_Home: (0, -1000),
    Qt.Key.Key_End: (0, 1000),
}


class AtlasView(ScrollCanvas):
    """Shows thumbnails; reports which head is hovered and which is picked."""

    hovered = Signal(object)  # (layer, head) or None
    picked = Signal(int, int)  # layer, head
    menuAsked = Signal(QPoint)  # for the selected head, at a point of the screen

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
        cover(self.viewport())
        self._theme = theme
        self._read = read or (lambda layer, head: f"{layer} {head}")
        self._atlas: Atlas | None = None
        self._colours = "viridis"
        self._scale: Scale = "fixed"
        self._order: Sequence[tuple[int, int]] | None = None
        self._selected: tuple[int, int] | None = None
        self._changed: Mapping[tuple[int, int], HeadChange] = {}
        self._over: tuple[int, int] | None = None
        self.sheet: Sheet | None = None  # the thumbnails as they are shown
        self._asked: tuple[SheetPlan, Atlas] | None = None  # of the one that is being made
        self._worker = Worker(self)
        self._numbers: tuple[object, QPixmap] | None = None
        self._layout = AtlasLayout()
        self._best = BestHeads()
        self._note, self._doing = "", ""

    def summary(self) -> str:
        """What a screen reader says before anything is looked at: the selected head."""
        if self._atlas is None or self._selected is None:
            return self._note
        return self._read(*self._selected)

    # -- what is shown

    def set_atlas(self, atlas: Atlas | None, sheet: Sheet | None = None) -> None:
        """Show other thumbnails; `sheet` is their picture by a `sheet_maker`, if there is one."""
        self._atlas, self._note = atlas, ""
        self._lay_out()
        self.sheet = sheet

    def set_note(self, sentence: str) -> None:
        """Show a sentence in place of thumbnails."""
        self.set_atlas(None)
        self._note = sentence

    @property
    def shown(self) -> Atlas | None:
        """The thumbnails on screen, as figures; None without any."""
        return self._atlas

    @property
    def doing(self) -> str:
        """What is said in the corner."""
        return self._doing

    def set_doing(self, words: str) -> None:
        """Say in the corner what is being worked out; empty = nothing."""
        self._doing = words
        self.viewport().update()

    def set_order(self, order: Sequence[tuple[int, int]] | None, best: Sequence[Best] = ()) -> None:
        """Put heads in this order, row by row; None = layers down, heads across.

        `best`: the first of them, which are shown larger and with their words.
        """
        if order is not self._order:
            self._order, self._numbers = order, None
            self._best.set_heads(best)
            self._lay_out()

    def to_top(self) -> None:
        """Bring the first head into view."""
        self.verticalScrollBar().setValue(0)
        self.horizontalScrollBar().setValue(0)

    def set_selected(self, layer: int, head: int) -> None:
        """Mark the head that is looked at."""
        if (layer, head) != self._selected:
            self._selected = (layer, head)
            self.reveal(layer, head)
            self.viewport().update()

    def set_changed(self, heads: Mapping[tuple[int, int], HeadChange]) -> None:
        """Mark heads whose output the run changes: a cross if silenced, a diamond if patched.

        A head that the words around name has a frame.
        """
        if heads != self._changed:
            self._changed = heads
            self.viewport().update()

    def set_colours(self, name: str, scale: Scale) -> None:
        """Another colour map or scale; the maximum of "max" is each head's own."""
        self._colours, self._scale = name, scale
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw()

    # -- geometry

    def sizeHint(self) -> QSize:
        return QSize(round(300 * unit(self)), round(420 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(130 * unit(self)), round(110 * unit(self)))

    def _lay_out(self) -> None:
        layers, heads = (0, 0) if self._atlas is None else self._atlas.levels.shape[:2]
        place = self._layout
        place.set_heads(layers, heads, self._order)
        u = unit(self)
        self._small = small_font(self, 10.5)
        metrics = QFontMetricsF(self._small)
        self._line = metrics.height()
        widest = "00" if self._order is None else str(len(self._order))
        place.left = round(metrics.horizontalAdvance(widest) + 8 * u)
        place.top = round(2 * self._line + 4 * u)
        if self._order is not None:
            space = QSizeF(self.viewport().size())
            self._best.set_space(space, metrics, self._line + 4 * u, u)
            place.top = round(self._line + self._best.height + 8 * u)
        place.set_space(self.viewport().size(), u, self.devicePixelRatioF(), for_back_row())
        for bar, length, room in (
            (self.horizontalScrollBar(), place.whole.width(), self.viewport().width()),
            (self.verticalScrollBar(), place.whole.height(), self.viewport().height()),
        ):
            bar.setRange(0, max(0, ceil(length) - room))
            bar.setPageStep(room)
            bar.setSingleStep(round(place.cell.height()))
        self._redraw()

    def _offset(self) -> QPointF:
        return QPointF(
            self._layout.left - self.horizontalScrollBar().value(),
            self._layout.top - self.verticalScrollBar().value(),
        )

    def cell_rect(self, row: int, column: int) -> QRectF:
        return self._layout.rect(row, column, self._offset())

    def head_of(self, row: int, column: int) -> tuple[int, int] | None:
        return self._layout.head_of(row, column)

    def _head_at(self, point: QPointF) -> tuple[int, int] | None:
        if self._order is not None and point.y() < self._layout.top:
            return self._best.head_at(point)
        return self._layout.head_at(point, self._offset())

    # -- painting

    def _redraw(self) -> None:
        self.viewport().update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self.viewport())
        fill(painter, event.rect(), self._theme)
        if self._atlas is None or not all(self._layout.shape):
            area = self.viewport().rect().adjusted(4, 4, -4, -4)
            write_note(painter, area, self._theme, self._note)
            return
        inside = QRectF(self.viewport().rect()).adjusted(self._layout.left, self._layout.top, 0, 0)
        painter.setClipRect(inside)
        ratio = self.devicePixelRatioF()
        plan = self._plan(self._atlas.signed)
        document = abs(painter.deviceTransform().m11() - ratio) >= 1e-3
        sheet = self._pictured(plan, self._atlas, document)
        if sheet is not None and sheet.plan == plan:
            draw_picture(painter, self._offset(), sheet.image)
        elif sheet is not None:  # an older one, stretched to where the new one comes
            painter.drawImage(QRectF(self._offset(), self._layout.sheet), sheet.image)
        if self._order is None:
            self._paint_absent(painter)
        painter.setClipping(False)
        if document:  # text stays text
            self._paint_labels(painter)
        else:
            painter.drawPixmap(0, 0, self._numbers_picture(ratio))
        if self._order is not None:
            painter.setFont(self._small)
            self._best.paint(painter, self._atlas, plan, self._theme, self._selected)
        painter.setClipRect(inside.adjusted(-3, -3, 0, 0))
        self._paint_marks(painter)

    def _pictured(self, plan: SheetPlan, atlas: Atlas, document: bool) -> Sheet | None:
        """The newest picture; an older one, or none, while a large one is being made."""
        if self.sheet is not None and self.sheet.plan == plan:
            return self.sheet
        if atlas.levels.size <= _AT_ONCE or document or not self.isVisible():
            self.sheet = plan.sheet(atlas)
        elif self._asked is None or self._asked[0] != plan or self._asked[1] is not atlas:
            self._asked = plan, atlas
            have = partial(self._have, atlas)
            self._worker.ask("sheet", partial(plan.sheet, atlas), have, urgent=True)
        return self.sheet

    def _have(self, atlas: Atlas, sheet: Sheet) -> None:
        self._asked = None
        if atlas is self._atlas:
            self.sheet = sheet
            self.viewport().update()

    def sheet_maker(self) -> Callable[[Atlas], Sheet | None]:
        """Makes, in any thread, the picture of an atlas as it would be shown now, for `set_atlas`.

        None where the places would be others; what does not fit any more is not used.
        """
        places = (self._layout.layers, self._layout.heads)
        plans = {signed: self._plan(signed) for signed in (False, True)}

        def make(atlas: Atlas) -> Sheet | None:
            return plans[atlas.signed].sheet(atlas) if atlas.levels.shape[:2] == places else None

        return make

    def _plan(self, signed: bool) -> SheetPlan:
        ratio = self.devicePixelRatioF()
        step = (self._layout.cell * ratio).toSize()
        size = step - QSize(1, 1) * round(self._layout.gap * ratio)
        colours = difference(self._theme.dark) if signed else self._colours
        return SheetPlan(
            size=(size.height(), size.width()),
            step=(step.height(), step.width()),
            shape=self._layout.shape,
            order=self._order,
            scale=self._scale,
            table=tuple(colour_table(self._theme, colours)),
            ratio=ratio,
        )

    def _paint_absent(self, painter: QPainter) -> None:
        assert self._atlas is not None
        _, most = self._layout.shape
        hatch = QBrush(QColor(self._theme.hatch), Qt.BrushStyle.BDiagPattern)
        painter.setFont(self._small)
        for layer, heads in enumerate(self._atlas.heads):
            if heads == most:
                continue
            area = self.cell_rect(layer, heads) | self.cell_rect(layer, most - 1)
            painter.fillRect(area, QColor(self._theme.absent))
            painter.fillRect(area, hatch)
            reason = self._atlas.reasons[layer]
            if reason and self._line <= self._layout.cell.height():
                right = Qt.TextElideMode.ElideRight
                text = painter.fontMetrics().elidedText(reason, right, int(area.width() - 8))
                box = QRectF(painter.boundingRect(area, Qt.AlignmentFlag.AlignCenter, text))
                painter.fillRect(box.adjusted(-4, 0, 4, 0), QColor(self._theme.card))
                painter.setPen(QColor(self._theme.muted))
                painter.drawText(area, Qt.AlignmentFlag.AlignCenter, text)

    def _numbers_picture(self, ratio: float) -> QPixmap:
        """The labels, which stay as they are while thumbnails change with every step."""
        place, size = self._layout, self.viewport().size()
        shape = (place.shape, place.cell.width(), place.cell.height(), place.left, place.top)
        look = (self._theme.name, self._small.toString(), self._order is None, self._doing, ratio)
        marked = self._over or self._selected
        key = (size.width(), size.height(), self._offset().toTuple(), shape, look, marked)
        if self._numbers is None or self._numbers[0] != key:
            picture = QPixmap(size * ratio)
            picture.setDevicePixelRatio(ratio)
            picture.fill(Qt.GlobalColor.transparent)
            painter = painter_of(picture)
            self._paint_labels(painter)
            painter.end()
            self._numbers = (key, picture)
        return self._numbers[1]

    def _paint_labels(self, painter: QPainter) -> None:
        painter.setFont(self._small)
        marked = self._over or self._selected
        AtlasLabels(self._layout, self._offset(), self._line, self._theme).paint(
            painter, marked, self._doing
        )

    def _paint_marks(self, painter: QPainter) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for head, change in self._changed.items():
            box = self.head_rect(*head)
            if box is not None and change == "named":
                painter.setPen(QPen(QColor(self._theme.danger), 2.5))
                painter.drawRect(box.adjusted(-1, -1, 1, 1))
            elif box is not None:
                self._paint_change(painter, box, change)
        for cell, colour, width in (
            (self._over, self._theme.text, 1.5),
            (self._selected, self._theme.accent, 2.5),
        ):
            place = None if cell is None else self._layout.place_of(*cell)
            if place is not None:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRoundedRect(self.cell_rect(*place).adjusted(-1, -1, 1, 1), 2, 2)

    def _paint_change(self, painter: QPainter, box: QRectF, change: HeadChange) -> None:
        middle, arm = box.center(), max(min(box.width(), box.height()) / 2 - 2, 3.0)
        right, down = QPointF(arm, 0), QPointF(0, arm)
        diamond = [middle - down, middle + right, middle + down, middle - right]
        for colour, width in ((self._theme.card, 4.0), (self._theme.danger, 2.0)):
            painter.setPen(QPen(QColor(colour), width))
            if change == "silenced":
                painter.drawLine(box.topLeft(), box.bottomRight())
                painter.drawLine(box.bottomLeft(), box.topRight())
            else:
                painter.drawPolygon(diamond)

    # -- mouse and keys

    def _set_over(self, cell: tuple[int, int] | None, aloud: bool = False) -> None:
        if cell != self._over:
            self._over = cell
            if cell is not None:
                say(self, self._read(*cell), aloud)
            self.hovered.emit(cell)
            self.viewport().update()

    def painted_terms(self) -> Terms:
        """The corner that names layers and heads."""
        known = self._atlas is not None and self._layout.order is None
        return [("head", QRectF(0, 0, self._layout.left, self._line))] if known else []

    def tip_at(self, point: QPoint) -> str:
        cell = self._head_at(QPointF(point))
        return "" if cell is None else self._read(*cell)

    def pointer_left(self) -> None:
        self._set_over(None)

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

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """By the mouse for the head under it, by the keyboard for the selected one."""
        if event.reason() == QContextMenuEvent.Reason.Mouse:
            cell = self._head_at(QPointF(event.pos()))
            if cell is None:
                return
            self._pick(cell)
        self.menuAsked.emit(event.globalPos())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press has said it all

    def keyPressEvent(self, event: QKeyEvent) -> None:
        layers, heads = self._layout.shape
        move = _MOVES.get(Qt.Key(event.key()))
        if move is None or not heads:
            super().keyPressEvent(event)
            return
        row, column = self._layout.place_of(*(self._selected or (0, 0))) or (0, 0)
        row = min(max(row + move[0], 0), layers - 1)
        column = min(max(column + move[1], 0), heads - 1)
        found = self.head_of(row, column)
        if found is None:
            return
        layer, head = found
        self.reveal(layer, head)
        say(self, self._read(layer, head), aloud=True)
        self._pick((layer, head))

    def head_rect(self, layer: int, head: int) -> QRectF | None:
        """Where the thumbnail of a head is in the viewport; None if there is none."""
        place = self._layout.place_of(layer, head)
        return None if place is None else self.cell_rect(*place)

    def reveal(self, layer: int, head: int) -> None:
        """Scroll until the thumbnail of a head is in sight."""
        place = self._layout.place_of(layer, head)
        if place is None:
            return
        down, across = self.verticalScrollBar(), self.horizontalScrollBar()
        cell, space, layout = self._layout.cell, self.viewport().size(), self._layout
        for bar, at, size, room in (
            (across, place[1], cell.width(), space.width() - layout.left),
            (down, place[0], cell.height(), space.height() - layout.top),
        ):
            if at * size < bar.value():
                bar.setValue(int(at * size))
            elif (at + 1) * size > bar.value() + room:
                bar.setValue(ceil((at + 1) * size - room))

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()

    def restyled(self) -> None:
        self._lay_out()
        self.updateGeometry()
