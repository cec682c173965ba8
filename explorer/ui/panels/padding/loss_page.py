"""The loss of a padded batch: every token in a grid, or a line a prompt by position."""

from __future__ import annotations

import numpy as np
from PySide6.QtWidgets import QToolButton

from explorer.figures.batch import loss as losses
from explorer.figures.batch.loss import RowLoss
from explorer.trace.batch import BatchResult
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Dots, Figure, Line, Paint, legend_of
from explorer.ui.kit import boxes
from explorer.ui.look.theme import Theme
from explorer.ui.panels.padding.pages import GridPage

_COLOURS = ("prefill", "decode", "recompute", "raw", "muted")
_DOTS: tuple[Dots, ...] = ("round", "square", "ring")


class LossPage(GridPage):
    """Prompts differ by colour and by dots; the mean of all is the thick line."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme,
            self.tr("The loss of this batch"),
            self.tr("Surprisal of every token, one block per prompt"),
        )
        self._rows: tuple[RowLoss, ...] = ()
        self._slots: list[int] = []
        self._words = ""
        self.chart = Chart(theme, self._tip)
        self.chart.setAccessibleName(self.tr("Loss by position, one line per prompt"))
        self.chart.hovered.connect(lambda words: self.note.setText(words or self._words))
        self.by_position = QToolButton()
        self.by_position.setText(self.tr("By position"))
        self.by_position.setToolTip(self.tr("Show one line per prompt instead of the token grid"))
        self.by_position.setCheckable(True)
        self.by_position.toggled.connect(self._turn)
        self.column.removeWidget(self.note)
        below = boxes.line(None, (self.note, 1), self.by_position)
        self.column.addWidget(self.chart, 1)
        self.column.addLayout(below)

    def show_result(
        self, result: BatchResult | None, words: str = "", *, pads: bool = False,
        shifted: bool = True,
    ) -> None:  # fmt: skip
        """Draw the loss of a batch, as it is or wrong on purpose; `words` explain it."""
        self._rows = ()
        if result is not None and result.request.loss:
            self._rows = losses.by_position(result, pads=pads, shifted=shifted)
        self._slots = sorted({slot for row in self._rows for slot in row.slots})
        self._words = words
        self.note.setText(words)
        self.chart.show_figure(self._figure() if self._slots else None)
        self._turn()

    def _figure(self) -> Figure:
        lines = [
            Line(
                self.tr("prompt {0}").format(place + 1), np.array(row.slots, np.float64),
                np.array(row.nats), Paint(_COLOURS[place % len(_COLOURS)]), 1.2,
                _DOTS[place % len(_DOTS)],
            )
            for place, row in enumerate(self._rows)
            if row.slots
        ]  # fmt: skip
        if len(lines) > 1:
            mean = losses.mean_by_position(self._rows)
            slots, nats = np.array(mean.slots, np.float64), np.array(mean.nats)
            lines.append(Line(self.tr("mean"), slots, nats, Paint("text"), 2.5))
        values = np.concatenate([line.y for line in lines])
        top = float(values[np.isfinite(values)].max(initial=0.0)) or 1.0
        return Figure(
            x=Axis(self.tr("position of the target"), whole=True),
            y=Axis(self.tr("surprisal"), "{:g} nats".format),
            places=np.array(self._slots, np.float64),
            x_range=(self._slots[0] - 0.5, self._slots[-1] + 0.5),
            y_range=(0.0, top * 1.06),
            lines=lines,
            legend=legend_of(*lines),
        )

    def _tip(self, place: int) -> str:
        slot = self._slots[place]
        parts = []
        for number, row in enumerate(self._rows, 1):
            if slot in row.slots:
                nats = row.nats[row.slots.index(slot)]
                parts.append(self.tr("prompt {0}: {1} nats").format(number, f"{nats:.3f}"))
        return self.tr("Position {0}: {1}").format(slot, ", ".join(parts))

    def _turn(self) -> None:
        """To the chart or back to the grid."""
        some = bool(self._slots)
        chart = some and self.by_position.isChecked()
        self.by_position.setVisible(some)
        self.chart.setVisible(chart)
        self.grid.setVisible(not chart)
