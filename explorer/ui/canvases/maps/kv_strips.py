"""Keys over values of one position: every layer a strip, every head a column of colours."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.cost import kv_strips as figures
from explorer.figures.cost.kv_strips import Strips
from explorer.figures.drawing.colormaps import difference
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.maps.lut_image import colour_table, picture
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_LINE = 15  # pixels at a zoom of 1


class StripsView(Canvas):
    """Rows of strips; negative and positive numbers by two hues, zero between them."""

    hovered = Signal(str)  # what is under the mouse; "" when it is left

    def __init__(
        self, theme: Theme, tip: Callable[[int, int, int], str], parent: QWidget | None = None
    ) -> None:
        """`tip` words a row, a layer and a head."""
        super().__init__(parent)
        self._theme = theme
        self._tip = tip
        self._rows: tuple[tuple[str, Strips], ...] = ()
        self._images: list[QImage] = []
        self._starts: list[tuple[int, ...]] = []
        describe(self)
        cover(self)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def summary(self) -> str:
        """What a screen reader says: which rows there are."""
        return ", ".join(name for name, _ in self._rows)

    def set_rows(self, *rows: tuple[str, Strips]) -> None:
        """Draw others: a name and strips for each row."""
        self._rows = rows
        self._colour()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._colour()
        self.update()

    def _colour(self) -> None:
        made = [figures.picture(strips) for _, strips in self._rows]
        table = colour_table(self._theme, difference(self._theme.dark))
        self._images = [picture(levels, table) for levels, _ in made]
        self._starts = [starts for _, starts in made]

    def sizeHint(self) -> QSize:
        return QSize(round(320 * unit(self)), round(150 * unit(self)))

    def minimumSizeHint(self) -> QSize:
        return QSize(round(120 * unit(self)), round(50 * unit(self)))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        fill(painter, self.rect(), self._theme)
        painter.setFont(small_font(self))
        painter.setPen(QColor(self._theme.muted))
        for (name, strips), image, area in zip(
            self._rows, self._images, self._areas(), strict=True
        ):
            words = QRectF(area.left(), area.top() - _LINE * unit(self), area.width(), area.top())
            painter.drawText(words, Qt.AlignmentFlag.AlignLeft, name)
            painter.drawText(
                words, Qt.AlignmentFlag.AlignRight, f"−{strips.top:.3g}…{strips.top:.3g}"
            )
            painter.drawImage(area, image)

    def _areas(self) -> list[QRectF]:
        """Of the pictures, each under its words."""
        count, line = max(len(self._rows), 1), _LINE * unit(self)
        high = self.height() / count
        wide = self.width() - 4
        return [QRectF(2, i * high + line, wide, high - line - 2) for i in range(len(self._rows))]

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._read(self._words_at(event.position().x(), event.position().y()))

    def pointer_left(self) -> None:
        self._read("")

    def _read(self, words: str) -> None:
        say(self, words)
        self.hovered.emit(words)

    def _words_at(self, x: float, y: float) -> str:
        for row, area in enumerate(self._areas()):
            if area.contains(x, y):
                column = int((x - area.left()) / area.width() * self._images[row].width())
                found = figures.at(self._rows[row][1], self._starts[row], column)
                return "" if found is None else self._tip(row, *found)
        return ""
