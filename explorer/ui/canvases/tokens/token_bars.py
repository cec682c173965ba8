"""Horizontal bars, one row a token: a click picks the row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetrics,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import Canvas, Terms
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Ink, Theme, unit
from explorer.wording import round_percent

CEILINGS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_ROW = 21  # pixels at a zoom of 1
_AXIS = 17
_TERMS = ("next-token", "sampling")  # of the two columns of figures
_BAR_LEAST = 20  # pixels at a zoom of 1; bars that would be shorter are left out
_LABEL_LEAST, _LABEL_SHARE = 76, 0.32  # pixels at a zoom of 1; at most this share of the width


@dataclass(frozen=True, slots=True)
class BarRow:
    """What one row shows; `second` is drawn under `first`, None = one bar only."""

    key: int
    label: str
    first: float
    first_text: str
    second: float | None = None
    second_text: str = ""
    change_text: str = ""  # from the first to the second
    muted: bool = False
    mark: Ink | None = None  # the row that was picked, and in what colours
    rest: bool = False  # not one thing but all others together; can't be clicked
    tip: str = ""


class TokenBars(Canvas):
    """Draws as many rows as fit; `rows_that_fit` says how many to bring."""

    clicked = Signal(int)  # key
    hovered = Signal(object)  # key or None
    capacityChanged = Signal(int)

    def __init__(self, theme: Theme, heads: Sequence[str], parent: QWidget | None = None) -> None:
        """`heads` names the columns of figures: first, second, and maybe their change."""
        super().__init__(parent)
        self._heads = heads
        self._theme = theme
        self._rows: Sequence[BarRow] = ()
        self._ceiling = 1.0
        self._over: int | None = None  # row index under mouse or key cursor
        self._capacity = 0
        self._unit = 1.0
        describe(self)
        cover(self)
        self.setProperty(KEEPS_ARROWS, True)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def summary(self) -> str:
        """What a screen reader says before anything is looked at."""
        shown = min(len(self._rows), self._capacity)
        return "" if not shown else self.tr("{0} bars; first: {1}").format(shown, self._words(0))

    def _words(self, index: int) -> str:
        row = self._rows[index]
        figures = ", ".join(filter(None, _texts(row)))
        return f"{row.label}: {row.tip or figures}"

    @property
    def rows(self) -> Sequence[BarRow]:
        """What it was given to draw, from the top."""
        return self._rows

    def set_rows(self, rows: Sequence[BarRow]) -> None:
        """Draw other rows; the axis ends at the smallest round share that holds every named one.

        The rest may reach further: its bar is then cut, visibly.
        """
        self._rows = rows
        named = [row for row in rows if not row.rest] or rows
        longest = max((max(r.first, r.second or 0.0) for r in named), default=1.0)
        self._ceiling = next((c for c in CEILINGS if longest <= c), 1.0)
        if self._over is not None and self._over >= len(rows):
            self._over = None
        self.update()

    def set_heads(self, heads: Sequence[str]) -> None:
        """Name the columns of figures otherwise."""
        if heads != self._heads:
            self._heads = heads
            self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def rows_that_fit(self) -> int:
        """Rows that the height has room for, one at least."""
        u = unit(self)
        return max(1, int((self.height() - _AXIS * u) / (_ROW * u)))

    def light(self, key: int | None) -> None:
        """Light up the row of this key, as if the mouse were on it, without telling anyone."""
        found = next((i for i, row in enumerate(self._rows) if row.key == key), None)
        if key is not None and found != self._over:
            self._over = found
            self.update()

    def sizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(340 * u), round((_AXIS + 8 * _ROW) * u))

    def minimumSizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(260 * u), round((_AXIS + 3 * _ROW) * u))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        self._unit = unit(self)  # asked for once: it is not cheap
        painter = painter_of(self)
        fill(painter, event.rect(), self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._check_capacity()
        area, rights = self._columns(painter.fontMetrics())
        self._paint_axis(painter, area, rights)
        for i, row in enumerate(self._rows[: self._capacity]):
            self._paint_row(painter, self._row_rect(i), area, rights, row, i == self._over)

    def _check_capacity(self) -> None:
        fits = self.rows_that_fit()
        if fits != self._capacity:
            self._capacity = fits
            self.capacityChanged.emit(fits)

    def _columns(self, metrics: QFontMetrics) -> tuple[QRectF, list[float]]:
        """Where the bars are, and the right edges of the columns of figures that there are."""
        u = self._unit
        columns = list(zip(*map(_texts, self._rows), strict=True)) or [(), (), ()]
        widths = [
            max(map(metrics.horizontalAdvance, (*column, head))) + 10 * u
            for place, (column, head) in enumerate(zip(columns, self._heads, strict=False))
            if not place or any(column)
        ]
        left = self._label_width(metrics)
        rights = [self.width() - 4 * u]
        for width in reversed(widths[1:]):
            rights.insert(0, rights[0] - width)
        width = rights[0] - widths[0] - left
        width = width if width >= _BAR_LEAST * u else 0.0  # figures before bars
        return QRectF(left, _AXIS * u, width, self.height() - _AXIS * u), rights

    def _label_width(self, metrics: QFontMetrics) -> float:
        u = self._unit
        widest = max((metrics.horizontalAdvance(row.label) for row in self._rows), default=0)
        return min(max(widest * 1.1 + 22 * u, _LABEL_LEAST * u), _LABEL_SHARE * self.width())

    def _row_rect(self, index: int) -> QRectF:
        u = self._unit
        return QRectF(0, (_AXIS + index * _ROW) * u, self.width(), _ROW * u)

    def _paint_axis(self, painter: QPainter, area: QRectF, rights: list[float]) -> None:
        theme = self._theme
        bottom = self._row_rect(min(len(self._rows), self._capacity)).top()
        painter.setFont(small_font(self))
        head_width = QFontMetricsF(self.font()).horizontalAdvance(self._heads[0])
        free_to = rights[0] - head_width - 8 * self._unit  # the heads of the columns stand behind
        written_to = float("-inf")
        for part in (0.0, 0.5, 1.0) if area.width() else ():
            x = round(area.left() + part * area.width())
            painter.setPen(QPen(QColor(theme.grid), 1))
            painter.drawLine(x, round(area.top()), x, round(bottom))
            painter.setPen(QColor(theme.muted))
            if part == 0.5 and area.width() < 120 * self._unit:
                continue  # no room for three figures
            if part == 0.0 and area.width() < 45 * self._unit:
                continue  # nor for two
            text = round_percent(part * self._ceiling) if part else "0"
            wide = painter.fontMetrics().horizontalAdvance(text)
            left = min(x - wide / 2, free_to - wide)
            if left > written_to + 6 * self._unit:
                box = QRectF(left, 0, wide + 1, area.top())
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
                written_to = left + wide
        painter.setFont(self.font())
        for right, head, colour in zip(
            rights, self._heads, (theme.raw, theme.final, ""), strict=False
        ):
            self._paint_head(painter, right, head, colour)

    def _paint_head(self, painter: QPainter, right: float, head: str, colour: str) -> None:
        if not head:
            return
        u = self._unit
        width = painter.fontMetrics().horizontalAdvance(head)
        if colour:  # a change has no bar of its own
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colour))
            painter.drawRect(QRectF(right - width, (_AXIS - 3) * u, width, 2 * u))
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(QRectF(right - width, 0, width, (_AXIS - 3) * u), _RIGHT, head)

    def _paint_row(
        self,
        painter: QPainter,
        rect: QRectF,
        area: QRectF,
        rights: list[float],
        row: BarRow,
        lit: bool,
    ) -> None:
        theme, u = self._theme, self._unit
        if lit and not row.rest:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(theme.hover))
            painter.drawRoundedRect(rect.adjusted(0, 0.5, 0, -0.5), 4, 4)
        self._paint_label(painter, rect, area.left(), row)
        pad = 3.5 * u
        top, height = rect.top() + pad, rect.height() - 2 * pad
        raw = theme.rest if row.rest else theme.raw
        if row.second is None:
            self._paint_bar(painter, area, top, height, row.first, raw)
        else:
            half = height / 2 - 0.5
            self._paint_bar(painter, area, top, half, row.first, raw)
            self._paint_bar(painter, area, top + half + 1, half, row.second, theme.final)
        for place, (right, text) in enumerate(zip(rights, _texts(row), strict=False)):
            painter.setPen(QColor(theme.muted if row.muted and place else theme.text))
            painter.drawText(QRectF(0, rect.top(), right, rect.height()), _RIGHT, text)

    def _paint_bar(
        self, painter: QPainter, area: QRectF, top: float, height: float, value: float, colour: str
    ) -> None:
        if not area.width():
            return
        width = area.width() * min(value / self._ceiling, 1.0)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(colour))
        # A hair's breadth for everything above 0, so that nothing possible looks impossible.
        painter.drawRect(QRectF(area.left(), top, max(width, 1.0 if value > 0 else 0.0), height))
        if value > self._ceiling:
            painter.setPen(QPen(QColor(self._theme.card), 2))
            for back in (8, 13):
                x = area.right() - back
                painter.drawLine(QPointF(x - 2, top + height + 1), QPointF(x + 2, top - 1))

    def _paint_label(self, painter: QPainter, rect: QRectF, width: float, row: BarRow) -> None:
        theme, u = self._theme, self._unit
        box = QRectF(2, rect.top() + 2 * u, width - 8 * u, rect.height() - 4 * u)
        font = QFont(self.font())
        if row.mark is not None:
            painter.setPen(QPen(QColor(row.mark.edge), 1.5))
            painter.setBrush(QColor(row.mark.fill))
            painter.drawRoundedRect(box, 4, 4)
            painter.setPen(QColor(row.mark.text))
            font.setBold(True)
        else:
            painter.setPen(QColor(theme.muted if row.muted or row.rest else theme.text))
        painter.setFont(font)
        inner = box.adjusted(6 * u, 0, -4 * u, 0)
        text = painter.fontMetrics().elidedText(row.label, _ELIDE, int(inner.width()))
        painter.drawText(inner, _LEFT, text)
        painter.setFont(self.font())

    # -- mouse and keys

    def _index_at(self, point: QPoint) -> int | None:
        u = self._unit
        index = int((point.y() - _AXIS * u) // (_ROW * u))
        return index if 0 <= index < min(len(self._rows), self._capacity) else None

    def _set_over(self, index: int | None, aloud: bool = False) -> None:
        if index == self._over:
            return
        self._over = index
        row = None if index is None else self._rows[index]
        can_click = row is not None and not row.rest
        self.setCursor(
            Qt.CursorShape.PointingHandCursor if can_click else Qt.CursorShape.ArrowCursor
        )
        say(self, "" if index is None else self._words(index), aloud)
        self.hovered.emit(row.key if row is not None and can_click else None)
        self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_over(self._index_at(event.position().toPoint()))

    def pointer_left(self) -> None:
        self._set_over(None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        index = self._index_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index is not None:
            self._click(index)

    def _click(self, index: int) -> None:
        if not self._rows[index].rest:
            self.clicked.emit(self._rows[index].key)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        shown = min(len(self._rows), self._capacity)
        move = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if move is not None and shown:
            start = self._over if self._over is not None else (-1 if move > 0 else shown)
            self._set_over(min(max(start + move, 0), shown - 1), aloud=True)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._over is not None:
            self._click(self._over)
        else:
            super().keyPressEvent(event)

    def painted_terms(self) -> Terms:
        """Those of the first two columns of figures."""
        metrics, u = self.fontMetrics(), self._unit
        _, rights = self._columns(metrics)
        widths = [metrics.horizontalAdvance(head) for head in self._heads]
        areas = [
            QRectF(right - wide, 0, wide, _AXIS * u)
            for wide, right in zip(widths, rights, strict=False)
        ]
        return list(zip(_TERMS, areas, strict=False)) if self._rows else []

    def tip_at(self, point: QPoint) -> str:
        index = self._index_at(point)
        return "" if index is None else self._rows[index].tip

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._check_capacity()


def _texts(row: BarRow) -> tuple[str, str, str]:
    """What its columns of figures say."""
    return row.first_text, row.second_text, row.change_text


_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_ELIDE = Qt.TextElideMode.ElideRight
