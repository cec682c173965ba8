"""Attention of all heads of a run on its fixed prompt, at the point that is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from explorer.figures.training import heads
from explorer.figures.training.heads import HABITS, HeadHabit
from explorer.trace.training.job import TrainingPoint
from explorer.trace.training.run import TrainingRun
from explorer.ui.canvases.maps.atlas import AtlasView
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import View
from explorer.ui.panels.training import words

_LINES = 2


class RunMaps(QWidget):
    """A line on what the heads do, over their maps."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._point: TrainingPoint | None = None
        self._run: TrainingRun | None = None
        self._found: tuple[HeadHabit, ...] = ()
        self.title = ResultLabel()
        self.line = SentenceLabel(look="small")
        self.line.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.maps = AtlasView(theme, self._read)
        self.maps.picked.connect(self._pick)
        self.maps.hovered.connect(self._on_hovered)
        boxes.column(self, self.title, self.line, (self.maps, 1), gap=1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._hold_lines()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._hold_lines()

    def _hold_lines(self) -> None:
        """Room for the words that are usual, so that the maps do not jump while it learns."""
        self.line.setMinimumHeight(_LINES * self.line.fontMetrics().lineSpacing())

    def show_run(self, run: TrainingRun, at: int | None, alone: bool) -> None:
        """Draw the last point up to `at` updates."""
        self._run = run
        point = run.point(at)
        if point is not self._point:
            self._point = point
            self._found = () if point is None else heads.strongest(point, run.ids)
            wrong = run.settings.wrong
            self.maps.set_atlas(None if point is None else heads.atlas(point, wrong))
            clear = [(one.layer, one.head) for one in self._found if one.share >= words.CLEAR]
            self.maps.set_changed(dict.fromkeys(clear, "named"))
        if point is None:
            soon = self.tr("The first maps come in a moment.")
            self.maps.set_note("" if run.phase == "lost" else soon)
        self.title.setText(self._title(alone))
        if not alone:
            self.maps.setAccessibleName(
                self.tr("All heads of all layers: {0}").format(words.name(run))
            )
        self._show_line()

    def _title(self, alone: bool) -> str:
        if self._point is None or self._run is None:
            return ""
        where = self.tr("Attention after {0} updates").format(f"{self._point.step:,}")
        return where if alone else f"{words.name(self._run)}: {where[:1].lower()}{where[1:]}"

    def _show_line(self) -> None:
        run = self._run
        self.line.setText("" if run is None else words.heads(self._found, run))

    @property
    def found(self) -> tuple[HeadHabit, ...]:
        """The heads that do each thing most, as they are drawn."""
        return self._found

    def _read(self, layer: int, head: int) -> str:
        """One head: where its attention goes, by its means."""
        point, run = self._point, self._run
        if point is None or run is None or not (layer < point.layers and head < point.heads):
            return ""
        each = [(habit, heads.shares(point.maps, run.ids, habit)[layer, head]) for habit in HABITS]
        known = [HeadHabit(habit, layer, head, float(s)) for habit, s in each if np.isfinite(s)]
        start = self.tr("Layer {0}, head {1}").format(layer, head)
        return f"{start} {'; '.join(words.doing(one, run) for one in known)}"

    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        if cell is None:
            self._show_line()
        else:
            self.line.setText(self._read(*cell))

    def _pick(self, layer: int, head: int) -> None:
        self.maps.set_selected(layer, head)

    def view(self) -> View | None:
        """The maps for export; None while there are none."""
        point, run = self._point, self._run
        if point is None or run is None:
            return None
        about = self.tr("update {0}").format(f"{point.step:,}")
        return View(self.maps, partial(_table, point, run), lambda: lambda: point.maps, about=about)


def _table(point: TrainingPoint, run: TrainingRun) -> Iterator[Sequence[object]]:
    """A row a cell."""
    yield "update", "layer", "head", "query", "query_text", "key", "key_text", "weight"
    for (layer, head, query, key), weight in np.ndenumerate(point.maps):
        yield (point.step, layer, head, query, run.labels[query], key, run.labels[key],
               float(weight))  # fmt: skip
