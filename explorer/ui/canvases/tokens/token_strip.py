"""The tokens of a run as boxes, one per slot, wrapped like text.

The origin of a token shows in form as well as colour: generated tokens have a bar underneath,
forced ones a corner as well, padding is hatched and dashed, special tokens are rounded.  Tokens
that spell a character only together touch, and the last of them shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.text import tokens as figures
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import Label
from explorer.trace.chat import Part, PromptParts
from explorer.trace.step import Token
from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import ScrollCanvas
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.canvases.tokens.row_pictures import RowPictures, blank, wipe
from explorer.ui.canvases.tokens.strip_layout import Box, first_change, moved, span_of_row
from explorer.ui.canvases.tokens.token_box import (
    in_words,
    paint_boundary,
    paint_box,
    paint_joint,
    paint_strike,
)
from explorer.ui.look.text_size import for_back_row
from explorer.ui.look.theme import Theme, unit

_MOST_CHARACTERS = 40  # a longer token is cut in the middle; its tip shows it whole
_DRAWN_AFRESH = 12  # with more boxes in view than this, rows are kept as pictures


class TokenStrip(ScrollCanvas):
    """Shows tokens; reports which slot is hovered and which is picked."""

    hovered = Signal(object)  # slot or None
    picked = Signal(int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.List)
        self.setAccessibleName(self.tr("Tokens"))
        self._theme = theme
        self._tokens: tuple[Token, ...] = ()
        self._labels: tuple[Label, ...] = ()
        self._texts: list[str] = []
        self._widths: list[float] = []
        self._boxes: list[Box] = []
        self._read = 0
        self._parts: PromptParts | None = None
        self._reused = 0  # slots that were in the cache before the run
        self._forgotten: tuple[range, ...] = ()  # slots that nothing attends to any more
        self._levels: Sequence[float | None] = ()  # colours, 0..1; empty = by origin
        self._more: Callable[[int], str] = lambda slot: ""  # to be said of a slot
        self._selected: int | None = None
        self._marked: int | None = None
        self._over: int | None = None
        self._rows = RowPictures()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        cover(self.viewport())

    # -- what is shown

    def set_tokens(
        self, tokens: Sequence[Token], labels: Sequence[Label] | None = None, read: int = -1
    ) -> None:
        """Show these tokens; those from slot `read` on are faint (-1 = none).

        Tokens that stay at their slots are not measured again, so that appending is cheap.
        """
        tokens = tuple(tokens)
        same = first_change(self._tokens, tokens)
        if labels is None:
            labels = figures.extended(self._tokens, self._labels, tokens)
        read = len(tokens) if read < 0 else read
        if (tokens, tuple(labels), read) == (self._tokens, self._labels, self._read):
            return  # the end of a run shows what its last step showed
        changed = min(same, read, self._read) if read != self._read else same
        self._tokens, self._labels, self._read = tokens, tuple(labels), read
        # A character that a new token completes changes the boxes of those before it.
        while same > 0 and self._labels[same - 1].last >= same:
            same -= 1
        self._measure(same)
        self._lay_out(same)
        self._redraw(min(changed, same))
        if self._over is not None and self._over >= len(tokens):
            self._set_over(None)

    def set_marks(self, selected: int | None, marked: int | None = None) -> None:
        """Mark the selected slot, and one that is hovered elsewhere."""
        before = (self._selected, self._marked)
        if (selected, marked) != before:
            self._selected, self._marked = selected, marked
            self._describe()
            self._repaint(*before, selected, marked)

    def set_parts(self, parts: PromptParts | None) -> None:
        """Tell a chat template's tokens from the message; slots as they are shown."""
        if parts != self._parts:
            self._parts = parts
            self._redraw(0)

    def set_reused(self, count: int) -> None:
        """Mark where the prompt was read on from: slots before it were in the cache."""
        if count != self._reused:
            self._reused = count
            self._redraw(0)

    def set_forgotten(self, slots: tuple[range, ...]) -> None:
        """Strike out the slots that newer tokens no longer attend to."""
        before = self._forgotten
        if slots != before:
            self._forgotten = slots
            grows = len(before) == len(slots) == 1 and before[0].start == slots[0].start
            self._redraw(min(before[0].stop, slots[0].stop) if grows else 0)

    def _is_forgotten(self, slot: int) -> bool:
        return any(slot in span for span in self._forgotten)

    def set_levels(self, levels: Sequence[float | None], more: Callable[[int], str]) -> None:
        """Colour the tokens by 0..1; `more` is said of a slot besides."""
        changed, before = first_change(self._levels, levels), len(self._levels)
        self._more, self._levels = more, levels
        if changed < max(before, len(levels)):
            self._redraw(changed)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw(0)

    def text(self) -> str:
        """All tokens as plain text, padding left out."""
        return figures.decode(self._tokens)

    # -- geometry

    @property
    def boxes(self) -> tuple[Box, ...]:
        """One per token, in rows from the top."""
        return tuple(self._boxes)

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands in each box."""
        return tuple(self._texts)

    @property
    def levels(self) -> Sequence[float | None]:
        """The colour of each box, 0..1, None without one; empty where they show the origin."""
        return self._levels

    @property
    def over(self) -> int | None:
        """The slot under the mouse or reached by the keys."""
        return self._over

    def box_rect(self, slot: int) -> QRectF:
        """One box, in the viewport."""
        box = self._boxes[slot]
        top = self._gap() * 2 + box.row * self._row_height() - self.verticalScrollBar().value()
        return QRectF(box.left, top, box.width, self._box_height())

    def sizeHint(self) -> QSize:
        rows = 2
        if for_back_row():  # what is under it is to fill the screen
            rows = min(2, self._boxes[-1].row + 1 if self._boxes else 1)
        return QSize(round(400 * unit(self)), self._height_of(rows))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(120 * unit(self)), self._height_of(1))

    def _height_of(self, rows: int) -> int:
        return round(rows * self._row_height() + 2 * self._gap())

    def _row_height(self) -> float:
        return self._box_height() + 2 * self._gap()

    def _box_height(self) -> float:
        return QFontMetricsF(self.font()).height() + 6 * unit(self)

    def _gap(self) -> float:
        return 2 * unit(self)

    def _at_end(self) -> bool:
        return (bar := self.verticalScrollBar()).value() == bar.maximum()

    def _measure(self, first: int) -> None:
        metrics, padding = QFontMetricsF(self.font()), 12 * unit(self)
        del self._texts[first:], self._widths[first:]
        for slot, label in enumerate(self._labels[first:], first):
            text = elide(label.text, _MOST_CHARACTERS)
            if label.whole and slot == label.last:
                text += f" {elide(label.whole, 12)}"
            self._texts.append(text)
            self._widths.append(max(metrics.horizontalAdvance(text) + padding, padding * 1.5))

    def _lay_out(self, first: int = 0) -> None:
        """Place the boxes from slot `first` on; an end that was in view stays in view."""
        follow = self._at_end()
        gap, right = self._gap(), self.viewport().width()
        boxes = self._boxes[:first]
        x, row = gap, 0
        if boxes:
            x = boxes[-1].left + boxes[-1].width
            x, row = x + self._space_after(first - 1, gap), boxes[-1].row
        for slot, width in enumerate(self._widths[first:], first):
            width = min(width, right - 2 * gap)
            if x + width > right - gap and x > gap:
                x, row = gap, row + 1
            boxes.append(Box(x, row, width))
            x += width + self._space_after(slot, gap)
        self._boxes = boxes
        rows = row + 1 if boxes else 0
        if for_back_row():
            self.updateGeometry()
        self.set_extent(self._height_of(rows), self._row_height())
        if follow:
            self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _space_after(self, slot: int, gap: float) -> float:
        return 0.0 if slot < self._labels[slot].last else gap

    def _slot_at(self, point: QPoint) -> int | None:
        y = point.y() + self.verticalScrollBar().value() - self._gap()
        row = int(y // self._row_height()) if y >= 0 else -1
        for slot in range(*span_of_row(self._boxes, row)):
            if self.box_rect(slot).adjusted(-1, -2, 1, 2).contains(point):
                return slot
        return None

    # -- painting

    def _redraw(self, first: int) -> None:
        """Paint again from slot `first` on; what stands before it in pictures still holds."""
        row = self._boxes[first].row if 0 < first < len(self._boxes) else -1
        self._rows.outdate(row, first)
        top = 0 if row < 0 else round(self._row_top(row)) - 3
        self.viewport().update(0, top, self.viewport().width(), self.viewport().height())

    def _repaint(self, *slots: int | None) -> None:
        """Only these boxes and the marks around them."""
        for slot in slots:
            if slot is not None and slot < len(self._boxes):
                self.viewport().update(self.box_rect(slot).adjusted(-3, -3, 3, 3).toAlignedRect())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self.viewport())
        fill(painter, event.rect(), self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        first, last = self._in_view()
        if last - first <= _DRAWN_AFRESH:
            self._paint_boxes(painter, first, last)
        else:
            self._paint_rows(painter, self._boxes[first].row, self._boxes[last - 1].row)
        for slot, colour, width in (
            (self._marked, self._theme.strong_border, 2.0),
            (self._over, self._theme.accent, 1.5),
            (self._selected, self._theme.accent, 2.5),
        ):
            if slot is not None and slot < len(self._boxes):
                painter.setPen(QPen(QColor(colour), width))
                radius = self._radius(slot) + 1
                painter.drawRoundedRect(self.box_rect(slot).adjusted(-1, -1, 1, 1), radius, radius)

    def _paint_rows(self, painter: QPainter, first: int, last: int) -> None:
        height = self._row_height()
        for row in range(first, last + 1):
            picture, stale = self._rows.get(row)
            if picture is None:
                picture = blank(self.viewport().width(), height, self.devicePixelRatioF())
                stale = span_of_row(self._boxes, row)[0]
            if stale is not None:
                self._paint_row(picture, row, stale)
            self._rows.put(row, picture)
            painter.drawPixmap(QPointF(0, self._row_top(row)), picture)

    def _row_top(self, row: int) -> float:
        """Where the picture of a row stands in the viewport."""
        return self._gap() + row * self._row_height() - self.verticalScrollBar().value()

    def _paint_row(self, picture: QPixmap, row: int, first: int) -> None:
        """The boxes of a row from slot `first` on: a token that is added costs one box."""
        begin, end = span_of_row(self._boxes, row)
        painter = painter_of(picture)
        left = self._boxes[first].left - self._gap() / 2 if first > begin else 0.0
        wipe(painter, picture, left)
        painter.setFont(self.font())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(0, -self._row_top(row))
        self._paint_boxes(painter, first, end)
        painter.end()

    def _in_view(self) -> tuple[int, int]:
        height, above = self._row_height(), self.verticalScrollBar().value() - self._gap()
        first, _ = span_of_row(self._boxes, max(0, int(above // height)))
        _, last = span_of_row(self._boxes, int((above + self.viewport().height()) // height))
        return first, last

    def _paint_boxes(self, painter: QPainter, first: int, last: int) -> None:
        for slot in range(first, last):
            self._paint_box(painter, slot)
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _radius(self, slot: int) -> float:
        return self._box_height() / 2 if self._tokens[slot].special else 3.5 * unit(self)

    def _paint_box(self, painter: QPainter, slot: int) -> None:
        paint_box(
            painter,
            self.box_rect(slot),
            self._radius(slot),
            self._tokens[slot],
            self._texts[slot],
            self._theme,
            unit(self),
            self._part(slot) or "message",
            self._role(slot),
            self._levels[slot] if slot < len(self._levels) else None,
            faint=(slot >= self._read or self._is_forgotten(slot)) and not self._levels,
        )
        if self._is_forgotten(slot):
            paint_strike(painter, self.box_rect(slot), self._theme.muted, unit(self))
        if self._parts is not None and slot == self._parts.answer:
            paint_boundary(painter, self.box_rect(slot), self._theme.warning, unit(self))
        if slot and slot == self._reused:
            paint_boundary(painter, self.box_rect(slot), self._theme.formula, unit(self), 3)
        label = self._labels[slot]
        if label.first != label.last:
            ends = (slot == label.first, slot == label.last)
            edge = self._theme.origin(self._tokens[slot].origin).edge
            paint_joint(painter, self.box_rect(slot), ends, edge, unit(self))

    # -- reading

    def words(self, slot: int) -> str:
        """One slot in words: its text, id, bytes and origin."""
        read = slot < self._read
        more = self._part(slot), self._role(slot), slot < self._reused, self._more(slot)
        gone = self._is_forgotten(slot)
        return in_words(slot, self._tokens[slot], self._labels[slot], read, *more, gone)

    def _part(self, slot: int) -> Part | None:
        """What a prompt's token is for in a chat; None of any other token."""
        if self._parts is None or self._tokens[slot].origin != "prompt":
            return None
        return self._parts.part(slot)

    def _role(self, slot: int) -> str:
        """Whose turn a token of the prompt belongs to; "" where none is known."""
        if self._parts is None or self._tokens[slot].origin != "prompt":
            return ""
        return self._parts.role(slot)

    def _describe(self, aloud: bool = False) -> None:
        slot = self._over if self._over is not None else self._selected
        if slot is not None and slot < len(self._tokens):
            say(self, self.words(slot), aloud)
        else:
            say(self, self.tr("{0} tokens").format(len(self._tokens)))

    def _set_over(self, slot: int | None, aloud: bool = False) -> None:
        if slot != self._over:
            before, self._over = self._over, slot
            self._describe(aloud)
            self.hovered.emit(slot)
            self._repaint(before, slot)

    # -- mouse and keys

    def tip_at(self, point: QPoint) -> str:
        slot = self._slot_at(point)
        return "" if slot is None else self.words(slot)

    def pointer_left(self) -> None:
        self._set_over(None)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_over(self._slot_at(event.position().toPoint()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        slot = self._slot_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and slot is not None:
            self.setProperty(KEEPS_ARROWS, False)
            self.picked.emit(slot)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press has said it all

    def focusInEvent(self, event: QFocusEvent) -> None:
        """With the keyboard, arrows move its cursor; after a click they go along the run."""
        reason = event.reason()
        if reason not in (
            Qt.FocusReason.ActiveWindowFocusReason,
            Qt.FocusReason.PopupFocusReason,
        ):
            self.setProperty(KEEPS_ARROWS, reason != Qt.FocusReason.MouseFocusReason)
        super().focusInEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.text())
            return
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._over is not None:
            self.picked.emit(self._over)
            return
        slot = self._moved(key)
        if slot is None:
            super().keyPressEvent(event)
            return
        self._set_over(slot, aloud=True)
        self.reveal(slot)

    def _moved(self, key: Qt.Key) -> int | None:
        if not self._boxes:
            return None
        last = len(self._boxes) - 1
        at = self._over if self._over is not None else self._selected
        return moved(self._boxes, last if at is None else min(at, last), key)

    def reveal(self, slot: int) -> None:
        """Scroll until this box is in sight."""
        rect, bar = self.box_rect(slot), self.verticalScrollBar()
        below = rect.bottom() - self.viewport().height()
        if rect.top() < 0 or below > 0:
            by = below + self._gap() if below > 0 else rect.top() - self._gap()
            bar.setValue(round(bar.value() + by))

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()
        self._redraw(0)

    def restyled(self) -> None:
        self._measure(0)
        self._lay_out()
        self._redraw(0)
        self.updateGeometry()
