"""The tree of branches: one line each, its own tokens from the fork on, surprisal under each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.prediction.branches import BranchRow
from explorer.figures.text import tokens
from explorer.figures.text.characters import elide
from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.look.theme import Theme, unit
from explorer.wording import information

_ROW, _CELL, _NAME = 28, 74, 76  # pixels at a zoom of 1
_PAD = 4
FULL_NATS = 5.5  # surprisal (p = 0.4 %) from which the strip under a token is full


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node: a step of a row."""

    row: int
    step: int


class BranchTree(Canvas):
    """Wide and high as it needs; lives in a scroll area.  A click picks a node."""

    picked = Signal(int, int)  # branch number, step
    moved = Signal(QRectF)  # where the cursor went, to be scrolled to

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[BranchRow, ...] = ()
        self._names: tuple[str, ...] = ()
        self._lit: frozenset[tuple[int, int]] = frozenset()
        self._shown: TreeNode | None = None
        self._cursor: TreeNode | None = None
        describe(self)
        self.setProperty(KEEPS_ARROWS, True)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def set_tree(
        self,
        rows: Sequence[BranchRow],
        names: Sequence[str],
        path: Sequence[tuple[int, int]],
        shown: tuple[int, int] | None,
    ) -> None:
        """`path`: the (row, step) nodes on screen; `shown`: the one that is looked at."""
        self._rows, self._names = tuple(rows), tuple(names)
        self._lit = frozenset(path)
        self._shown = None if shown is None else TreeNode(*shown)
        if self._cursor is not None and self._at(self._cursor) is None:
            self._cursor = None
        size = self.sizeHint()
        if size != self.size():
            self.setFixedSize(size)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    @property
    def rows(self) -> tuple[BranchRow, ...]:
        """The branches, each in a line of its own."""
        return self._rows

    @property
    def lit(self) -> frozenset[tuple[int, int]]:
        """Rows and steps of the way to what is on screen."""
        return self._lit

    @property
    def shown(self) -> TreeNode | None:
        """The step that is on screen."""
        return self._shown

    @property
    def current(self) -> TreeNode | None:
        """The step under the mouse or reached by the keys."""
        return self._cursor

    def sizeHint(self) -> QSize:
        u = unit(self)
        steps = max((row.fork + len(row.tokens) for row in self._rows), default=1)
        return QSize(
            round((_NAME + steps * _CELL + 2 * _PAD) * u),
            round((max(len(self._rows), 1) * _ROW + 2 * _PAD) * u),
        )

    # -- geometry

    def rect_of(self, place: TreeNode) -> QRectF:
        """Where a node is drawn."""
        u = unit(self)
        x = (_PAD + _NAME + place.step * _CELL) * u
        return QRectF(x, (_PAD + place.row * _ROW + 3) * u, (_CELL - 8) * u, (_ROW - 6) * u)

    def _at(self, place: TreeNode) -> BranchRow | None:
        if not 0 <= place.row < len(self._rows):
            return None
        row = self._rows[place.row]
        return row if row.fork <= place.step < row.fork + len(row.tokens) else None

    def _place(self, point: QPointF) -> TreeNode | None:
        u = unit(self)
        row = int((point.y() / u - _PAD) // _ROW)
        step = int((point.x() / u - _PAD - _NAME) // _CELL)
        place = TreeNode(row, step)
        return place if self._at(place) is not None else None

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        seen = QRectF(event.rect())
        for i, row in enumerate(self._rows):
            self._paint_link(painter, i, row)
        for i, row in enumerate(self._rows):
            self._paint_name(painter, i)
            for offset, token in enumerate(row.tokens):
                place = TreeNode(i, row.fork + offset)
                rect = self.rect_of(place)
                if rect.intersects(seen):
                    text = elide(tokens.written(token), 12)
                    self._paint_node(painter, place, rect, text, row.nats[offset], token.origin)

    def _paint_link(self, painter: QPainter, i: int, row: BranchRow) -> None:
        if not row.tokens:
            return
        end = self.rect_of(TreeNode(i, row.fork))
        top = 0 if row.parent is None else row.parent
        if row.parent is None and i == 0:
            return
        start = self.rect_of(TreeNode(top, row.fork - 1)) if row.fork else None
        x = end.left() - 4 * unit(self)
        y = start.center().y() if start is not None else self.rect_of(TreeNode(0, 0)).center().y()
        lit = (i, row.fork) in self._lit
        colour = self._theme.accent if lit else self._theme.strong_border
        painter.setPen(QPen(QColor(colour), (2.0 if lit else 1.2) * unit(self)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        path = QPainterPath(QPointF(x, y))
        path.lineTo(x, end.center().y())
        path.lineTo(end.left(), end.center().y())
        painter.drawPath(path)

    def _paint_name(self, painter: QPainter, i: int) -> None:
        u = unit(self)
        row = self._rows[i]
        step = row.fork if row.tokens else 0
        # The name stands right before the branch's own tokens, unless it begins at the left.
        x = _PAD * u if step == 0 else self.rect_of(TreeNode(i, step)).left() - (_NAME + 2) * u
        rect = QRectF(x, (_PAD + i * _ROW) * u, (_NAME - 8) * u, _ROW * u)
        painter.setPen(QColor(self._theme.text))
        font = painter.font()
        font.setBold(any(node[0] == i for node in self._lit))
        painter.setFont(font)
        name = painter.fontMetrics().elidedText(
            self._names[i], Qt.TextElideMode.ElideRight, int(rect.width())
        )
        side = Qt.AlignmentFlag.AlignLeft if step == 0 else Qt.AlignmentFlag.AlignRight
        painter.drawText(rect, side | Qt.AlignmentFlag.AlignVCenter, name)
        font.setBold(False)
        painter.setFont(font)

    def _paint_node(
        self, painter: QPainter, place: TreeNode, rect: QRectF, text: str, nats: float, origin: str
    ) -> None:
        u = unit(self)
        theme, ink = self._theme, self._theme.origin(origin)
        lit = (place.row, place.step) in self._lit
        painter.setBrush(QColor(ink.fill if lit else theme.card))
        painter.setPen(QPen(QColor(ink.edge if lit else theme.border), (1.5 if lit else 1) * u))
        painter.drawRoundedRect(rect, 4 * u, 4 * u)
        share = min(nats, FULL_NATS) / FULL_NATS
        strip = QRectF(rect.left() + 3 * u, rect.bottom() - 4 * u, (rect.width() - 6 * u), 3 * u)
        strip.setWidth(strip.width() * share)
        painter.fillRect(strip, QColor(theme.formula))
        if place in (self._shown, self._cursor):
            colour = theme.accent if place == self._shown else theme.text
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(colour), 2.5 * u))
            painter.drawRoundedRect(rect.adjusted(-2, -2, 2, 2), 5 * u, 5 * u)
        painter.setPen(QColor(ink.text if lit else theme.muted))
        label = painter.fontMetrics().elidedText(
            text, Qt.TextElideMode.ElideMiddle, int(rect.width() - 4 * u)
        )
        painter.drawText(rect.adjusted(0, 0, 0, -3 * u), Qt.AlignmentFlag.AlignCenter, label)

    # -- mouse and keys

    def tip(self, place: TreeNode) -> str:
        """One node in words; empty if there is none."""
        row = self._at(place)
        if row is None:
            return ""
        offset = place.step - row.fork
        nats = row.nats[offset]
        cost = self.tr("infinite") if math.isinf(nats) else information(nats)
        return self.tr("Branch {0}, token {1}: {2}, surprisal {3}").format(
            self._names[place.row], place.step + 1, tokens.written(row.tokens[offset]), cost
        )

    def summary(self) -> str:
        """What a screen reader says before anything is looked at."""
        here = "" if self._shown is None else self.tip(self._shown)
        return here or self.tr("{0} branches").format(len(self._rows))

    def _move(self, place: TreeNode | None, aloud: bool = False) -> None:
        if place != self._cursor:
            self._cursor = place
            say(self, "" if place is None else self.tip(place), aloud)
            if place is not None and aloud:
                self.moved.emit(self.rect_of(place))
            self.update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._move(self._place(event.position()))

    def pointer_left(self) -> None:
        self._move(None)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        place = self._place(event.position())
        if event.button() == Qt.MouseButton.LeftButton and place is not None:
            self._pick(place)

    def _pick(self, place: TreeNode) -> None:
        self.picked.emit(self._rows[place.row].number, place.step)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        at = self._cursor or self._shown
        if at is None and self._rows:
            at = TreeNode(0, self._rows[0].fork)
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        lines = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
        if at is not None and key in steps:
            self._move(self._beside(at, steps[key]), aloud=True)
        elif at is not None and key in lines:
            self._move(self._below(at, lines[key]), aloud=True)
        elif at is not None and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._pick(at)
        else:
            super().keyPressEvent(event)

    def _beside(self, at: TreeNode, by: int) -> TreeNode:
        """The node before or after, on the line it forks from where its own line ends."""
        there = TreeNode(at.row, at.step + by)
        row = self._rows[at.row]
        if by < 0 and there.step < row.fork and row.parent is not None:
            parent = row.parent
            while there.step < self._rows[parent].fork and self._rows[parent].parent is not None:
                parent = self._rows[parent].parent or 0
            there = TreeNode(parent, there.step)
        return there if self._at(there) is not None else at

    def _below(self, at: TreeNode, by: int) -> TreeNode:
        row = at.row + by
        if not 0 <= row < len(self._rows) or not self._rows[row].tokens:
            return at
        first = self._rows[row].fork
        return TreeNode(row, min(max(at.step, first), first + len(self._rows[row].tokens) - 1))

    def tip_at(self, point: QPoint) -> str:
        place = self._place(QPointF(point))
        return "" if place is None else self.tip(place)
