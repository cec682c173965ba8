"""How the parts of a token grid look."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPen
from PySide6.QtWidgets import QWidget

from explorer.figures.batch.token_grid import Cell, GridBlock, GridChart, Mood
from explorer.ui.canvases.tokens.token_box import level_ink, paint_box
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Ink, Theme, unit

SMALL = 11.5  # pixels of everything but tokens, at a zoom of 1
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class Brush:
    """A painter that knows the theme; every rectangle is in the viewport."""

    def __init__(self, painter: QPainter, theme: Theme, widget: QWidget) -> None:
        self.painter = painter
        self._theme = theme
        self._u = unit(widget)
        self._font = QFont(widget.font())
        self._small = small_font(widget, SMALL)
        self._bold = QFont(widget.font())
        self._bold.setWeight(QFont.Weight.DemiBold)

    def colour(self, mood: Mood) -> QColor:
        """Of text in this mood; colour is never its only sign."""
        theme = self._theme
        names = {"plain": theme.text, "good": theme.good, "bad": theme.danger, "muted": theme.muted}
        return QColor(names[mood])

    def title(self, rect: QRectF, block: GridBlock, selected: bool) -> None:
        signs = {"good": "✓ ", "bad": "✕ "}
        self._write(rect, signs.get(block.mood, "") + block.title, self._bold, block.mood)
        if selected:
            bar = QRectF(0, rect.top() + 3 * self._u, 3 * self._u, rect.height() - 6 * self._u)
            self.painter.fillRect(bar, QColor(self._theme.accent))

    def name(self, rect: QRectF, text: str) -> None:
        self._write(rect, text, self._small, "muted")

    def note(self, rect: QRectF, text: str) -> None:
        self._write(rect, text, self._small, "plain")

    def cell(self, rect: QRectF, cell: Cell) -> None:
        u = self._u
        if cell.token is not None:
            box = rect.adjusted(1.5 * u, 1.5 * u, -1.5 * u, -1.5 * u)
            self.painter.setFont(self._font)
            paint_box(self.painter, box, 3.5 * u, cell.token, cell.text, self._theme, u)
        elif cell.level is not None:
            self._level(rect, cell)
        else:
            self.painter.setFont(self._small)
            self.painter.setPen(self.colour(cell.mood))
            self.painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, cell.text)
        if cell.framed:
            self.painter.setPen(QPen(self.colour(cell.mood), 2 * u))
            self.painter.setBrush(Qt.BrushStyle.NoBrush)
            frame = rect.adjusted(1.5 * u, 1.5 * u, -1.5 * u, -1.5 * u)
            self.painter.drawRoundedRect(frame, 3.5 * u, 3.5 * u)

    def _level(self, rect: QRectF, cell: Cell) -> None:
        assert cell.level is not None
        ink = level_ink(cell.level, Ink("", "", ""))
        self.painter.fillRect(rect.adjusted(1, 1, -1, -1), QColor(ink.fill))
        self.painter.setPen(QColor(ink.text))
        self.painter.setFont(self._small)
        self.painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, cell.text)

    def chart(self, rect: QRectF, chart: GridChart, row: float) -> None:
        """A heading, then a bar a token: label, bar, figure."""
        u = self._u
        self._write(QRectF(rect.left(), rect.top(), rect.width(), row), chart.title, self._small,
                    chart.mood)  # fmt: skip
        label, figure = 0.38 * rect.width(), 52 * u
        for index, share in enumerate(chart.shares, 1):
            top = rect.top() + index * row
            self._write(QRectF(rect.left(), top, label - 4 * u, row), share.label, self._font)
            room = rect.width() - label - figure
            bar = QRectF(rect.left() + label, top + 4 * u, max(room * share.share, 1), row - 7 * u)
            self.painter.fillRect(bar, QColor(self._theme.raw))
            self.painter.setPen(QColor(self._theme.text))
            self.painter.setFont(self._small)
            figures = QRectF(rect.right() - figure, top, figure, row)
            self.painter.drawText(figures, _RIGHT, share.text)

    def chart_line(self, rect: QRectF, chart: GridChart, row: float) -> None:
        """The heading and the first token with its figure, side by side."""
        u = self._u
        self.painter.setFont(self._small)
        head = min(
            self.painter.fontMetrics().horizontalAdvance(chart.short) + 8 * u, rect.width() / 2
        )
        line = QRectF(rect.left(), rect.top(), rect.width(), row)
        heading = QRectF(line.left(), line.top(), head, row)
        self._write(heading, chart.short, self._small, chart.mood)
        for share in chart.shares[:1]:
            self.painter.setFont(self._small)
            figure = self.painter.fontMetrics().horizontalAdvance(share.text) + 4 * u
            label = QRectF(line.left() + head, line.top(), line.width() - head - figure, row)
            self._write(label, share.label, self._font)
            self.painter.setFont(self._font)
            wide = min(self.painter.fontMetrics().horizontalAdvance(share.label) + 6 * u,
                       label.width())  # fmt: skip
            at = QRectF(label.left() + wide, line.top(), figure, row)
            self._write(at, share.text, self._small, "muted")

    def cursor(self, rect: QRectF) -> None:
        self.painter.setPen(QPen(QColor(self._theme.accent), 2))
        self.painter.setBrush(Qt.BrushStyle.NoBrush)
        self.painter.drawRect(rect.adjusted(1, 1, -1, -1))

    def _write(self, rect: QRectF, text: str, font: QFont, mood: Mood = "plain") -> None:
        self.painter.setFont(font)
        self.painter.setPen(self.colour(mood))
        mode = Qt.TextElideMode.ElideRight
        fitting = self.painter.fontMetrics().elidedText(text, mode, int(rect.width()))
        self.painter.drawText(rect, _LEFT, fitting)
