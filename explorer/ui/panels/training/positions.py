"""Accuracy by position: what the model makes of its own output, and of the right tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PySide6.QtWidgets import QWidget

from explorer.trace.training.run import TrainingLab
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Figure, Line, Paint, legend_of
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import View
from explorer.ui.panels.training import words
from explorer.wording import percent, round_percent

_COLOURS = ("decode", "recompute")  # of the first run and the second


class PositionChart(QWidget):
    """Places of the longest held-out answers, counted from 1."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._lab = TrainingLab()
        self.line = ResultLabel()
        self.chart = Chart(theme, self._tip)
        self.chart.setAccessibleName(self.tr("Right by position"))
        boxes.column(self, self.line, (self.chart, 1), gap=1)

    def show_lab(self, lab: TrainingLab) -> None:
        """Draw what was measured last up to the update that is looked at."""
        self._lab = lab
        self.line.setText("; ".join(words.exposure(run, lab.at, lab) for run in lab.runs))
        self.chart.show_made(self._figure)

    def _figure(self) -> Figure | None:
        lines, most = [], 0
        for place, run in enumerate(self._lab.runs):
            found = run.by_position(self._lab.at)
            if found is None or not found.own:
                continue
            most = max(most, len(found.own))
            x, colour = np.arange(1, len(found.own) + 1, dtype=np.float64), _COLOURS[place]
            start = "" if len(self._lab.runs) == 1 else f"{words.name(run)}: "
            own, forced = self.tr("reads its own output"), self.tr("reads the right tokens")
            lines += [
                Line(start + own, x, np.array(found.own), Paint(colour), dots="round"),
                Line(start + forced, x, np.array(found.forced), Paint(colour, 0.6),
                     dots="ring", dashed=True),
            ]  # fmt: skip
        if not lines:
            return None
        return Figure(
            x=Axis(self.tr("position in the answer"), whole=True),
            y=Axis(self.tr("right"), round_percent),
            places=np.arange(1, most + 1, dtype=np.float64),
            x_range=(0.5, most + 0.5),
            y_range=(0.0, 1.05),
            lines=lines,
            legend=legend_of(*lines),
        )

    def _tip(self, place: int) -> str:
        said = [self.tr("Position {0}").format(place + 1)]
        for run in self._lab.runs:
            found = run.by_position(self._lab.at)
            if found is not None and place < len(found.own):
                text = self.tr("{0} with its own output, {1} with the right tokens").format(
                    percent(found.own[place]), percent(found.forced[place])
                )
                start = "" if len(self._lab.runs) == 1 else f"{words.name(run)}: "
                said.append(start + text)
        return "\n".join(said)

    def view(self) -> View:
        """For export."""
        return View(self.chart, self._table)

    def _table(self) -> Iterator[Sequence[object]]:
        yield "run", "update", "position", "right_own_output", "right_teacher_forcing"
        for run in self._lab.runs:
            found = run.by_position(self._lab.at)
            if found is None:
                continue
            for place, both in enumerate(zip(found.own, found.forced, strict=True), 1):
                yield words.name(run), found.step, place, *both
