"""The cache experiment: the same generation with the cache and without it, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QProgressBar, QPushButton

from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import CacheComparison, CacheExperiment
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Dots, Figure, Line, Note, Paint, legend_of
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look import themed
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.chart_pair import ChartPair, ChartPairPage
from explorer.ui.panel.panel import View
from explorer.wording import ms_text

_MOST_TOKENS = 512


class CacheComparisonPage(ChartPairPage):
    """Run on request: it takes as many passes again as it makes tokens, twice."""

    ID = "cache-comparison"
    FORMER_ID = "BothWaysPage"
    TITLE = QT_TRANSLATE_NOOP("CacheComparisonPage", "With and without cache")
    NEEDS = (*ChartPairPage.NEEDS, "measured", "status", "card")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._runs: CacheComparison | None = None
        self._asked = False
        self._tokens = forms.spin(self.tr("New tokens"), 1, _MOST_TOKENS, 20)
        self._tokens.setFixedWidth(round(62 * unit(self)))
        self.run_button = QPushButton(self.tr("Compare"))
        self.run_button.setToolTip(
            self.tr("Generate from the prompt with and without the cache, alternating pass by pass")
        )
        self.run_button.clicked.connect(self.run)
        self.progress = QProgressBar()
        self.progress.setTextVisible(False)
        self.progress.setRange(0, 1000)
        self.progress.setMaximumWidth(round(60 * unit(self)))
        self.progress.setMinimumWidth(24)
        self.progress.setAccessibleName(self.tr("Progress"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        self.cancel_button.clicked.connect(session.cancel)
        for part in (self.progress, self.cancel_button):
            forms.keep_place(part)
        controls = forms.row(
            ("", self._tokens), (self.tr("tokens"), None), ("", self.run_button),
            ("", self.progress), ("", self.cancel_button),
        )  # fmt: skip
        self.charts = ChartPair(
            Chart(theme, self._tip),
            Chart(theme, self._tip),
            (self.tr("Positions by token"), self.tr("Time by token")),
        )
        self.charts.first.setAccessibleName(self.tr("Positions per token, with and without cache"))
        self.charts.second.setAccessibleName(self.tr("Time per token, with and without cache"))
        boxes.column(self, controls, (self.charts, 1), gap=1)
        self._show_progress(False)

    def set_theme(self, theme: Theme) -> None:
        themed.pass_on(self, theme)
        self._tokens.setFixedWidth(round(62 * unit(self)))
        self.progress.setMaximumWidth(round(60 * unit(self)))

    def run(self) -> None:
        """Ask for it, with the number of tokens that is set."""
        self._session.measure(CacheExperiment, tokens=self._tokens.value())
        # Only now: what had the engine before may have ended by this.
        self._asked = self._session.state.status.activity == "running"
        self._show_progress(self._asked)

    # -- showing

    def needs(self, old: State | None, new: State) -> bool:
        return self._asked or super().needs(old, new)  # it may end before it was ever drawn

    def show_state(self, new: State) -> str | None:
        if new.card is None and new.trace is None:
            self._runs = None
            return self.tr(
                "Open a model and type a prompt to compare runs with and without the cache."
            )
        self._asked = self._asked and new.status.activity == "running"
        self._show_progress(self._asked)
        if new.status.fraction is not None:
            self.progress.setValue(round(new.status.fraction * 1000))
        self.run_button.setEnabled(new.model_is_free)
        found = new.measured_of(CacheComparison)
        fits = found is not None and (new.trace is None or found.fits_prompt(new.trace))
        runs = found.result if found is not None and fits else None
        if runs is not self._runs or runs is None:
            self._runs = runs
            self._show_runs()
        return None

    def _show_progress(self, running: bool) -> None:
        for part in (self.progress, self.cancel_button):
            part.setVisible(running)

    def _show_runs(self) -> None:
        runs = self._runs
        if runs is None:
            self.charts.first.show_figure(None)
            self.charts.second.show_figure(None)
        else:
            positions = self.tr("positions"), plain
            time = self.tr("time"), ms_text
            self.charts.first.show_figure(
                self._figure(*positions, runs.uncached.positions, runs.cached.positions)
            )
            self.charts.second.show_figure(self._figure(*time, runs.uncached.ms, runs.cached.ms))
        self.charts.set_words(self._summary())

    def _figure(
        self, name: str, words: Callable[[float], str],
        uncached: Sequence[float], cached: Sequence[float],
    ) -> Figure:  # fmt: skip
        """One generation with and without the cache: squares and dots."""
        steps = np.arange(1, len(cached) + 1, dtype=np.float64)
        top = max(*uncached, *cached, 0.0) or 1.0
        ways: tuple[tuple[str, Sequence[float], str, Dots], ...] = (
            (self.tr("no cache"), uncached, "recompute", "square"),
            (self.tr("cache"), cached, "decode", "round"),
        )
        lines = [
            Line(way, steps, np.array(values, np.float64), Paint(colour), dots=dots)
            for way, values, colour, dots in ways
        ]
        return Figure(
            x=Axis(self.tr("token"), whole=True),
            y=Axis(name, words, switch=True, least=min(*filter(None, (*uncached, *cached)), top)),
            places=steps,
            x_range=(0.5, len(steps) + 0.5),
            y_range=(0.0, top * 1.08),
            lines=lines,
            notes=[
                Note(float(steps[-1]), float(line.y[-1]), line.name, line.paint.colour, left=True)
                for line in lines
            ],
            legend=legend_of(*lines),
        )

    def _summary(self) -> str:
        runs = self._runs
        if runs is None:
            return self.tr(
                "Generates the same tokens with and without the cache, and compares the work."
            )
        text = self.tr(
            "Positions: {0} without a cache, {1} with it. Time: {2} without, {3} with"
        ).format(
            f"{sum(runs.uncached.positions):,}",
            f"{sum(runs.cached.positions):,}",
            ms_text(sum(runs.uncached.ms)),
            ms_text(sum(runs.cached.ms)),
        )
        same = self.tr("the same tokens") if runs.same_tokens else self.tr("different tokens")
        return f"{text}; {same}"

    def _tip(self, step: int) -> str:
        assert self._runs is not None
        text = self.tr("Token {0}: {1} positions in {2} without a cache, {3} in {4} with it")
        return text.format(
            step + 1,
            f"{self._runs.uncached.positions[step]:,}",
            ms_text(self._runs.uncached.ms[step]),
            f"{self._runs.cached.positions[step]:,}",
            ms_text(self._runs.cached.ms[step]),
        )

    def views(self) -> Mapping[str, View]:
        if self._runs is None:
            return {}
        return {
            self.tr("Positions, with and without cache"): View(self.charts.first, self._table),
            self.tr("Time, with and without cache"): View(self.charts.second, self._table),
        }

    def _table(self) -> Iterator[Sequence[object]]:
        assert self._runs is not None
        runs = self._runs
        yield "step", "positions_uncached", "positions_cached", "ms_uncached", "ms_cached"
        yield from zip(
            range(len(runs.cached.ms)), runs.uncached.positions, runs.cached.positions,
            runs.uncached.ms, runs.cached.ms, strict=True,
        )  # fmt: skip
