"""A board of words on colours: a row each layer, from the bottom up; its names stay in view."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QWidget

from explorer.figures.drawing.board import NO_CELLS, CellsFigure
from explorer.figures.drawing.colormaps import difference
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import ScrollCanvas
from explorer.ui.canvases.opaque import fill, painter_of
from explorer.ui.canvases.tokens.token_box import level_ink
from explorer.ui.look.text_size import for_back_row, small_font
from explorer.ui.look.theme import Ink, Theme, unit

_HIGH, _TEXT = 19, 11.5  # pixels of a row and of its text, at a zoom of 1
_HEAD, _PADDING = 19, 10  # pixels of the line of column names, and beside row names
_STEP, _MOST = 1.25, 3.0  # of the board's own zoom
_LEGIBLE = 7  # pixels: smaller text is left out, and the colours remain
_CENTRE = Qt.AlignmentFlag.AlignCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
At = tuple[int, int]  # row, column


class CellBoard(ScrollCanvas):
    """Scrolls; + and - zoom, 0 or a double click shows all; a cell is read with mouse or arrows."""

    picked = Signal(int, int)  # row, column
    hovered = Signal(object)  # At or None

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        describe(self, QAccessible.Role.Table)
        self._theme = theme
        self._figure = NO_CELLS
        self._current: At | None = None
        self._selected: tuple[int | None, int | None] = (None, None)
        self._zoom = 1.0
        self._fitted = False  # all is in view, whatever the size
        self._size = (1.0, 1.0)  # of a cell, in pixels
        self._names = self._head = 0.0  # room of the names of rows and columns
        self._cut: dict[tuple[str, int, str], str] = {}
        self.setCornerWidget(QWidget())

    def show_figure(self, figure: CellsFigure) -> None:
        """Draw another one; the place that is scrolled to stays."""
        grown = len(self._figure.rows) == 0 and len(figure.rows) > 0
        self._figure = figure
        if self._current is not None and not self._holds(self._current):
            self._move_to(None)
        if self._fitted:
            self._zoom = self._fitting()
        self._lay_out()
        if grown:
            self._reveal(None, self._selected[1])

    def set_selected(self, row: int | None, column: int | None) -> None:
        """Mark a row and a column by their names; what changed is brought into view."""
        before, self._selected = self._selected, (row, column)
        if before != self._selected:
            moved = [
                now if now != was else None for was, now in zip(before, self._selected, strict=True)
            ]
            self._reveal(moved[0] if before[0] is not None else None, moved[1])
            self.viewport().update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._lay_out()

    # -- geometry

    @property
    def current(self) -> At | None:
        """The cell that is read."""
        return self._current

    @property
    def figure(self) -> CellsFigure:
        """What is drawn."""
        return self._figure

    @property
    def zoomed(self) -> float:
        """How large the cells are, 1 being their usual size."""
        return self._zoom

    @property
    def whole_height(self) -> int:
        """Pixels that all rows and the names of the columns take."""
        bar = self.horizontalScrollBar().sizeHint().height()
        return round(len(self._figure.rows) * self._size[1] + self._head) + bar

    def cell_rect(self, at: At) -> QRectF:
        """One cell, in the viewport."""
        wide, high = self._size
        across, down = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        top = (len(self._figure.rows) - 1 - at[0]) * high - down
        return QRectF(self._names + at[1] * wide - across, top, wide, high)

    def zoom(self, factor: float) -> None:
        """Larger or smaller cells: from all in view to three times the usual size."""
        self._fitted = False
        self._zoom_to(self._zoom * factor)

    def fit(self) -> None:
        """Show everything, or if that is so already, cells of the usual size."""
        self._fitted = not self._fitted
        self._zoom_to(self._fitting() if self._fitted else 1.0)

    def show_all(self) -> None:
        """Show everything, in cells as small as that takes, until it is zoomed."""
        self._fitted = True
        self._zoom_to(self._fitting())

    def _zoom_to(self, zoom: float) -> None:
        at = self._current or self._chosen_cell()
        self._zoom = min(max(zoom, min(1.0, self._fitting())), _MOST)
        self._lay_out()
        if at is not None and self._holds(at):
            self._reveal(*at)

    def _chosen_cell(self) -> At | None:
        row, column = self._selected
        return None if row is None or column is None else (row, column)

    def _fitting(self) -> float:
        rows, columns = len(self._figure.rows), len(self._figure.columns)
        view, u = self.viewport().size(), unit(self)
        wide = (view.width() - self._names) / max(columns * self._figure.wide * u, 1)
        return max(0.05, min(wide, (view.height() - self._head) / max(rows * _HIGH * u, 1), 1.0))

    def _lay_out(self) -> None:
        u = unit(self)
        metrics = QFontMetricsF(small_font(self, _TEXT))
        line = max(1.0, metrics.height() / (_HIGH * u))  # text never is smaller than can be read
        widest = max(map(metrics.horizontalAdvance, self._figure.rows), default=0.0)
        corner = metrics.horizontalAdvance(self._figure.corner)
        self._names = min(max(widest, corner) + _PADDING * u, 0.4 * self.viewport().width())
        self._head = max(_HEAD * u, metrics.height() + 2)
        usual = self._figure.wide * u * min(line, 1.6)
        wide = usual * self._zoom
        if self._fitted and self._figure.columns:  # low cells are as wide as there is room for
            room = (self.viewport().width() - self._names) / len(self._figure.columns)
            wide = max(wide, min(usual, room))
        self._size = wide, _HIGH * u * self._zoom * line
        self._cut = {}
        whole_width = len(self._figure.columns) * self._size[0]
        high = len(self._figure.rows) * self._size[1]
        view = self.viewport().size()
        for bar, whole, part, step in (
            (self.horizontalScrollBar(), whole_width + self._names, view.width(), self._size[0]),
            (self.verticalScrollBar(), high + self._head, view.height(), self._size[1]),
        ):
            bar.setRange(0, max(0, round(whole - part)))
            bar.setPageStep(part)
            bar.setSingleStep(max(1, round(step)))
        self.viewport().update()

    def _reveal(self, row: int | None, column: int | None) -> None:
        rect, view = self.cell_rect((row or 0, column or 0)), self.viewport().size()
        for wanted, bar, low, high, start, end in (
            (row, self.verticalScrollBar(), rect.top(), rect.bottom(), 0.0,
             view.height() - self._head),
            (column, self.horizontalScrollBar(), rect.left(), rect.right(), self._names,
             float(view.width())),
        ):  # fmt: skip
            if wanted is not None:
                by = min(0.0, low - start) + max(0.0, high - end)
                bar.setValue(bar.value() + round(by))

    def sizeHint(self) -> QSize:
        return QSize(round(480 * unit(self)), round(120 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(180 * unit(self)), round(84 * unit(self)))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, view = painter_of(self.viewport()), self.viewport().rect()
        fill(painter, view, self._theme)
        if not self._figure.rows:
            return
        small = small_font(self, _TEXT)
        text = QFont(small)
        pixels = max(round(small.pixelSize() * min(self._zoom, 1.6)), 1)
        text.setPixelSize(pixels)
        rows = len(self._figure.rows) * self._size[1]  # the names stand right under few of them
        high = min(view.height() - self._head, rows)
        grid = QRectF(self._names, 0, view.width() - self._names, high)
        painter.save()
        painter.setClipRect(grid)
        painter.setFont(text)
        legible = pixels >= (small.pixelSize() if for_back_row() else _LEGIBLE)
        for at in self._in_view(grid):
            self._paint_cell(painter, at, QFontMetricsF(text) if legible else None)
        for at, colour in self._frames():
            self._paint_frame(painter, at, colour)
        painter.restore()
        painter.setFont(small)
        self._paint_names(painter, QFontMetricsF(small), grid)

    def _in_view(self, grid: QRectF) -> Iterator[At]:
        rows, columns = self._shown(grid)
        for row in rows:
            for column in columns:
                yield row, column

    def _shown(self, grid: QRectF) -> tuple[range, range]:
        """Rows and columns of which anything is seen."""
        wide, high = self._size
        across, down = self.horizontalScrollBar().value(), self.verticalScrollBar().value()
        count = len(self._figure.rows)
        first, last = int(down / high), int((down + grid.height()) / high) + 1
        left, right = int(across / wide), int((across + grid.width()) / wide) + 1
        return (
            range(max(0, count - last), count - first),
            range(left, min(right, len(self._figure.columns))),
        )

    def _paint_cell(self, painter: QPainter, at: At, metrics: QFontMetricsF | None) -> None:
        rect, cell = self.cell_rect(at), self._figure.cell(*at)
        gap = 1.0 if rect.height() >= 6 else 0.0
        box = rect.adjusted(0, 0, -gap, -gap)
        if cell is None:
            painter.fillRect(box, QColor(self._theme.absent))
            if gap:
                painter.setPen(QPen(QColor(self._theme.border), 1, Qt.PenStyle.DotLine))
                painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
            return
        least = 7.0 if self._theme.name == "high_contrast" else 4.5
        ink = _ink(cell.level, least, "viridis")
        if self._figure.signed:
            ink = _ink((cell.level + 1) / 2, least, difference(self._theme.dark))
        painter.fillRect(box, QColor(ink.fill))
        if metrics is None:
            return
        painter.setPen(QColor(ink.text))
        painter.drawText(box, _CENTRE, self._elided(cell.text, box.width() - 6, metrics))
        if cell.marked:
            self._underline(painter, box, ink)

    def _underline(self, painter: QPainter, box: QRectF, ink: Ink) -> None:
        thick = max(1.5, 1.5 * unit(self))
        line = QRectF(box.left() + 3, box.bottom() - thick - 1, box.width() - 6, thick)
        painter.fillRect(line, QColor(ink.text))

    def _elided(self, text: str, width: float, metrics: QFontMetricsF) -> str:
        key = (text, round(width), "")
        if key not in self._cut:
            mode = Qt.TextElideMode.ElideRight
            self._cut[key] = metrics.elidedText(text, mode, width) if width > 0 else ""
        return self._cut[key]

    def _frames(self) -> Iterator[tuple[At, str]]:
        """Cells with a frame: the one that is selected, and the one that is read."""
        chosen = self._chosen_cell()
        if chosen is not None and self._holds(chosen):
            yield chosen, self._theme.accent
        if self._current is not None:
            yield self._current, self._theme.cursor_halo

    def _paint_frame(self, painter: QPainter, at: At, colour: str) -> None:
        rect = self.cell_rect(at).adjusted(0.5, 0.5, -1.5, -1.5)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.cursor), 4))
        painter.drawRect(rect)
        painter.setPen(QPen(QColor(colour), 2))
        painter.drawRect(rect)

    def _paint_names(self, painter: QPainter, metrics: QFontMetricsF, grid: QRectF) -> None:
        rows, columns = self._shown(grid)
        wide, high = self._size
        every = max(1, -int(-metrics.height() * 0.9 // high))
        for row in rows:
            if row % every == 0 or row == self._selected[0]:
                middle = self.cell_rect((row, 0)).center().y()
                if middle > grid.bottom():
                    continue
                line = QRectF(0, middle - metrics.height() / 2, self._names - 5, metrics.height())
                chosen = row == self._selected[0]
                self._name(painter, metrics, line, self._figure.rows[row], chosen, _RIGHT)
        least = 3 * metrics.averageCharWidth()
        every = max(1, -int(-least // wide))
        for column in columns:
            if column % every == 0 or column == self._selected[1]:
                cell = self.cell_rect((0, column))
                text, room = self._figure.columns[column], wide * every - 2
                if column == len(self._figure.columns) - 1:  # what is beside it is free
                    needed = metrics.horizontalAdvance(text) + 4
                    room = max(room, min(needed, grid.right() - cell.left()))
                line = QRectF(cell.left(), grid.bottom(), room, self._head)
                if line.left() >= grid.left() - wide / 2:
                    chosen = column == self._selected[1]
                    self._name(painter, metrics, line, text, chosen)
        painter.setPen(QColor(self._theme.muted))
        corner = QRectF(0, grid.bottom(), self._names - 5, self._head)
        painter.fillRect(corner, QColor(self._theme.card))
        painter.drawText(corner, _RIGHT, self._figure.corner)

    def _name(
        self, painter: QPainter, metrics: QFontMetricsF, rect: QRectF, text: str, chosen: bool,
        align: Qt.AlignmentFlag = _CENTRE,
    ) -> None:  # fmt: skip
        theme = self._theme
        key = (text, round(rect.width()), "name")
        if key not in self._cut:
            self._cut[key] = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width() - 2)
        if chosen:
            painter.fillRect(rect.adjusted(0, 1, 0, -1), QColor(theme.selection))
        painter.setPen(QColor(theme.on_selection if chosen else theme.text))
        painter.drawText(rect, align, self._cut[key])

    # -- reading

    def tip_at(self, point: QPoint) -> str:
        """The words of the cell under a point of the viewport."""
        at = self._at(QPointF(point))
        return "" if at is None else self._figure.words(*at)

    def summary(self) -> str:
        """What a screen reader says before the cursor has moved: the selected cell."""
        start = self._start()
        return "" if start is None else self._figure.words(*start)

    def _start(self) -> At | None:
        last = len(self._figure.rows) - 1, len(self._figure.columns) - 1
        if min(last) < 0:
            return None
        row, column = self._selected
        chosen = (last[0] if row is None else row, last[1] if column is None else column)
        return self._current or (min(chosen[0], last[0]), min(chosen[1], last[1]))

    def _holds(self, at: At) -> bool:
        return at[0] < len(self._figure.rows) and at[1] < len(self._figure.columns)

    def _at(self, point: QPointF) -> At | None:
        view = self.viewport()
        if point.x() < self._names or point.y() >= view.height() - self._head:
            return None
        wide, high = self._size
        x = point.x() - self._names + self.horizontalScrollBar().value()
        y = point.y() + self.verticalScrollBar().value()
        at = len(self._figure.rows) - 1 - int(y / high), int(x / wide)
        return at if at[0] >= 0 and self._holds(at) else None

    def _move_to(self, at: At | None, aloud: bool = False) -> None:
        if at == self._current:
            return
        self._current = at
        say(self, "" if at is None else self._figure.words(*at), aloud)
        self.hovered.emit(at)
        self.viewport().update()

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._move_to(self._at(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and at is not None:
            self._move_to(at)
            self.picked.emit(*at)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the press has said it all

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.fit()

    def pointer_left(self) -> None:
        self._move_to(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (1, 0), Qt.Key.Key_Down: (-1, 0),
            Qt.Key.Key_PageUp: (10, 0), Qt.Key.Key_PageDown: (-10, 0),
            Qt.Key.Key_Home: (0, -(1 << 30)), Qt.Key.Key_End: (0, 1 << 30),
        }  # fmt: skip
        key, start = Qt.Key(event.key()), self._start()
        if start is not None and key in moves:
            up, right = moves[key]
            row = min(max(start[0] + up, 0), len(self._figure.rows) - 1)
            column = min(max(start[1] + right, 0), len(self._figure.columns) - 1)
            self._reveal(row, column)
            self._move_to((row, column), aloud=True)
        elif start is not None and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.picked.emit(*start)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom(_STEP)
        elif key == Qt.Key.Key_Minus:
            self.zoom(1 / _STEP)
        elif key == Qt.Key.Key_0:
            self.fit()
        else:
            super().keyPressEvent(event)

    # -- changes from outside

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fitted:
            self._zoom = self._fitting()
        self._lay_out()

    def restyled(self) -> None:
        self._lay_out()


def _ink(level: float, least: float, colours: str) -> Ink:
    return _at_step(round(255 * min(max(level, 0.0), 1.0)), least, colours)


@lru_cache(maxsize=2048)
def _at_step(step: int, least: float, colours: str) -> Ink:
    return level_ink(step / 255, Ink("", "", ""), least, colours)
