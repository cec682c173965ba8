"""The model as a picture: the stream runs down, its parts read it and add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QLineF, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QColor,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.inside.model_map import MapPart
from explorer.ui.access.accessible import describe, say
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from explorer.ui.canvases.canvas import Canvas
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.text_size import small_font
from explorer.ui.look.theme import Theme, unit

_GAP, _STREAM, _BOX = 5, 12, 34  # pixels at a zoom of 1: between rows, to the stream, to boxes
_SQUARE = 13  # of one layer
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_COLOURS = {
    "attention": "prefill", "mixer": "prefill", "mlp": "decode", "experts": "decode",
    "norm": "rest", "final norm": "rest", "other": "rest",
}  # fmt: skip
_KINDS = ("prefill", "recompute", "decode", "raw", "muted")  # of blocks
_LAYERS = -1  # the row of layers, among the places


class ModelPicture(Canvas):
    """A row each part; a click, or Enter, goes to the panel that shows it."""

    picked = Signal(int)  # row
    layerPicked = Signal(int)  # with the arrows
    layerOpened = Signal(int)  # clicked, or Enter where no row is read

    def __init__(
        self, theme: Theme, words: Callable[[int], tuple[str, str, str]],
        parent: QWidget | None = None,
    ) -> None:  # fmt: skip
        """`words`: what a row is, its figures, and the same for where there is little room."""
        super().__init__(parent)
        describe(self, QAccessible.Role.List)
        cover(self)
        self._theme, self._words = theme, words
        self._rows: Sequence[MapPart] = ()
        self._blocks: Sequence[int] = ()
        self._layer = 0
        self._title = ""
        self._current: int | None = None
        self.setProperty(KEEPS_ARROWS, True)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_model(
        self, rows: Sequence[MapPart], blocks: Sequence[int], layer: int, title: str
    ) -> None:
        """Draw these parts; `blocks` has the kind of each layer, `title` words the lit one."""
        self._rows, self._blocks, self._layer, self._title = rows, blocks, layer, title
        if self._current is not None and self._current >= len(rows):
            self._current = None
        self.updateGeometry()
        self.update()

    @property
    def rows(self) -> Sequence[MapPart]:
        """What is drawn."""
        return self._rows

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    # -- geometry

    @property
    def _line(self) -> float:
        return QFontMetricsF(self.font()).height() + 6 * unit(self)

    def _places(self) -> Iterator[tuple[int, QRectF]]:
        """Each row's box, and the row of layers before the first part of a layer."""
        u, top, inside = unit(self), 2.0, False
        width = max(self.width() - _BOX * u - 2, 10.0)
        for index, row in enumerate(self._rows):
            if row.layer is not None and not inside:
                inside = True
                high = self._line + self._squares_high()
                yield _LAYERS, QRectF(_BOX * u, top, width, high)
                top += high + _GAP * u
            yield index, QRectF(_BOX * u, top, width, self._line)
            top += self._line + _GAP * u

    def box_of(self, row: int) -> QRectF:
        """Where a row is."""
        return next(box for index, box in self._places() if index == row)

    def square_of(self, layer: int) -> QRectF:
        """Where a layer is in the row of layers."""
        area, side = self.box_of(_LAYERS), _SQUARE * unit(self)
        each = max(1, int(area.width() / side))
        left, top = layer % each * side, layer // each * side
        return QRectF(area.left() + left, area.top() + self._line + top, side - 2, side - 2)

    def _squares_high(self) -> float:
        side = _SQUARE * unit(self)
        each = max(1, int((self.width() - _BOX * unit(self)) / side))
        return -(-len(self._blocks) // each) * side

    def sizeHint(self) -> QSize:
        bottom = max((box.bottom() for _, box in self._places()), default=0.0)
        return QSize(200, round(bottom) + 4)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_of(self)
        fill(painter, event.rect(), self._theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        places = dict(self._places())
        if not places:
            return
        self._paint_stream(painter, places)
        for index, box in places.items():
            if index == _LAYERS:
                self._paint_layers(painter, box)
            else:
                self._paint_row(painter, index, box, places)

    def _paint_stream(self, painter: QPainter, places: dict[int, QRectF]) -> None:
        x = _STREAM * unit(self)
        first, last = places[0], self._last_of_stream(places)
        painter.setPen(QPen(QColor(self._theme.accent), 2 * unit(self)))
        painter.drawLine(QLineF(x, first.center().y(), x, last.center().y()))

    def _last_of_stream(self, places: dict[int, QRectF]) -> QRectF:
        on = [i for i, row in enumerate(self._rows) if row.kind != "softmax" and row.kind != "head"]
        return places[on[-1]]

    def _paint_row(
        self, painter: QPainter, index: int, box: QRectF, places: dict[int, QRectF]
    ) -> None:
        row, u, theme = self._rows[index], unit(self), self._theme
        x, y = _STREAM * u, box.center().y()
        painter.setPen(QPen(QColor(theme.accent), 1.5 * u))
        if row.reads in ("entered", "stream") or index == 0:
            painter.drawLine(QLineF(x, y, box.left(), y))
        elif index and (row.source in ("", self._rows[index - 1].name)):
            above = places[index - 1].bottom()
            painter.drawLine(QLineF(box.left() + 14 * u, above, box.left() + 14 * u, box.top()))
        if row.adds:
            foot = box.bottom() - 4 * u
            painter.drawLine(QLineF(x, foot, box.left(), foot))
            self._paint_plus(painter, QPointF(x, foot))
        inside = box.adjusted(0.5, 0.5, -0.5, -0.5)
        lit = index == self._current
        painter.setPen(QPen(QColor(theme.accent if lit else theme.border), 2 if lit else 1))
        painter.setBrush(QColor(theme.hover if lit else theme.field))
        painter.drawRoundedRect(inside, 4 * u, 4 * u)
        colour = QColor(getattr(theme, _COLOURS.get(row.kind, "accent")))
        painter.fillRect(QRectF(box.left() + 3, box.top() + 3, 3 * u, box.height() - 6), colour)
        self._write(painter, box.adjusted(12 * u, 0, -6 * u, 0), *self._words(index))

    def _write(self, painter: QPainter, area: QRectF, name: str, figures: str, short: str) -> None:
        """The name on the left, figures on the right, cut where there is no room at all."""
        elide = Qt.TextElideMode.ElideRight
        painter.setFont(self.font())
        metrics = QFontMetricsF(self.font())
        wide = min(metrics.horizontalAdvance(name) + 2, area.width())
        painter.setPen(QColor(self._theme.text))
        painter.drawText(area, _LEFT, metrics.elidedText(name, elide, area.width()))
        small = small_font(self)
        painter.setFont(small)
        painter.setPen(QColor(self._theme.muted))
        rest = area.adjusted(wide + 10 * unit(self), 0, 0, 0)
        if rest.width() > 40:
            written = QFontMetricsF(small)
            fits = written.horizontalAdvance(figures) <= rest.width()
            told = figures if fits else written.elidedText(short, elide, rest.width())
            painter.drawText(
                rest, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, told
            )

    def _paint_plus(self, painter: QPainter, at: QPointF) -> None:
        r = 5 * unit(self)
        painter.setBrush(QColor(self._theme.card))
        painter.drawEllipse(at, r, r)
        painter.drawLine(QLineF(at.x() - r, at.y(), at.x() + r, at.y()))
        painter.drawLine(QLineF(at.x(), at.y() - r, at.x(), at.y() + r))

    def _paint_layers(self, painter: QPainter, box: QRectF) -> None:
        theme = self._theme
        painter.setFont(self.font())
        painter.setPen(QColor(theme.text))
        head = QRectF(box.left(), box.top(), box.width(), self._line)
        metrics = QFontMetricsF(self.font())
        told = metrics.elidedText(self._title, Qt.TextElideMode.ElideRight, head.width())
        painter.drawText(head, _LEFT, told)
        for layer, kind in enumerate(self._blocks):
            square = self.square_of(layer)
            painter.fillRect(square, QColor(getattr(theme, _KINDS[kind % len(_KINDS)])))
            if layer == self._layer:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(theme.cursor), 4))
                painter.drawRect(square)
                painter.setPen(QPen(QColor(theme.cursor_halo), 2))
                painter.drawRect(square)

    # -- reading

    def summary(self) -> str:
        """What a screen reader says before a row was looked at: the layer that is lit."""
        return self._title

    def tip_at(self, point: QPoint) -> str:
        layer, row = self._layer_at(QPointF(point)), self._row_at(QPointF(point))
        if layer is not None:
            return self.tr("Layer {0}").format(layer)
        return "" if row is None else "\n".join(filter(None, self._words(row)[:2]))

    def _row_at(self, point: QPointF) -> int | None:
        return next((i for i, box in self._places() if i >= 0 and box.contains(point)), None)

    def _layer_at(self, point: QPointF) -> int | None:
        if not any(index == _LAYERS for index, _ in self._places()):
            return None
        return next(
            (i for i in range(len(self._blocks)) if self.square_of(i).contains(point)), None
        )

    def _look_at(self, row: int | None, aloud: bool = False) -> None:
        if row != self._current:
            self._current = row
            words = () if row is None else self._words(row)[:2]
            say(self, ". ".join(filter(None, words)), aloud)
            self.update()

    # -- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._look_at(self._row_at(event.position()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        layer, row = self._layer_at(event.position()), self._row_at(event.position())
        if layer is not None:
            self.layerOpened.emit(layer)
        elif row is not None:
            self.picked.emit(row)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()  # the release says it all

    def pointer_left(self) -> None:
        self._look_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, last = Qt.Key(event.key()), len(self._rows) - 1
        if last >= 0 and key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            start = -1 if self._current is None else self._current
            step = 1 if key == Qt.Key.Key_Down else -1
            self._look_at(min(max(start + step, 0), last), aloud=True)
        elif self._blocks and key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            step = 1 if key == Qt.Key.Key_Right else -1
            self.layerPicked.emit(min(max(self._layer + step, 0), len(self._blocks) - 1))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._current is not None:
            self.picked.emit(self._current)
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._blocks:
            self.layerOpened.emit(self._layer)
        else:
            super().keyPressEvent(event)
