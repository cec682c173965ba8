"""A sorted distribution before and after one stage of the chain: its curve and its cumulative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.figures.prediction.sampling import Curve
from explorer.ui.access.accessible import say
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Band, Figure, Line, Note, Paint, legend_of
from explorer.ui.look.theme import Theme
from explorer.wording import exact_percent, round_percent

_LEAST = 1e-9  # probability: a logarithmic axis ends there


@dataclass(frozen=True, slots=True)
class OneStage:
    """What is drawn: one link's work on the distribution."""

    before: Curve
    after: Curve
    kept: int  # tokens after the link
    total: int  # tokens before it
    level: float | None = None  # cumulative mass that top-p asks for
    u: float | None = None  # the number drawn; on the cumulative curve of `after`
    landed: int | None = None  # rank (0 = best) that it falls on


class DistributionCharts(QWidget):
    """Left: probability by rank; right: cumulative.  Ranks run logarithmically, from 1."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stage: OneStage | None = None
        self.probability = Chart(theme, self._tip)
        self.probability.setAccessibleName(
            self.tr("Probability by rank, before and after one stage")
        )
        self.cumulative = Chart(theme, self._tip)
        self.cumulative.setAccessibleName(
            self.tr("Cumulative probability by rank, before and after one stage")
        )
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        for chart in self.charts:
            row.addWidget(chart)

    @property
    def charts(self) -> tuple[Chart, Chart]:
        """Both of them."""
        return self.probability, self.cumulative

    def show_stage(self, stage: OneStage, line: str) -> None:
        """Draw another; `line` says the same in words."""
        self._stage = stage
        ranks = Axis(self.tr("rank"), switch=False, log=True, least=1.0, whole=True)
        top = float(max(stage.before.p[0], stage.after.p[0]))
        probability = Axis(self.tr("probability"), _share, switch=True, least=_LEAST)
        self.probability.show_figure(self._figure(stage, ranks, probability, "p", top * 1.05))
        self.cumulative.show_figure(
            self._figure(stage, ranks, Axis(self.tr("cumulative"), _share), "cumulative", 1.05)
        )
        for chart in self.charts:
            say(chart, line)

    def _figure(self, stage: OneStage, x: Axis, y: Axis, what: str, top: float) -> Figure:
        # Told apart by more than their colour; a dashed line would take ten times as long.
        lines = [
            self._line(self.tr("before"), stage.before, what, "raw", 1.0),
            self._line(self.tr("after"), stage.after, what, "final", 2.5),
        ]
        legend = legend_of(*lines)
        bands, notes = [], []
        last = float(max(stage.total, 2)) + 0.5
        if stage.kept < stage.total:
            cut = stage.kept + 0.5
            bands.append(Band(cut, last, "masked"))
            edge = np.array([cut, cut]), np.array([0.0, top])
            lines.append(Line("", *edge, Paint("formula"), 2.0, read=False))
            words = self.tr("{0} kept").format(f"{stage.kept:,}")
            notes.append(Note(cut, top / 2, words, "text"))
        if what == "cumulative":
            lines += self._levels(stage, last)
            if stage.u is not None and stage.landed is not None:
                words = f"u = {stage.u:.4f}"
                notes.append(Note(stage.landed + 1.0, stage.u, words, "text"))
        return Figure(
            x=x, y=y, places=stage.before.rank.astype(np.float64), x_range=(0.93, last),
            y_range=(0.0, top), lines=lines, bands=bands, notes=notes, legend=legend,
        )  # fmt: skip

    def _line(self, name: str, curve: Curve, what: str, colour: str, width: float) -> Line:
        values = np.asarray(getattr(curve, what), np.float64)
        single = len(values) == 1
        return Line(
            name, curve.rank.astype(np.float64), values, Paint(colour),
            0.0 if single else width, "round" if single else "",
        )  # fmt: skip

    def _levels(self, stage: OneStage, last: float) -> Iterator[Line]:
        """What top-p asks for, and where the number that was drawn falls."""
        if stage.level is not None:
            across = np.array([1.0, last]), np.full(2, stage.level)
            yield Line("", *across, Paint("formula"), 1.0, dashed=True, read=False)
        if stage.u is not None and stage.landed is not None:
            rank = stage.landed + 1.0
            x, y = np.array([1.0, rank, rank]), np.array([stage.u, stage.u, 0.0])
            yield Line("", x, y, Paint("text"), 1.5, read=False)
            point = np.array([rank]), np.array([stage.u])
            yield Line("u", *point, Paint("text"), 0.0, "round")

    def _tip(self, place: int) -> str:
        stage = self._stage
        assert stage is not None
        rank = int(stage.before.rank[place])
        at = int(np.searchsorted(stage.after.rank, rank))
        known = at < len(stage.after.rank) and int(stage.after.rank[at]) == rank
        before = self.tr("Rank {0}: {1}; top {0} together: {2}").format(
            f"{rank:,}", exact_percent(float(stage.before.p[place])),
            exact_percent(float(stage.before.cumulative[place])),
        )  # fmt: skip
        if rank > stage.kept:
            return before + "\n" + self.tr("cut by this stage")
        if not known:
            return before
        after = self.tr("after this stage: {0}; together: {1}").format(
            exact_percent(float(stage.after.p[at])),
            exact_percent(float(stage.after.cumulative[at])),
        )
        return f"{before}\n{after}"

    def table(self) -> Iterator[Sequence[object]]:
        """The points of both curves."""
        yield "curve", "rank", "probability", "cumulative"
        if self._stage is None:
            return
        for name, curve in (("before", self._stage.before), ("after", self._stage.after)):
            columns = (curve.rank.tolist(), curve.p.tolist(), curve.cumulative.tolist())
            for rank, p, cumulative in zip(*columns, strict=True):
                yield name, rank, p, cumulative


def _share(share: float) -> str:
    return round_percent(share) if share >= 1e-6 or share == 0 else exact_percent(share)
