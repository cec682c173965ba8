"""Pairs that RoPE turned, each as a dial: the pair before, after, and the angle between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import atan2, cos, degrees, hypot, pi, sin

from PySide6.QtCore import QLineF, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.inside.block import TurnedPair
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import ScrollCanvas
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panels.block import words

_WIDE, _RADIUS, _WORDS = 58, 20, 15  # pixels at a zoom of 1: a dial's room, and of its words


class Dials(ScrollCanvas):
    """The grey hand is the pair before, the coloured one after; ←, →, ↑ and ↓ read them."""

    hovered = Signal(object)  # number of a pair, or None

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.List)
        self._theme = theme
        self._pairs: Sequence[TurnedPair] = ()
        self._position = 0
        self._current: int | None = None
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_pairs(self, pairs: Sequence[TurnedPair], position: int) -> None:
        """Draw the pairs of another head, turned for this position."""
        self._pairs, self._position = pairs, position
        if self._current is not None and self._current >= len(pairs):
            self._current = None
        self._lay_out()

    @property
    def pairs(self) -> Sequence[TurnedPair]:
        """What is drawn."""
        return self._pairs

    def words_of(self, number: int) -> str:
        """One pair in words."""
        return words.pair(self._pairs[number], number, self._position)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.viewport().update()

    # -- geometry

    @property
    def _across(self) -> int:
        return max(1, int(self.viewport().width() / (_WIDE * unit(self))))

    @property
    def _high(self) -> float:
        words = max(_WORDS * unit(self), small_font(self).pixelSize() * 1.3)
        return (2 * _RADIUS + 8) * unit(self) + words

    def rect_of(self, number: int) -> QRectF:
        """The room of a dial and its words, in the viewport."""
        across, wide = self._across, self.viewport().width() / self._across
        row, column = divmod(number, across)
        top = row * self._high - self.verticalScrollBar().value()
        return QRectF(column * wide, top, wide, self._high)

    def _lay_out(self) -> None:
        rows = -(-len(self._pairs) // self._across)
        self.set_extent(rows * self._high, self._high / 2)
        self.viewport().update()

    def sizeHint(self) -> QSize:
        return QSize(round(280 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(120 * unit(self)), round(self._high) + 2)

    def _in_view(self) -> Iterator[int]:
        for number in range(len(self._pairs)):
            rect = self.rect_of(number)
            if rect.bottom() > 0 and rect.top() < self.viewport().height():
                yield number

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self.viewport())
        fill(painter, event.rect(), self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for number in self._in_view():
            self._paint_dial(painter, number)

    def _paint_dial(self, painter: QPainter, number: int) -> None:
        one, rect, theme, u = self._pairs[number], self.rect_of(number), self._theme, unit(self)
        if number == self._current:
            painter.fillRect(rect.adjusted(1, 1, -1, -1), QColor(theme.hover))
        radius = _RADIUS * u
        middle = QPointF(rect.center().x(), rect.top() + radius + 4 * u)
        painter.setPen(QPen(QColor(theme.border), 1))
        painter.setBrush(QColor(theme.field))
        painter.drawEllipse(middle, radius, radius)
        start = _direction(one.before)
        self._paint_arc(painter, middle, 0.55 * radius, start, one.angle)
        for hand, colour, wide in (
            (one.before, theme.muted, 1.5), (one.after, theme.prefill, 2.5),
        ):  # fmt: skip
            self._paint_hand(painter, middle, radius, hand, QColor(colour), wide * u)
        small = small_font(self)
        painter.setFont(small)
        painter.setPen(QColor(theme.text))
        below = QRectF(rect.left(), middle.y() + radius, rect.width(), rect.bottom() - middle.y()
                       - radius)  # fmt: skip
        painter.drawText(below, Qt.AlignmentFlag.AlignCenter, angle_words(one.angle))

    def _paint_arc(
        self, painter: QPainter, middle: QPointF, radius: float, start: float, by: float
    ) -> None:
        area = QRectF(middle.x() - radius, middle.y() - radius, 2 * radius, 2 * radius)
        painter.setPen(QPen(QColor(self._theme.formula), 2 * unit(self)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawArc(area, round(16 * degrees(start)), round(16 * degrees(by)))

    def _paint_hand(
        self, painter: QPainter, middle: QPointF, radius: float, hand: tuple[float, float],
        colour: QColor, wide: float,
    ) -> None:  # fmt: skip
        if hypot(*hand) == 0:
            return
        way = _direction(hand)
        end = middle + QPointF(radius * cos(way), -radius * sin(way))
        painter.setPen(QPen(colour, wide))
        painter.drawLine(QLineF(middle, end))

    # -- reading

    def summary(self) -> str:
        """What a screen reader says before a dial was looked at."""
        return self.words_of(self._current or 0) if self._pairs else ""

    def tip_at(self, point: QPoint) -> str:
        number = self._at(QPointF(point))
        return "" if number is None else self.words_of(number)

    def _at(self, point: QPointF) -> int | None:
        return next((n for n in self._in_view() if self.rect_of(n).contains(point)), None)

    def _move_to(self, number: int | None, aloud: bool = False) -> None:
        if number == self._current:
            return
        self._current = number
        say(self, "" if number is None else self.words_of(number), aloud)
        self.hovered.emit(number)
        self.viewport().update()

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._move_to(self._at(event.position()))

    def pointer_left(self) -> None:
        self._move_to(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Up: -self._across,
            Qt.Key.Key_Down: self._across, Qt.Key.Key_Home: -(1 << 30), Qt.Key.Key_End: 1 << 30,
        }  # fmt: skip
        key = Qt.Key(event.key())
        if not (self._pairs and key in moves):
            super().keyPressEvent(event)
            return
        number = 0
        if self._current is not None:
            number = min(max(self._current + moves[key], 0), len(self._pairs) - 1)
        self.scroll_to(self.rect_of(number))
        self._move_to(number, aloud=True)

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def restyled(self) -> None:
        self._lay_out()


def angle_words(angle: float) -> str:
    """Degrees, short enough to stand under a dial."""
    value = degrees(angle)
    return f"{value:z.0f}°" if abs(value) >= 10 else f"{value:z.2g}°"


def _direction(hand: tuple[float, float]) -> float:
    """Radians, counter-clockwise from the right."""
    return atan2(hand[1], hand[0]) % (2 * pi)
