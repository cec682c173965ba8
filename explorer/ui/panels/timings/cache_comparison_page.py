"""The cache experiment: the same generation with the cache and without it, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtCore import QT_TRANSLATE_NOOP
from PySide6.QtWidgets import QLayout, QProgressBar, QPushButton, QVBoxLayout

from explorer.figures.cost.timing import ms_text
from explorer.session.session import Session
from explorer.session.state import CacheRuns, State
from explorer.ui.canvases.charts.cache_comparison_plot import BothWays, Ways
from explorer.ui.canvases.charts.legend import Entry, Legend
from explorer.ui.kit import forms
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.look.theme import Theme
from explorer.ui.panel.paged_panel import Page
from explorer.ui.panel.panel import View

_MOST_TOKENS = 512


class BothWaysPage(Page):
    """Run on request: it takes as many passes again as it makes tokens, twice."""

    TITLE = QT_TRANSLATE_NOOP("BothWaysPage", "Cache on and off")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._runs: CacheRuns | None = None
        self._asked = False
        self._tokens = forms.spin(self.tr("New tokens"), 1, _MOST_TOKENS, 20)
        self._run = QPushButton(self.tr("Run both ways"))
        self._run.setToolTip(
            self.tr("Generate from the prompt with the cache and without it, pass by pass in turn")
        )
        self._run.clicked.connect(self.run)
        self._progress = QProgressBar()
        self._progress.setTextVisible(False)
        self._progress.setRange(0, 1000)
        self._progress.setMaximumWidth(160)
        self._progress.setMinimumWidth(24)
        self._progress.setAccessibleName(self.tr("Progress"))
        self._cancel = QPushButton(self.tr("Cancel"))
        self._cancel.clicked.connect(session.cancel)
        for part in (self._progress, self._cancel):
            forms.keep_place(part)
        controls = forms.row(
            ("", self._tokens), (self.tr("tokens"), None), ("", self._run),
            ("", self._progress), ("", self._cancel),
        )  # fmt: skip
        self._words = ElidedLabel()
        self._legend = Legend(theme)
        self._legend.set_entries(
            [Entry(self.tr("no cache"), "recompute"), Entry(self.tr("cache"), "decode")]
        )
        self.chart = BothWays(theme, self.tr("step"), ("recompute", "decode"), self._tip)
        self.chart.setAccessibleName(self.tr("Positions and time per step, both ways"))
        self.chart.hovered.connect(self._read_out)
        self._lay_out(controls)

    def _lay_out(self, controls: QLayout) -> None:
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(1)
        controls.addWidget(self._legend)
        rows.addLayout(controls)
        rows.addWidget(self._words)
        rows.addWidget(self.chart, 1)
        self._show_progress(False)

    def run(self) -> None:
        """Ask for it, with the number of tokens that is set."""
        self._session.measure_cache(self._tokens.value())
        # Only now: what had the engine before may have ended by this.
        self._asked = self._session.state.status.activity == "running"
        self._show_progress(self._asked)

    # -- showing

    def needs(self, old: State, new: State) -> bool:
        return (
            self._asked  # it may end before its beginning was ever drawn
            or super().needs(old, new)
            or old.cache_runs is not new.cache_runs
            or old.status != new.status
            or old.card is not new.card
        )

    def show_state(self, new: State) -> str | None:
        if new.card is None and new.trace is None:
            self._runs = None
            return self.tr("Open a model and type a prompt: the cache can be tried out here.")
        self._asked = self._asked and new.status.activity == "running"
        self._show_progress(self._asked)
        if new.status.fraction is not None:
            self._progress.setValue(round(new.status.fraction * 1000))
        self._run.setEnabled(new.card is not None and new.status.activity in ("idle", "checking"))
        runs = new.cache_runs
        fits = runs is not None and (new.trace is None or runs.fits(new.trace))
        if runs is not self._runs or not fits:
            self._runs = runs if fits else None
            self._show_runs()
        return None

    def _show_progress(self, running: bool) -> None:
        for part in (self._progress, self._cancel):
            part.setVisible(running)

    def _show_runs(self) -> None:
        runs = self._runs
        self._legend.setVisible(runs is not None)
        if runs is None:
            self.chart.set_plots()
        else:
            self.chart.set_plots(
                Ways(self.tr("positions"), runs.uncached_positions, runs.cached_positions,
                     lambda count: f"{count:,.0f}"),
                Ways(self.tr("time"), runs.uncached_ms, runs.cached_ms, ms_text),
            )  # fmt: skip
        self._words.setText(self._summary())

    def _summary(self) -> str:
        runs = self._runs
        if runs is None:
            return self.tr("The prompt on screen, continued both ways: the tokens are the same, "
                           "the work is not.")  # fmt: skip
        text = self.tr("{0} positions without a cache, {1} with it; {2} against {3}").format(
            f"{sum(runs.uncached_positions):,}", f"{sum(runs.cached_positions):,}",
            ms_text(sum(runs.uncached_ms)), ms_text(sum(runs.cached_ms)),
        )  # fmt: skip
        if runs.same_tokens:
            return f"{text}; {self.tr('the same tokens')}"
        return f"{text}; {self.tr('the two ways chose different tokens')}"

    def _tip(self, step: int) -> str:
        assert self._runs is not None
        return self.tr("Step {0}: {1} positions in {2} without a cache, {3} in {4} with it").format(
            step,
            f"{self._runs.uncached_positions[step]:,}", ms_text(self._runs.uncached_ms[step]),
            f"{self._runs.cached_positions[step]:,}", ms_text(self._runs.cached_ms[step]),
        )  # fmt: skip

    def _read_out(self, words: str) -> None:
        self._words.setText(words or self._summary())

    def set_theme(self, theme: Theme) -> None:
        self.chart.set_theme(theme)
        self._legend.set_theme(theme)

    def views(self) -> Mapping[str, View]:
        if self._runs is None:
            return {}
        return {self.tr("Cache on and off"): View(self.chart, self._table)}

    def _table(self) -> Iterator[Sequence[object]]:
        assert self._runs is not None
        runs = self._runs
        yield "step", "positions_uncached", "positions_cached", "ms_uncached", "ms_cached"
        yield from zip(
            range(len(runs.cached_ms)), runs.uncached_positions, runs.cached_positions,
            runs.uncached_ms, runs.cached_ms, strict=True,
        )  # fmt: skip
