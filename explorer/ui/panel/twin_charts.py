"""Two charts side by side under what they say in words: as the cache and timings panels have."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from explorer.ui.canvases.charts.columns import ColumnStrip
from explorer.ui.canvases.charts.legend import Legend
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.paged_panel import Page

_MORE_FROM, _LEGEND_FROM = 108, 128  # pixels of height at a zoom of 1


class TwinCharts(QWidget):
    """A headline, a line that also reads out the column under the cursor, charts and a legend.

    With little room the legend goes first, then the line of what else there is to say: the charts
    must stay readable.
    """

    def __init__(
        self,
        theme: Theme,
        first: ColumnStrip,
        second: ColumnStrip,
        tip: str = "",
        parent: QWidget | None = None,
    ) -> None:
        """`tip` explains the headline."""
        super().__init__(parent)
        self.first, self.second = first, second
        self._headline = ElidedLabel(tip=tip)
        self._line = ElidedLabel()
        self._line.setProperty("look", "small")
        self._words = ""
        self._more = ElidedLabel()
        self._more.setProperty("look", "small")
        self._legend = Legend(theme)
        charts = QHBoxLayout()
        charts.setSpacing(10)
        charts.addWidget(first)
        charts.addWidget(second)
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(1)
        for part in (self._headline, self._line, self._more):
            rows.addWidget(part)
        rows.addLayout(charts, 1)
        rows.addWidget(self._legend)
        for chart in (first, second):
            chart.hovered.connect(self._read_out)

    def set_words(
        self, headline: str, line: str, legend: Sequence[LegendEntry], more: str = ""
    ) -> None:
        """What the charts say; the line comes back when the cursor leaves a column."""
        self._headline.setText(headline)
        self._words = line
        if self.first.over is None and self.second.over is None:
            self._line.setText(line)
        self._more.setText(more)
        self._make_room()
        self._legend.set_entries(legend)

    def set_theme(self, theme: Theme) -> None:
        for part in (self.first, self.second, self._legend):
            part.set_theme(theme)

    def _read_out(self, words: str) -> None:
        self._line.setText(" · ".join(words.splitlines()) or self._words)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        high = self.height() / unit(self)
        self._more.setVisible(high >= _MORE_FROM and bool(self._more.text()))
        self._legend.setVisible(high >= _LEGEND_FROM)


class TwinPage(Page):
    """A page that is two charts and nothing else; a subclass hands them to `set_charts`."""

    charts: TwinCharts

    def set_charts(self, charts: TwinCharts) -> None:
        """Fill the page with them."""
        self.charts = charts
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(charts)

    def set_theme(self, theme: Theme) -> None:
        self.charts.set_theme(theme)
