"""Two charts of one token by layer, under what they say in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Figure, Line, legend_of
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair


class LayerCharts(QWidget):
    """A place a row: the embedding, then each layer; a click goes to one."""

    picked = Signal(int)  # row

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows: Sequence[str] = ()
        names = self.names()
        charts = Chart(theme, self.first_tip), Chart(theme, self.second_tip)
        for chart, name in zip(charts, names, strict=True):
            chart.setAccessibleName(name)
            chart.picked.connect(self.picked)
        self.pair = ChartPair(*charts, names)
        boxes.column(self, self.pair)

    def names(self) -> tuple[str, str]:
        """Those of the charts, for the list and a screen reader."""
        raise NotImplementedError

    def first(self, column: Any, marked: int | None) -> Figure:
        """What the first chart draws of a token; `marked` is the row that is selected."""
        raise NotImplementedError

    def second(self, column: Any, marked: int | None) -> Figure:
        """The same of the second chart."""
        raise NotImplementedError

    def first_tip(self, row: int) -> str:
        """What a row of the first chart says."""
        raise NotImplementedError

    def second_tip(self, row: int) -> str:
        """The same of the second chart."""
        raise NotImplementedError

    def show_rows(
        self, rows: Sequence[str], column: Any | None, headline: str, marked: int | None
    ) -> None:
        """Draw one token, or nothing of one that was not read."""
        self.rows = rows
        self.pair.set_words(headline)
        if column is None:
            self.pair.first.show_figure(None)
            self.pair.second.show_figure(None)
            return
        self.pair.first.show_made(lambda: self.first(column, marked))
        self.pair.second.show_made(lambda: self.second(column, marked))

    @property
    def places(self) -> np.ndarray:
        """(R,) where the rows stand."""
        return np.arange(len(self.rows), dtype=np.float64)

    def figure(
        self, lines: Sequence[Line], up: Axis, ends: tuple[float, float], marked: int | None
    ) -> Figure:
        """Lines over the rows; `ends` are those of the axis that goes up."""
        return Figure(
            x=Axis(self.tr("after layer"), self._row_name, whole=True),
            y=up,
            places=self.places,
            x_range=(-0.5, len(self.rows) - 0.5),
            y_range=ends,
            lines=lines,
            legend=legend_of(*lines),
            marked=None if marked is None else (marked - 0.5, marked + 0.5),
        )

    def _row_name(self, place: float) -> str:
        row = int(place)
        return self.rows[row] if 0 <= row < len(self.rows) else ""
