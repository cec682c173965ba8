"""Whole steps on the window's clock: the pass, capture, picking, handing over and painting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from explorer.figures.cost import timing as figures
from explorer.figures.cost.timing import TimedPass, TimingFigure, ms_text
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.canvases.charts.column_parts import StripColumns, StripPart
from explorer.ui.canvases.charts.columns import ColumnStrip
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import View
from explorer.ui.panel.twin_charts import TwinCharts, TwinPage
from explorer.ui.panels.timings.passes_page import cap
from explorer.wording import percent

_PARTS = ("", "rest", "muted", "raw", "final")  # colours, in the order of `TimedPass.course`


class StepsPage(TwinPage):
    """What a watched step costs beside the model's own pass; the parts add up to the whole."""

    ID = "steps"
    FORMER_ID = "StepsPage"
    TITLE = QT_TRANSLATE_NOOP("StepsPage", "Per step")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._figure: TimingFigure | None = None
        self._index = 0
        self._names = (
            self.tr("pass"), self.tr("capture"), self.tr("sampling"), self.tr("transfer"),
            self.tr("display"),
        )  # fmt: skip
        steps = ColumnStrip(theme, self.tr("token"), ms_text, self._step_tip)
        steps.setAccessibleName(
            self.tr("Time of each step, from your command to the finished display")
        )
        steps.picked.connect(lambda step: session.select(step=step))
        parts = ColumnStrip(theme, self.tr("parts of the step"), ms_text, self._part_tip)
        parts.setAccessibleName(self.tr("Parts of the selected step"))
        tip = self.tr("From your command until everything is displayed")
        self.set_charts(TwinCharts(theme, steps, parts, tip))

    def needs(self, old: State, new: State) -> bool:
        return super().needs(old, new) or old.painted != new.painted

    def show_state(self, new: State) -> str | None:
        index = new.step_index
        if new.trace is None or index is None:
            self._figure = None
            return ""
        known = () if self._figure is None else self._figure.passes
        figure = figures.chart(new.trace, index, self._session.stopwatch.lap, known)
        self._figure, self._index = figure, index
        self.charts.first.set_columns(_step_columns(figure), selected=index)
        one = figure.passes[index]
        self.charts.second.set_columns(_part_columns(one, self._names))
        self.charts.set_words(self._headline(one), self._line(one), self._legend(one.phase))
        return None

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Per step"): View(self.charts.first, self._table),
            self.tr("Parts of the step"): View(self.charts.second, self._part_table),
        }

    def _headline(self, one: TimedPass) -> str:
        if one.step_ms is None:
            return self.tr("Token {0}: {1}").format(one.index + 1, self._missing(one))
        return self.tr("Token {0}: {1} from command to display").format(
            one.index + 1, ms_text(one.step_ms)
        )

    def _missing(self, one: TimedPass) -> str:
        """Why the whole of a step is not known."""
        if one.lap is None:
            return self.tr("display not measured (it did not run in this window)")
        return self.tr("display not measured (the next token came first)")

    def _line(self, one: TimedPass) -> str:
        if one.step_ms is None:
            return self._words(one)
        share = one.whole_ms / one.step_ms
        return self.tr("pass, capture and display: {0} of it").format(percent(share))

    def _words(self, one: TimedPass) -> str:
        """Its parts, with figures."""
        pairs = zip(self._names, one.course, strict=True)
        return ", ".join(f"{name} {ms_text(ms)}" for name, ms in pairs if ms is not None)

    def _step_tip(self, index: int) -> str:
        assert self._figure is not None
        one = self._figure.passes[index]
        return f"{self._headline(one)}\n{self._words(one)}"

    def _part_tip(self, index: int) -> str:
        assert self._figure is not None
        ms = self._figure.passes[self._index].course[index]
        figure = self.tr("not measured") if ms is None else ms_text(ms)
        return f"{self._names[index]}: {figure}"

    def _legend(self, phase: str) -> list[LegendEntry]:
        colours = (phase, *_PARTS[1:])
        return [
            LegendEntry(name, colour) for name, colour in zip(self._names, colours, strict=True)
        ]

    def _table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "step", "pass_ms", "capture_ms", "pick_ms", "hand_over_ms", "display_ms", "step_ms"
        for one in self._figure.passes:
            figures_of = (*one.course, one.step_ms)
            yield one.index, *("" if ms is None else ms for ms in figures_of)

    def _part_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "part", "ms"
        for name, ms in zip(self._names, self._figure.passes[self._index].course, strict=True):
            yield name, "" if ms is None else ms


def _step_columns(figure: TimingFigure) -> StripColumns:
    passes = figure.passes
    table = np.array([[ms or 0.0 for ms in p.course] for p in passes], np.float64)
    values = table.sum(axis=1)
    return StripColumns(
        values,
        [p.phase for p in passes],
        parts=tuple(StripPart(table[:, i], colour) for i, colour in enumerate(_PARTS)),
        hollow=frozenset(i for i, p in enumerate(passes) if p.warm_up),
        cap=cap(values),
        names=[str(p.index + 1) for p in passes],
    )


def _part_columns(one: TimedPass, names: Sequence[str]) -> StripColumns:
    values = np.array([ms or 0.0 for ms in one.course])
    return StripColumns(values, (one.phase, *_PARTS[1:]), names=names)
