"""One text under two context policies: surprisal over the text, what each cache holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QPushButton

from explorer.figures.cost import policies as figures
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import ComparePolicies, PolicyComparison
from explorer.trace.interventions.context_policy import SINKS, ContextPolicy
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Figure, Line, Paint, legend_of
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look import themed
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.paged_panel import Page
from explorer.ui.panel.panel import View
from explorer.wording import in_unit, information, percent, short_bytes
from explorer.wording import unit as unit_of_information

_MOST = 1_000_000
_NAMES = {
    "refuse": QT_TRANSLATE_NOOP("PoliciesPage", "all tokens"),
    "window": QT_TRANSLATE_NOOP("PoliciesPage", "window"),
    "sinks": QT_TRANSLATE_NOOP("PoliciesPage", "sinks + window"),
}
_COLOURS = ("prefill", "recompute")


class PoliciesPage(Page):
    """Run on request: two more passes over the text of the run."""

    ID = "policies"
    TITLE = QT_TRANSLATE_NOOP("PoliciesPage", "Context policies")
    NEEDS = (*Page.NEEDS, "measured", "status", "card")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._found: PolicyComparison | None = None
        self.choices_of = (self._choice(0), self._choice(1))
        self.tokens = forms.spin(self.tr("Tokens that are kept, sinks included"), 2, _MOST, 128)
        self.sinks = forms.spin(self.tr("Sinks: first tokens that are kept"), 1, 1024, SINKS)
        self.run_button = QPushButton(self.tr("Compare"))
        self.run_button.setToolTip(
            self.tr("Read the text of the run under both policies, each with a cache of its own")
        )
        self.run_button.clicked.connect(self.run)
        self._narrow()
        row = forms.row(
            ("", self.choices_of[0]), (self.tr("and"), self.choices_of[1]),
            (self.tr("kept"), self.tokens), (self.tr("sinks"), self.sinks), ("", self.run_button),
        )  # fmt: skip
        self._words = ResultLabel()
        self.chart = Chart(theme, self._tip)
        self.chart.setAccessibleName(self.tr("Surprisal over the text under both policies"))
        boxes.column(self, row, self._words, (self.chart, 1), gap=1)

    def _choice(self, place: int) -> ComboBox:
        box = ComboBox()
        for name, words in _NAMES.items():
            box.addItem(self.tr(words), name)
        box.setCurrentIndex(place)
        box.setAccessibleName(self.tr("Policy {0}").format(place + 1))
        return box

    def _narrow(self) -> None:
        for spin, wide in ((self.tokens, 80), (self.sinks, 58)):
            spin.setFixedWidth(round(wide * unit(self)))

    def set_theme(self, theme: Theme) -> None:
        self._narrow()
        themed.pass_on(self, theme)
        self._draw()  # the unit may be another one, too

    def run(self) -> None:
        """Ask for it, with the policies that are set."""
        self._session.measure(
            ComparePolicies, policies=tuple(self._policy(box) for box in self.choices_of)
        )

    def _policy(self, box: ComboBox) -> ContextPolicy:
        name, kept = box.currentData(), self.tokens.value()
        if name == "refuse":
            return ContextPolicy()
        sinks = min(self.sinks.value(), kept - 1) if name == "sinks" else 0
        return ContextPolicy(name=name, tokens=kept, sinks=sinks)

    # -- showing

    def show_state(self, new: State) -> str | None:
        if new.trace is None or not new.trace.steps:
            self._found = None
            return self.tr("Type a long prompt and press Step (Space) to compare context policies.")
        self.run_button.setEnabled(new.model_is_free and new.model_of_run)
        found = new.result(PolicyComparison)
        if found is not self._found or found is None:
            self._found = found
            self._draw()
        if found is None:
            self._words.setText(new.refusal(ComparePolicies) or self._summary())
        return None

    def _draw(self) -> None:
        found = self._found
        self._words.setText(self._summary())
        if found is None:
            self.chart.show_figure(None)
            return
        places = np.array(found.slots, np.float64)
        scale = in_unit(1.0)
        lines = [
            Line(
                self._name(side.policy),
                places,
                figures.smoothed(side.nats) * scale,
                Paint(_COLOURS[place]),
                dashed=bool(place),
            )
            for place, side in enumerate(found.sides)
        ]
        top = max(float(np.nan_to_num(line.y).max(initial=0.0)) for line in lines) or 1.0
        name = self.tr("surprisal, mean of {0} tokens").format(figures.MEAN_OVER)
        self.chart.show_figure(
            Figure(
                x=Axis(self.tr("position"), whole=True),
                y=Axis(name, lambda value: f"{value:g} {unit_of_information()}"),
                places=places,
                x_range=(float(places[0]) - 0.5, float(places[-1]) + 0.5),
                y_range=(0.0, top * 1.08),
                lines=lines,
                legend=legend_of(*lines),
            )
        )

    def _name(self, policy: ContextPolicy) -> str:
        if policy.name == "sinks":
            return self.tr("first {0} + last {1}").format(policy.sinks, f"{policy.last:,}")
        if policy.name == "window":
            return self.tr("last {0}").format(f"{policy.last:,}")
        return self.tr("all tokens")

    def _summary(self) -> str:
        found = self._found
        if found is None:
            return self.tr("Reads the text of the run twice, and compares surprisal and cache.")
        begin = figures.begin(found)
        said = []
        for place, side in enumerate(found.sides):
            mean = found.mean(place, begin)
            lost = found.infinite(place, begin)
            parts = [self._name(side.policy), "" if mean is None else information(mean)]
            if lost:
                without = self.tr("without {0} tokens of probability 0")
                if lost == 1:
                    without = self.tr("without 1 token of probability 0")
                parts.append(without.format(lost))
            if side.cache_bytes:
                parts.append(short_bytes(side.cache_bytes))
            if side.first_attention is not None:
                first = self.tr("attention to the first {1} tokens {0}")
                if found.first_keys == 1:
                    first = self.tr("attention to the first token {0}")
                parts.append(first.format(percent(side.first_attention), found.first_keys))
            said.append(", ".join(filter(None, parts)))
        words = self.tr("Mean from position {0} on: {1}") if begin else self.tr("Mean: {1}")
        return words.format(begin, "; ".join(said))

    def _tip(self, place: int) -> str:
        found = self._found
        assert found is not None
        said = [
            f"{self._name(side.policy)} {information(side.nats[place])}" for side in found.sides
        ]
        return self.tr("Position {0}: {1}").format(found.slots[place], ", ".join(said))

    def views(self) -> Mapping[str, View]:
        if self._found is None:
            return {}
        return {self.tr("Surprisal under two context policies"): View(self.chart, self._table)}

    def _table(self) -> Iterator[Sequence[object]]:
        assert self._found is not None
        yield "token", *(f"nats_{side.policy.name}_{i}" for i, side in enumerate(self._found.sides))
        yield from zip(self._found.slots, *(side.nats for side in self._found.sides), strict=True)
