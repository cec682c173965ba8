"""Blocks of token rows with all columns aligned, and what each came to underneath.

The selected block shows its charts as bars; the others only the first bar of each, as one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.batch.token_grid import Cell, GridBlock, GridLine
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import ScrollCanvas
from explorer.ui.canvases.opaque import painter_of
from explorer.ui.canvases.tokens.token_grid_paint import SMALL, Brush
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

# Pixels at a zoom of 1
_TITLE, _BOXES, _PLAIN, _BAR, _NOTE, _GAP = 18, 22, 14, 16, 16, 8
_LEAST_COLUMN, _LEAST_CHART, _PADDING = 26, 132, 14
_MARGIN = 4
At = tuple[int, int, int]  # block, line, slot


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block is: its top, and the tops of what is in it."""

    top: float
    lines: tuple[float, ...]
    charts: float
    notes: float
    bottom: float


class TokenGrid(ScrollCanvas):
    """Shows blocks; the mouse or a key cursor reads a cell; a click picks its block."""

    picked = Signal(int)  # block

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.Table)
        self._theme = theme
        self._blocks: tuple[GridBlock, ...] = ()
        self._places: tuple[_Place, ...] = ()
        self._lefts: list[float] = []  # of the columns, and the right end of the last
        self._names = 0.0  # width of the column of line names
        self._current: At | None = None
        self._selected: int | None = None
        self.setCornerWidget(QWidget())

    def set_blocks(self, blocks: Sequence[GridBlock]) -> None:
        """Draw these; the place that is scrolled to stays."""
        self._blocks = tuple(blocks)
        if self._current is not None and self._cell(self._current) is None:
            self._current = None
        self._lay_out()

    def set_selected(self, block: int | None) -> None:
        """Mark one block and show its charts whole."""
        if block != self._selected:
            self._selected = block
            self._lay_out()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.viewport().update()

    # -- geometry

    @property
    def current(self) -> At | None:
        """The cell that the keys have reached; None before they are used."""
        return self._current

    def cell_rect(self, at: At) -> QRectF:
        """One cell, in the viewport."""
        block, line, slot = at
        top = self._places[block].lines[line]
        height = _line_height(self._blocks[block].lines[line]) * unit(self)
        left, right = self._lefts[slot], self._lefts[slot + 1]
        return QRectF(left, top, right - left, height).translated(-self._offset())

    def chart_rects(self, block: int) -> Iterator[tuple[int, QRectF]]:
        """Each chart of a block, in the viewport; they share its width and don't scroll across."""
        charts, u = self._blocks[block].charts, unit(self)
        place = self._places[block]
        left = self._names
        width = max((self.viewport().width() - left) / max(len(charts), 1), _LEAST_CHART * u)
        height = place.notes - place.charts
        for index in range(len(charts)):
            top = place.charts - self._offset().y()
            yield index, QRectF(left + index * width, top, width - 12 * u, height)

    def tip_at(self, point: QPoint) -> str:
        """What is said of the cell, chart or line under a point of the viewport; "" of none."""
        at = self._at(point)
        cell = None if at is None else self._cell(at)
        if cell is not None:
            return cell.tip
        for block, place in enumerate(self._places):
            for chart, rect in self.chart_rects(block):
                if rect.contains(point):
                    return self._blocks[block].charts[chart].tip
            y = point.y() + self._offset().y()
            for line, top in zip(self._blocks[block].lines, place.lines, strict=True):
                if point.x() < self._names and top <= y < top + _line_height(line) * unit(self):
                    return line.tip
        return ""

    def sizeHint(self) -> QSize:
        return QSize(round(520 * unit(self)), round(300 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(200 * unit(self)), round(90 * unit(self)))

    def _lay_out(self) -> None:
        u = unit(self)
        small = QFontMetricsF(small_font(self, SMALL))
        names = [line.name for block in self._blocks for line in block.lines]
        names += [name for block in self._blocks for name, _ in block.notes]
        widest = max(map(small.horizontalAdvance, names), default=0.0)
        self._names = widest + _PADDING * u
        self._lefts = [self._names]
        for column in self._columns():
            width = max(column, _LEAST_COLUMN * u)
            self._lefts.append(self._lefts[-1] + width)
        places, top = [], _MARGIN * u
        for index, block in enumerate(self._blocks):
            places.append(_placed(block, top, u, whole=index == self._selected))
            top = places[-1].bottom + _GAP * u
        self._places = tuple(places)
        self._set_bars(top)
        self.viewport().update()

    def _columns(self) -> list[float]:
        """The width that each column's widest cell asks for."""
        font, small = QFontMetricsF(self.font()), QFontMetricsF(small_font(self, SMALL))
        widths: list[float] = []
        for line in (line for block in self._blocks for line in block.lines):
            widths += [0.0] * (len(line.cells) - len(widths))
            for slot, cell in enumerate(line.cells):
                if cell is not None:
                    metrics = small if cell.token is None else font
                    asked = metrics.horizontalAdvance(cell.text) + _PADDING * unit(self)
                    widths[slot] = max(widths[slot], asked)
        return widths

    def _set_bars(self, height: float) -> None:
        view, u = self.viewport().size(), unit(self)
        wide = self._lefts[-1] + _MARGIN * u
        for bar, whole, part in (
            (self.verticalScrollBar(), height, view.height()),
            (self.horizontalScrollBar(), wide, view.width()),
        ):
            bar.setRange(0, max(0, round(whole - part)))
            bar.setPageStep(part)
            bar.setSingleStep(round(30 * u))

    def _offset(self) -> QPoint:
        return QPoint(self.horizontalScrollBar().value(), self.verticalScrollBar().value())

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self.viewport())
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        brush = Brush(painter, self._theme, self)
        top, bottom = self._offset().y(), self._offset().y() + self.viewport().height()
        for index, place in enumerate(self._places):
            if place.bottom >= top and place.top <= bottom:
                self._paint_block(brush, index, place)
        if self._current is not None and self.hasFocus():
            brush.cursor(self.cell_rect(self._current))

    def _paint_block(self, brush: Brush, index: int, place: _Place) -> None:
        block, u, width = self._blocks[index], unit(self), self.viewport().width()
        scrolled = -self._offset().y()
        title = QRectF(_MARGIN * u, place.top + scrolled, width, _TITLE * u)
        brush.title(title, block, index == self._selected)
        for number, line in enumerate(block.lines):
            self._paint_line(brush, (index, number), line)
        paint = brush.chart if index == self._selected else brush.chart_line
        for chart, rect in self.chart_rects(index):
            paint(rect, block.charts[chart], _BAR * u)
        for number, (name, text) in enumerate(block.notes):
            top = place.notes + scrolled + number * _NOTE * u
            brush.name(QRectF(_MARGIN * u, top, self._names, _NOTE * u), name)
            brush.note(QRectF(self._names, top, width - self._names, _NOTE * u), text)

    def _paint_line(self, brush: Brush, at: tuple[int, int], line: GridLine) -> None:
        u, view = unit(self), self.viewport()
        top = self._places[at[0]].lines[at[1]] - self._offset().y()
        height = _line_height(line) * u
        brush.name(QRectF(_MARGIN * u, top, self._names - _MARGIN * u, height), line.name)
        brush.painter.save()
        brush.painter.setClipRect(QRectF(self._names - 2, 0, view.width(), view.height()))
        for slot, cell in enumerate(line.cells):
            if cell is not None:
                rect = self.cell_rect((*at, slot))
                if rect.right() >= self._names and rect.left() <= view.width():
                    brush.cell(rect, cell)
        brush.painter.restore()

    # -- reading

    def _cell(self, at: At) -> Cell | None:
        block, line, slot = at
        try:
            return self._blocks[block].lines[line].cells[slot]
        except IndexError:
            return None

    def _at(self, point: QPoint) -> At | None:
        if point.x() < self._names:
            return None
        for block, shown in enumerate(self._blocks):
            for line, cells in enumerate(shown.lines):
                for slot in range(len(cells.cells)):
                    if self.cell_rect((block, line, slot)).contains(point):
                        return block, line, slot
        return None

    def _block_at(self, point: QPoint) -> int | None:
        y = point.y() + self._offset().y()
        return next((i for i, p in enumerate(self._places) if p.top <= y <= p.bottom), None)

    def summary(self) -> str:
        """What a screen reader says before the cursor has moved: the first cell."""
        return self.words((0, 0, 0)) if self._blocks else ""

    def words(self, at: At) -> str:
        """One cell in words, with its line and block."""
        block = self._blocks[at[0]]
        cell = self._cell(at)
        text = "" if cell is None else f"{cell.text}. {cell.tip}"
        return f"{block.title}. {block.lines[at[1]].name}: {text}"

    # -- mouse and keys

    def mousePressEvent(self, event: QMouseEvent) -> None:
        point = event.position().toPoint()
        block, at = self._block_at(point), self._at(point)
        if at is not None:
            self._move_to(at)
        if event.button() == Qt.MouseButton.LeftButton and block is not None:
            self.picked.emit(block)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press has said it all

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: (0, -1),
            Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0),
            Qt.Key.Key_Down: (1, 0),
        }
        move = moves.get(Qt.Key(event.key()))
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current is not None:
            self.picked.emit(self._current[0])
        elif move is None or not self._blocks:
            super().keyPressEvent(event)
        else:
            self._move_to((0, 0, 0) if self._current is None else self._moved(*move), aloud=True)

    def _moved(self, down: int, right: int) -> At:
        assert self._current is not None
        block, line, slot = self._current
        lines = [(b, i) for b, shown in enumerate(self._blocks) for i in range(len(shown.lines))]
        row = min(max(lines.index((block, line)) + down, 0), len(lines) - 1)
        block, line = lines[row]
        last = len(self._blocks[block].lines[line].cells) - 1
        return block, line, min(max(slot + right, 0), last)

    def _move_to(self, at: At, aloud: bool = False) -> None:
        self._current = at
        say(self, self.words(at), aloud)
        rect, u = self.cell_rect(at), unit(self)
        for bar, low, high, start, end in (
            (self.verticalScrollBar(), rect.top(), rect.bottom(), 0, self.viewport().height()),
            (self.horizontalScrollBar(), rect.left(), rect.right(), self._names,
             self.viewport().width()),
        ):  # fmt: skip
            if low < start:
                bar.setValue(round(bar.value() + low - start - 4 * u))
            elif high > end:
                bar.setValue(round(bar.value() + high - end + 4 * u))
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_bars(self._places[-1].bottom if self._places else 0)

    def restyled(self) -> None:
        self._lay_out()


def _line_height(line: GridLine) -> int:
    boxes = any(cell is not None and cell.token is not None for cell in line.cells)
    return _BOXES if boxes else _PLAIN


def _placed(block: GridBlock, top: float, u: float, whole: bool) -> _Place:
    y, lines = top + _TITLE * u, []
    for line in block.lines:
        lines.append(y)
        y += _line_height(line) * u
    charts = y
    if block.charts:
        rows = 1 + max(len(chart.shares) for chart in block.charts) if whole else 1
        y += (2 + _BAR * rows) * u
    notes = y
    return _Place(top, tuple(lines), charts, notes, y + len(block.notes) * _NOTE * u)
