"""A mixture of experts: what the router gave, what it chose, and the load of each expert."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer.figures.inside.block import Experts
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Bars, Figure, LegendEntry, Paint
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panels.block import words


class ExpertCharts(QWidget):
    """Two charts over one another, experts along x."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._found: Experts | None = None
        self.router, self.load = Chart(theme, self._router_tip), Chart(theme, self._load_tip)
        self.router.setAccessibleName(self.tr("Router output by expert"))
        self.load.setAccessibleName(self.tr("Tokens by expert"))
        boxes.column(self, (self.router, 1), (self.load, 1), gap=4)

    def show_experts(self, found: Experts | None) -> None:
        """Draw those of another token; None = the layer has none."""
        self._found = found
        known = found is not None and found.router is not None
        self.router.setVisible(known)
        if found is None:
            self.router.show_figure(None)
            self.load.show_figure(None)
            return
        router, load = found.router, found.load.astype(np.float64)
        if router is not None:
            values = router.astype(np.float64)
            self.router.show_made(lambda: self._figure(found, values, self.tr("router output")))
        self.load.show_made(lambda: self._figure(found, load, self.tr("tokens")))

    @property
    def shown(self) -> Experts | None:
        """What is drawn."""
        return self._found

    @property
    def told(self) -> str:
        """The choice in words."""
        return "" if self._found is None else words.chosen_experts(self._found)

    def _figure(self, found: Experts, values: np.ndarray, name: str) -> Figure:
        places = np.arange(len(values), dtype=np.float64)
        chosen = np.isin(places, found.ids)
        zero = np.zeros(len(values))
        low, high = float(values.min(initial=0.0)) * 1.06, float(values.max(initial=0.0)) * 1.06
        bars = [
            Bars(words_, places[which], zero[which], values[which], Paint(colour), 0.8)
            for words_, which, colour in (
                (self.tr("chosen"), chosen, "decode"), (self.tr("not chosen"), ~chosen, "rest"),
            )
            if which.any()
        ]  # fmt: skip
        return Figure(
            x=Axis(self.tr("expert"), lambda value: f"{value:.0f}", whole=True),
            y=Axis(name, plain),
            places=places,
            x_range=(-0.5, len(values) - 0.5),
            y_range=(low, high if high > low else low + 1),
            bars=bars,
            legend=(
                LegendEntry(self.tr("chosen for this token"), "decode"),
                LegendEntry(self.tr("other"), "rest"),
            ),
        )

    def _router_tip(self, expert: int) -> str:
        found = self._found
        if found is None or found.router is None:
            return ""
        told = self.tr("Expert {0}: router output {1}").format(
            expert, f"{found.router[expert]:z.4g}"
        )
        if expert not in found.ids:
            return told
        weight = found.weights[found.ids.index(expert)]
        return self.tr("{0}, chosen with weight {1}").format(told, f"{weight:z.4g}")

    def _load_tip(self, expert: int) -> str:
        found = self._found
        if found is None:
            return ""
        return self.tr("Expert {0}: {1} of {2} tokens").format(
            expert, f"{int(found.load[expert]):,}", f"{found.tokens:,}"
        )
