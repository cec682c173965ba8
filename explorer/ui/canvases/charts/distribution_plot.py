"""A sorted distribution before and after one link of the chain: its curve and its cumulative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from explorer.figures.prediction.sampling import Curve
from explorer.ui.access.accessible import describe, say
from explorer.ui.canvases.opaque import cover, fill, painter_of
from explorer.ui.look.theme import Theme, unit
from explorer.wording import exact_percent

_TOP, _BOTTOM, _GAP = 17, 17, 14  # pixels at a zoom of 1


@dataclass(frozen=True, slots=True)
class Curves:
    """What is drawn: one link's work on the distribution."""

    before: Curve
    after: Curve
    kept: int  # tokens after the link
    total: int  # tokens before it
    level: float | None = None  # cumulative mass that top-p asks for
    u: float | None = None  # the number drawn; on the cumulative curve of `after`
    landed: int | None = None  # rank (0 = best) that it falls on


class CurvePair(QWidget):
    """Left: probability by rank; right: cumulative.  Ranks run logarithmically, from 1."""

    def __init__(
        self, theme: Theme, words: tuple[str, str, str, str], parent: QWidget | None = None
    ) -> None:
        """`words` name the two plots and the lines before and after."""
        super().__init__(parent)
        self._theme = theme
        self._words = words
        self._data: Curves | None = None
        describe(self)
        cover(self)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def set_curves(self, data: Curves, line: str) -> None:
        """Draw others; `line` says the same in words."""
        self._data = data
        say(self, line)
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(360 * u), round(150 * u))

    def minimumSizeHint(self) -> QSize:
        u = unit(self)
        return QSize(round(200 * u), round(80 * u))

    # -- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        data = self._data
        painter = painter_of(self)
        fill(painter, event.rect(), self._theme)
        if data is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        font = QFont(self.font())
        font.setPixelSize(max(8, round(11 * unit(self))))
        painter.setFont(font)
        u = unit(self)
        half = (self.width() - _GAP * u) / 2
        left = QRectF(2, _TOP * u, half - 2, max(1.0, self.height() - (_TOP + _BOTTOM) * u))
        right = left.translated(half + _GAP * u, 0)
        top = float(max(data.before.p[0], data.after.p[0]))
        name, _, before, after = self._words
        self._frame(painter, left, data, f"{name}  ─ {before}  ━ {after}", exact_percent(top))
        self._frame(painter, right, data, self._words[1], "100 %")
        self._cut(painter, left, data)
        self._cut(painter, right, data)
        for rect, name, scale in ((left, "p", top), (right, "cumulative", 1.0)):
            # Told apart by more than their colour; a dashed line would take ten times as long.
            self._line(painter, rect, data, data.before, name, scale, "raw", 1.0)
            self._line(painter, rect, data, data.after, name, scale, "final", 2.5)
        self._levels(painter, right, data)
        painter.end()

    def _x(self, rect: QRectF, data: Curves, rank: np.ndarray) -> np.ndarray:
        span = np.log(max(data.total, 2) + 0.5)
        return np.asarray(rect.left() + np.log(rank) / span * rect.width())

    def _frame(self, painter: QPainter, rect: QRectF, data: Curves, name: str, top: str) -> None:
        painter.setPen(QPen(QColor(self._theme.grid), 1))
        for part in (0.0, 0.5, 1.0):
            y = round(rect.bottom() - part * rect.height())
            painter.drawLine(round(rect.left()), y, round(rect.right()), y)
        painter.setPen(QColor(self._theme.muted))
        above = QRectF(rect.left(), 0, rect.width(), rect.top() - 2)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, name)
        painter.drawText(above, Qt.AlignmentFlag.AlignRight, top)
        below = QRectF(rect.left(), rect.bottom() + 2, rect.width(), _BOTTOM * unit(self))
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, self.tr("rank 1"))
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, f"{data.total:,}")

    def _line(
        self, painter: QPainter, rect: QRectF, data: Curves, curve: Curve, name: str,
        scale: float, colour: str, width: float,
    ) -> None:  # fmt: skip
        x = self._x(rect, data, curve.rank)
        y = rect.bottom() - np.minimum(getattr(curve, name) / scale, 1) * rect.height()
        painter.setPen(QPen(QColor(getattr(self._theme, colour)), width * unit(self)))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        points = [QPointF(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        if len(points) == 1:
            painter.drawEllipse(points[0], 3 * unit(self), 3 * unit(self))
        else:
            painter.drawPolyline(QPolygonF(points))

    def _cut(self, painter: QPainter, rect: QRectF, data: Curves) -> None:
        """What is cut lies in grey, behind a line."""
        if data.kept >= data.total:
            return
        x = float(self._x(rect, data, np.array([data.kept + 0.5]))[0])
        painter.fillRect(
            QRectF(x, rect.top(), rect.right() - x, rect.height()), QColor(self._theme.masked)
        )
        painter.setPen(QPen(QColor(self._theme.formula), 2 * unit(self)))
        painter.drawLine(QPointF(x, rect.top()), QPointF(x, rect.bottom()))
        words = self.tr("{0} kept").format(f"{data.kept:,}")
        metrics = painter.fontMetrics()
        wide = metrics.horizontalAdvance(words)
        at = x + 4 if x + 4 + wide < rect.right() else max(rect.left(), x - 4 - wide)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(QPointF(at, rect.center().y()), words)

    def _levels(self, painter: QPainter, rect: QRectF, data: Curves) -> None:
        if data.level is not None:
            y = rect.bottom() - data.level * rect.height()
            painter.setPen(QPen(QColor(self._theme.formula), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(rect.left(), y), QPointF(rect.right(), y))
        if data.u is None or data.landed is None:
            return
        y = rect.bottom() - data.u * rect.height()
        x = float(self._x(rect, data, np.array([data.landed + 1.0]))[0])
        painter.setPen(QPen(QColor(self._theme.text), 1.5 * unit(self)))
        painter.drawLine(QPointF(rect.left(), y), QPointF(x, y))
        painter.drawLine(QPointF(x, y), QPointF(x, rect.bottom()))
        painter.setBrush(QColor(self._theme.text))
        painter.drawEllipse(QPointF(x, y), 3.5 * unit(self), 3.5 * unit(self))
        words = f"u = {data.u:.4f}"
        wide = painter.fontMetrics().horizontalAdvance(words)
        high = y - 4 if y - 16 * unit(self) > rect.top() else y + 13 * unit(self)
        at = min(x + 8 * unit(self), rect.right() - wide)
        painter.drawText(QPointF(at, high), words)
