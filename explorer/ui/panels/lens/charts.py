"""One token through the layers: the probability of the final choice, entropy and KL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.inside import lens as figures
from explorer.figures.inside.lens import LensColumn, LensColumns
from explorer.figures.text.tokens import written
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Figure, Line, Paint, legend_of
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair
from explorer.ui.panels.lens import words
from explorer.wording import exact_percent, in_unit, information, round_percent, unit


class TokenCharts(QWidget):
    """Two charts by layer; a click goes to one."""

    picked = Signal(int)  # row

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._known = LensColumns()
        self._column: LensColumn | None = None
        first, second = Chart(theme, self._share_tip), Chart(theme, self._bits_tip)
        first.setAccessibleName(self.tr("Probability of the final choice by layer"))
        second.setAccessibleName(self.tr("Entropy and KL by layer"))
        self.pair = ChartPair(
            first, second, (self.tr("Probability by layer"), self.tr("Entropy and KL by layer"))
        )
        for chart in (first, second):
            chart.picked.connect(self.picked)
        boxes.column(self, self.pair)

    def show_column(
        self, known: LensColumns, column: LensColumn | None, headline: str, marked: int | None
    ) -> None:
        """Draw one token; `marked` is the row that is selected."""
        self._known, self._column = known, column
        self.pair.set_words(headline)
        if column is None:
            self.pair.first.show_figure(None)
            self.pair.second.show_figure(None)
            return
        self.pair.first.show_made(lambda: self._shares(column, marked))
        self.pair.second.show_made(lambda: self._spread(column, marked))

    def _shares(self, column: LensColumn, marked: int | None) -> Figure:
        lines = (
            Line(self.tr("final choice"), self._places, column.final_share.astype(np.float64),
                 Paint("prefill"), 2.0, "round"),
            Line(self.tr("best of the row"), self._places, column.shares[:, 0].astype(np.float64),
                 Paint("raw"), 1.2, "ring"),
        )  # fmt: skip
        return self._figure(lines, Axis(self.tr("probability"), round_percent), 1.0, marked)

    def _spread(self, column: LensColumn, marked: int | None) -> Figure:
        scale = in_unit(figures.nats(1.0))
        lines = (
            Line(self.tr("entropy"), self._places, column.entropy_bits * scale, Paint("decode"),
                 2.0, "round"),
            Line(self.tr("KL to the final row"), self._places, column.kl_bits * scale,
                 Paint("recompute"), 2.0, "square"),
        )  # fmt: skip
        top = max(float(line.y.max(initial=0.0)) for line in lines) or 1.0
        up = Axis(self.tr("information"), lambda value: f"{value:g} {unit()}")
        return self._figure(lines, up, top, marked)

    def _figure(self, lines: Sequence[Line], up: Axis, top: float, marked: int | None) -> Figure:
        count = len(self._known.rows)
        band = None if marked is None else (marked - 0.5, marked + 0.5)
        return Figure(
            x=Axis(self.tr("after layer"), self._row_name, whole=True),
            y=up,
            places=self._places,
            x_range=(-0.5, count - 0.5),
            y_range=(0.0, top * 1.06),
            lines=lines,
            legend=legend_of(*lines),
            marked=band,
        )

    @property
    def _places(self) -> np.ndarray:
        return np.arange(len(self._known.rows), dtype=np.float64)

    def _row_name(self, place: float) -> str:
        row, names = int(place), self._known.rows
        return names[row] if 0 <= row < len(names) else ""

    def _share_tip(self, row: int) -> str:
        column = self._column
        assert column is not None
        best, share = self._known.top(column, row)[0]
        return self.tr("{0}: final choice {1}, best {2} {3}").format(
            words.row_words(self._known.rows[row]),
            exact_percent(float(column.final_share[row])),
            written(best), exact_percent(share),
        )  # fmt: skip

    def _bits_tip(self, row: int) -> str:
        column = self._column
        assert column is not None
        return self.tr("{0}: entropy {1}, KL {2}").format(
            words.row_words(self._known.rows[row]),
            information(figures.nats(float(column.entropy_bits[row]))),
            information(figures.nats(float(column.kl_bits[row]))),
        )

    def table(self) -> Iterator[Sequence[object]]:
        """Every row of the token that is shown."""
        yield "row", "final_probability", "final_rank", "entropy_bits", "kl_to_final_bits"
        column = self._column
        for row, name in enumerate(() if column is None else self._known.rows):
            assert column is not None
            yield (
                name, float(column.final_share[row]), int(column.final_rank[row]),
                float(column.entropy_bits[row]), float(column.kl_bits[row]),
            )  # fmt: skip
