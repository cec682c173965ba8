"""One query's row: every key in its place, and the most read by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.figures.attention import maps as figures
from explorer.figures.attention.map_request import DrawnMaps
from explorer.figures.text.tokens import Label
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.tokens.token_bars import BarRow, TokenBars
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention import words
from explorer.wording import percent, round_percent


class RowPage(QWidget):
    """Columns by position on top, bars by weight below; in a comparison both sides in each."""

    picked = Signal(int)  # key
    hovered = Signal(object)  # key or None

    def __init__(self, theme: Theme, read: Callable[[int], str]) -> None:
        """`read` puts the cell of one key into words."""
        super().__init__()
        self._drawn: DrawnMaps | None = None
        self._labels: Sequence[Label] = ()
        self._query = 0
        weight = Axis(self.tr("weight"), round_percent)
        *self.charts, self.alone = (
            ColumnChart(theme, self._axis(self.tr("keys")), weight, read) for _ in range(3)
        )
        self.bars = TokenBars(theme, (self.tr("weight"), ""))
        self.bars.setAccessibleName(self.tr("Keys with the most attention"))
        self.beside = TokenBars(theme, words.side_names(None)[:2])
        self.beside.setAccessibleName(self.tr("Keys with the most attention, both sides"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        for chart in (self.alone, *self.charts):
            chart.setAccessibleName(self.tr("Weights by key"))
            chart.picked.connect(self.picked)
            column.addWidget(chart, 1)
        for bars in (self.bars, self.beside):
            bars.clicked.connect(self.picked)
            bars.hovered.connect(self.hovered)
            bars.capacityChanged.connect(self._redraw)
            column.addWidget(bars, 3)
        self._arrange(beside=False)

    def show_drawn(
        self, drawn: DrawnMaps, labels: Sequence[Label], padding: Sequence[int], query: int
    ) -> None:
        """Show the row of one query."""
        self._drawn, self._labels, self._query = drawn, labels, query
        self._arrange(beside=len(drawn.maps) > 1)
        self.beside.set_heads(words.side_names(drawn.request.beside)[:2])
        self._redraw()

    def _arrange(self, beside: bool) -> None:
        """Which parts are seen; never while a layout places them, which would miss it."""
        for part, seen in (
            (self.alone, not beside),
            *((chart, beside) for chart in self.charts),
            (self.bars, not beside),
            (self.beside, beside),
        ):
            part.setVisible(seen)

    @property
    def bars_shown(self) -> TokenBars:
        """The bars that are seen."""
        return self.bars if self._drawn is None or len(self._drawn.maps) == 1 else self.beside

    def _redraw(self) -> None:
        drawn = self._drawn
        if drawn is None:
            return
        beside = len(drawn.maps) > 1
        charts = self.charts if beside else [self.alone]
        for place, chart in enumerate(charts):
            read = words.row_of(drawn, place, self._query)
            if read is not None:
                weights = read.weights.astype(float)
                columns = Columns(weights, ("raw",), [Part(self.tr("weight"), weights)])
                name = words.side_names(drawn.request.beside)[place]
                named = self.tr("keys, {0}").format(name) if beside else self.tr("keys")
                chart.set_columns(columns, x=self._axis(named))
        self.bars_shown.set_rows(self._rows(drawn, beside))

    def _axis(self, name: str) -> Axis:
        return Axis(name, self._label, whole=True)

    def _label(self, key: float) -> str:
        """The token of one key, for the axis."""
        return self._labels[int(key)].text if 0 <= key < len(self._labels) else ""

    def _rows(self, drawn: DrawnMaps, beside: bool) -> list[BarRow]:
        """The keys that are read most on either side, and everything else as one row."""
        reads = [words.row_of(drawn, place, self._query) for place in range(1 + beside)]
        first, second = reads[0], reads[1] if beside else None
        lead = second if first is None else first
        if lead is None:
            return []
        fits = max(1, self.bars_shown.rows_that_fit() - 1)
        found = {k: w for read in reads if read is not None for k, w in read.top_keys(fits)}
        keys = sorted(found, key=lambda k: (-max(self._at(r, k) for r in reads), k))[:fits]
        rows = [
            BarRow(
                key=key,
                label=f"{key} {self._labels[key].text}",
                first=self._at(first, key),
                first_text=percent(self._at(first, key)),
                second=self._at(second, key) if beside else None,
                second_text=percent(self._at(second, key)) if beside else "",
                tip=words.cell(drawn, self._labels, self._query, key),
            )
            for key in keys
        ]
        rest = [max(0.0, float(r.weights.sum()) - sum(self._at(r, k) for k in keys))
                if r is not None else 0.0 for r in reads]  # fmt: skip
        if len(lead.weights) > len(keys):
            rows.append(
                BarRow(
                    key=-1,
                    label=self.tr("{0} others").format(f"{len(lead.weights) - len(keys):,}"),
                    first=rest[0],
                    first_text=percent(rest[0]),
                    second=rest[1] if beside else None,
                    second_text=percent(rest[1]) if beside else "",
                    rest=True,
                )
            )
        return rows

    def _at(self, read: figures.QueryRow | None, key: int) -> float:
        return 0.0 if read is None else float(read.weights[key])
