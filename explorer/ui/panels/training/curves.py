"""The curves of one run or two over their updates: losses, and what generation gets right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.training import curves
from explorer.figures.training.curves import Curves
from explorer.trace.training.run import TrainingLab, TrainingRun
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Figure, LegendEntry, Line, Paint, legend_of
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair
from explorer.ui.panel.panel import View
from explorer.ui.panels.training import words
from explorer.wording import in_unit, round_percent, unit

_COLOURS = ("decode", "recompute")  # of the first run and the second
_LEAST_TOP = 0.5  # nats: a loss of nearly nothing is drawn as that


class TrainingCurves(QWidget):
    """A click on either chart looks at that update."""

    picked = Signal(int)  # updates

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lab = TrainingLab()
        self._curves: dict[int, tuple[TrainingRun, Curves]] = {}  # by place, of what was drawn
        self._places = np.zeros(0)
        self.loss = Chart(theme, self._tip)
        self.accuracy = Chart(theme, self._tip)
        names = self.tr("Loss"), self.tr("Right in generation")
        for chart, name in zip((self.loss, self.accuracy), names, strict=True):
            chart.setAccessibleName(name)
            chart.picked.connect(self._pick)
        self.pair = ChartPair(self.loss, self.accuracy, names, over=True)
        boxes.column(self, self.pair)

    def show_lab(self, lab: TrainingLab) -> None:
        """Draw the runs as far as they are."""
        self._lab = lab
        longest = max(lab.runs, key=lambda run: run.step)
        self._places = self._of(lab.runs.index(longest), longest).steps
        line = words.pace(longest, lab.at)
        self.pair.set_words(line)
        self.loss.show_made(lambda: self._losses(lab))
        self.accuracy.show_made(lambda: self._accuracies(lab))

    def redraw(self) -> None:
        """The unit of a loss may be another one."""
        if self._lab.runs:
            self.show_lab(self._lab)

    def _of(self, place: int, run: TrainingRun) -> Curves:
        known = self._curves.get(place)
        if known is None or known[0].steps is not run.steps:
            known = self._curves[place] = run, curves.of(run)
        return known[1]

    # -- figures

    def _losses(self, lab: TrainingLab) -> Figure:
        scale, highest = in_unit(1.0), _LEAST_TOP
        trained, held_out = [], []
        for place, run in enumerate(lab.runs):
            found, colour = self._of(place, run), _COLOURS[place]
            for values in (found.loss, found.held_out):
                highest = max(highest, float(np.nanmax(values, initial=0)))
            name = self.tr("training") if len(lab.runs) == 1 else words.name(run)
            loss, looked = found.loss * scale, found.held_out * scale
            trained.append(Line(name, found.steps, loss, Paint(colour, 0.7), width=1.2))
            held_out.append(
                Line(self.tr("held out"), found.measured, looked, Paint(colour), 0, dots="ring")
            )
        legend = legend_of(*trained, held_out[0])
        lines = [*trained, *held_out]
        lowest = next((run.lowest_loss for run in lab.runs if run.lowest_loss is not None), None)
        if lowest is not None:
            across, level = np.array([0.0, _most(lab)]), np.full(2, lowest * scale)
            name = self.tr("lowest possible")
            lines.append(Line(name, across, level, Paint("formula"), dashed=True))
            legend += legend_of(lines[-1])
        up = Axis(self.tr("loss"), _loss_words, switch=True, least=1e-4)
        return self._figure(lab, lines, up, (0.0, highest * scale * 1.05), legend)

    def _accuracies(self, lab: TrainingLab) -> Figure:
        lines = []
        for place, run in enumerate(lab.runs):
            found = self._of(place, run)
            lines.append(
                Line(words.name(run), found.measured, found.accuracy, Paint(_COLOURS[place]),
                     dots="round")
            )  # fmt: skip
        up = Axis(self.tr("right in generation"), round_percent)
        legend = legend_of(*lines) if len(lines) > 1 else []
        return self._figure(lab, lines, up, (0.0, 1.05), legend)

    def _figure(
        self,
        lab: TrainingLab,
        lines: Sequence[Line],
        up: Axis,
        ends: tuple[float, float],
        legend: Sequence[LegendEntry],
    ) -> Figure:
        most = _most(lab)
        at, wide = lab.at, most / 300
        return Figure(
            x=Axis(self.tr("updates"), whole=True),
            y=up,
            places=self._places,
            x_range=(0.0, most),
            y_range=ends,
            lines=lines,
            legend=legend,
            marked=None if at is None else (at - wide, at + wide),
        )

    # -- reading

    def _tip(self, place: int) -> str:
        at = int(self._places[place])
        lines = [self.tr("Update {0}").format(f"{at:,}")]
        for run in self._lab.runs:
            said = words.losses(run, at)
            lines.append(said if len(self._lab.runs) == 1 else f"{words.name(run)}: {said}")
        return "\n".join(lines)

    def _pick(self, place: int) -> None:
        self.picked.emit(int(self._places[place]))

    # -- export

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Loss"): View(self.loss, self._table),
            self.tr("Right in generation"): View(self.accuracy, self._table),
        }

    def _table(self) -> Iterator[Sequence[object]]:
        yield ("run", "update", "loss_nats", "gradient_norm", "tokens_per_second", "seconds",
               "held_out_loss_nats", "right_in_generation")  # fmt: skip
        for run in self._lab.runs:
            for one in run.steps:
                yield (words.name(run), one.step, one.loss, one.gradient_norm,
                       one.tokens_per_second, one.seconds, one.held_out_loss,
                       one.copy_accuracy)  # fmt: skip


def _most(lab: TrainingLab) -> float:
    return float(max(run.settings.steps for run in lab.runs))


def _loss_words(value: float) -> str:
    return f"{value:g} {unit()}"
