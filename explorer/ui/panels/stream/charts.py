"""One token through the layers: norms and cosines of the stream and of every write."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer.figures.inside.stream import STREAM, Measure, Part, StreamColumn, StreamColumns
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.marks import Dots, Figure, Line, Paint
from explorer.ui.look.theme import Theme
from explorer.ui.panel.layer_charts import LayerCharts
from explorer.ui.panels.stream import words

_PAINTS: dict[str, tuple[str, Dots]] = {
    "": ("recompute", "ring"),
    "attention": ("prefill", "round"),
    "mixer": ("prefill", "round"),
    "mlp": ("decode", "square"),
}


class StreamCharts(LayerCharts):
    """Norms on the left, cosines on the right."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, parent)
        self._known = StreamColumns()
        self._column: StreamColumn | None = None

    def names(self) -> tuple[str, str]:
        return self.tr("Norms by layer"), self.tr("Cosines by layer")

    def show_column(
        self, known: StreamColumns, column: StreamColumn | None, headline: str, marked: int | None
    ) -> None:
        """Draw one token; `marked` is the row that is selected."""
        self._known, self._column = known, column
        self.show_rows(known.rows, column, headline, marked)

    def _line(self, column: StreamColumn, part: Part, measure: Measure) -> Line:
        """The figures of a part, each in the row after which it is in the stream."""
        kind, place = part
        colour, dots = _PAINTS.get(kind, ("rest", "square"))
        figures = self._known.by_layer(column, part, measure).astype(np.float64)
        rows = self.places if part == STREAM else self.places[1:]
        paint = Paint(colour, 1.0 if place == 0 else 0.6)
        return Line(words.part_words(part), rows, figures, paint, 2.0 - 0.5 * min(place, 1), dots)

    def _lines(self, column: StreamColumn, measure: Measure) -> list[Line]:
        return [self._line(column, part, measure) for part in (STREAM, *self._known.parts)]

    def first(self, column: StreamColumn, marked: int | None) -> Figure:
        lines = self._lines(column, "norm")
        figures = np.concatenate([line.y for line in lines])
        above = figures[figures > 0]
        low, high = (float(above.min()), float(above.max())) if len(above) else (1.0, 1.0)
        up = Axis(self.tr("norm"), plain, switch=True, log=True, least=low)
        return self.figure(lines, up, (low / 1.2, high * 1.2), marked)

    def second(self, column: StreamColumn, marked: int | None) -> Figure:
        lines = self._lines(column, "cosine")
        low = min(float(np.nanmin(line.y)) for line in lines)
        ends = np.array([-0.5, len(self._known.rows) - 0.5])
        zero = Line(self.tr("zero"), ends, np.zeros(2), Paint("muted"), 1.0, read=False)
        up = Axis(self.tr("cosine with the end"), plain)
        return self.figure([*lines, zero], up, (min(low * 1.1, -0.05), 1.06), marked)

    def first_tip(self, row: int) -> str:
        assert self._column is not None
        return words.layer_words(self._known, self._column, row)

    second_tip = first_tip
