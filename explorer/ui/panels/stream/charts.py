"""One token through the layers: norms and cosines of the stream and of every write."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.inside.stream import STREAM, Measure, Part, StreamColumn, StreamColumns
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Dots, Figure, Line, Paint, legend_of
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair
from explorer.ui.panels.stream import words

_PAINTS: dict[str, tuple[str, Dots]] = {
    "": ("recompute", "ring"),
    "attention": ("prefill", "round"),
    "mixer": ("prefill", "round"),
    "mlp": ("decode", "square"),
}


class TokenCharts(QWidget):
    """Two charts by layer; a click goes to one."""

    picked = Signal(int)  # row

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known = StreamColumns()
        self._column: StreamColumn | None = None
        norms, cosines = Chart(theme, self._tip), Chart(theme, self._tip)
        norms.setAccessibleName(self.tr("Norms by layer"))
        cosines.setAccessibleName(self.tr("Cosines by layer"))
        names = (self.tr("Norms by layer"), self.tr("Cosines by layer"))
        self.pair = ChartPair(norms, cosines, names)
        for chart in (norms, cosines):
            chart.picked.connect(self.picked)
        boxes.column(self, self.pair)

    def show_column(
        self, known: StreamColumns, column: StreamColumn | None, headline: str, marked: int | None
    ) -> None:
        """Draw one token; `marked` is the row that is selected."""
        self._known, self._column = known, column
        self.pair.set_words(headline)
        if column is None:
            self.pair.first.show_figure(None)
            self.pair.second.show_figure(None)
            return
        self.pair.first.show_made(lambda: self._norms(column, marked))
        self.pair.second.show_made(lambda: self._cosines(column, marked))

    def _line(self, column: StreamColumn, part: Part, measure: Measure) -> Line:
        """The figures of a part, each in the row after which it is in the stream."""
        kind, place = part
        colour, dots = _PAINTS.get(kind, ("rest", "square"))
        figures = self._known.by_layer(column, part, measure).astype(np.float64)
        rows = self._places if part == STREAM else self._places[1:]
        paint = Paint(colour, 1.0 if place == 0 else 0.6)
        return Line(words.part_words(part), rows, figures, paint, 2.0 - 0.5 * min(place, 1), dots)

    def _lines(self, column: StreamColumn, measure: Measure) -> list[Line]:
        return [self._line(column, part, measure) for part in (STREAM, *self._known.parts)]

    def _norms(self, column: StreamColumn, marked: int | None) -> Figure:
        lines = self._lines(column, "norm")
        figures = np.concatenate([line.y for line in lines])
        above = figures[figures > 0]
        low, high = (float(above.min()), float(above.max())) if len(above) else (1.0, 1.0)
        up = Axis(self.tr("norm"), plain, switch=True, log=True, least=low)
        return self._figure(lines, up, (low / 1.2, high * 1.2), marked)

    def _cosines(self, column: StreamColumn, marked: int | None) -> Figure:
        lines = self._lines(column, "cosine")
        low = min(float(np.nanmin(line.y)) for line in lines)
        ends = np.array([-0.5, len(self._known.rows) - 0.5])
        zero = Line(self.tr("zero"), ends, np.zeros(2), Paint("muted"), 1.0, read=False)
        up = Axis(self.tr("cosine with the end"), plain)
        return self._figure([*lines, zero], up, (min(low * 1.1, -0.05), 1.06), marked)

    def _figure(
        self, lines: Sequence[Line], up: Axis, ends: tuple[float, float], marked: int | None
    ) -> Figure:
        return Figure(
            x=Axis(self.tr("after layer"), self._row_name, whole=True),
            y=up,
            places=self._places,
            x_range=(-0.5, len(self._known.rows) - 0.5),
            y_range=ends,
            lines=lines,
            legend=legend_of(*lines),
            marked=None if marked is None else (marked - 0.5, marked + 0.5),
        )

    @property
    def _places(self) -> np.ndarray:
        return np.arange(len(self._known.rows), dtype=np.float64)

    def _row_name(self, place: float) -> str:
        row, names = int(place), self._known.rows
        return names[row] if 0 <= row < len(names) else ""

    def _tip(self, row: int) -> str:
        assert self._column is not None
        return words.layer_words(self._known, self._column, row)
