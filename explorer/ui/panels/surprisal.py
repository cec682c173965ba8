"""Surprisal over the text: how unexpected each token was to the model, and what it expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isinf

import numpy as np
from PySide6.QtWidgets import QPushButton, QWidget

from explorer.figures.batch.loss import NATS_PER_BIT
from explorer.figures.prediction import surprisal as figures
from explorer.figures.prediction.surprisal import Surprisal
from explorer.figures.text.tokens import visible, written
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import PromptScores, ScorePrompt
from explorer.trace.trace import Trace
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel, View
from explorer.wording import in_unit, information, unit

_COLOURS = {"prompt": "raw", "generated": "decode", "forced": "recompute", "padding": "muted"}


class SurprisalPanel(Panel):
    """A column for each token: -ln of the probability that the model gave to it.

    Generated tokens are known from their own passes; the prompt takes a pass of its own.
    """

    ID = "surprisal"
    TITLE = QT_TRANSLATE_NOOP("SurprisalPanel", "Surprisal")
    TERM = "surprisal"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP("SurprisalPanel", "How unexpected each token was to the model")
    EMPTY = QT_TRANSLATE_NOOP(
        "SurprisalPanel",
        "Type a prompt and press Step (Space) to see the surprisal of each token.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._trace: Trace | None = None
        self._known: tuple[Surprisal | None, ...] = ()
        self._words = ResultLabel()
        self._score = QPushButton(self.tr("Score the prompt"))
        self._score.clicked.connect(lambda: session.measure(ScorePrompt))
        self.chart = ColumnChart(
            theme, Axis(self.tr("token"), self._label, whole=True), self._up(), self._tip
        )
        self.chart.setAccessibleName(self.tr("Surprisal of each token"))
        self.chart.picked.connect(self._pick)
        row = boxes.line(None, (self._words, 1), self._score)
        self.content.setSpacing(2)
        self.content.addLayout(row)
        self.content.addWidget(self.chart, 1)

    def _up(self) -> Axis:
        return Axis(self.tr("surprisal"), _axis_words)

    def show_state(self, old: State | None, new: State) -> None:
        trace = new.trace
        if trace is None or not trace.steps:
            self._trace = None
            self.show_empty()
            return
        free = new.model_is_free
        scores = new.result_of_prompt(PromptScores)
        self._score.setVisible(scores is None and len(trace.prompt) > 1)
        self._score.setEnabled(free and new.model_of_run)
        self._score.setToolTip(
            self.tr("Read the prompt once more to get the probability of each token")
            if new.model_of_run
            else self.tr("Only the model of this run can score its prompt. Open it first.")
        )
        if changed(old, new, *Panel.NEEDS, "measured") or self._trace is not trace:
            self._trace = trace
            self._known = figures.foreseen(trace, scores)
            self._draw(trace, new.step_index)
        self.show_content()

    def _draw(self, trace: Trace, step: int | None) -> None:
        tokens = trace.tokens
        nats = np.array([np.nan if one is None else one.nats for one in self._known])
        drawn = np.where(np.isnan(nats), 0.0, nats)
        expected = [np.nan if k is None else k.entropy_bits * NATS_PER_BIT for k in self._known]
        scale = in_unit(1.0)
        origins = [_COLOURS[token.origin] for token in tokens[: len(drawn)]]
        selected = None if step is None else len(trace.prompt) + step
        self.chart.set_axes(y=self._up())
        self.chart.set_columns(
            Columns(
                drawn * scale,
                origins,
                parts=[Part(self.tr("surprisal"), drawn * scale)],
                marks=np.array(expected) * scale,
                marks_name=self.tr("entropy (expected surprisal)"),
                legend=self._legend(set(origins)),
            ),
            selected=selected,
        )
        self._words.setText(self._summary(trace, nats))

    def _legend(self, used: set[str]) -> list[LegendEntry]:
        names = {
            "raw": self.tr("prompt"), "decode": self.tr("generated"),
            "recompute": self.tr("forced by you"),
        }  # fmt: skip
        entries = [LegendEntry(words, colour) for colour, words in names.items() if colour in used]
        expected = self.tr("entropy (expected surprisal)")
        return [*entries, LegendEntry(expected, "formula", look="line")]

    def _summary(self, trace: Trace, nats: np.ndarray) -> str:
        """Means of the prompt and of what was generated."""
        count = len(trace.prompt)
        parts = []
        for words, some in (
            (self.tr("Generated: mean {0}, perplexity {2} (tokens: {1})"), nats[count:]),
            (self.tr("prompt: mean {0}, perplexity {2} (tokens: {1})"), nats[:count]),
        ):
            known = some[~np.isnan(some)]
            if len(known):
                mean = float(known.mean())
                perplexity = figures.perplexity(mean)
                parts.append(words.format(information(mean), f"{len(known):,}", perplexity))
        if figures.already_seen(trace, 0) and not np.isnan(nats[:count]).all():
            caveat = self.tr("Causal mask off: the model could already see the prompt")
            return f"{caveat}. {'; '.join(parts)}"  # first: what comes last may be cut off
        if len(parts) == 1 and count > 1:
            parts.append(self.tr("prompt not scored yet"))
        return "; ".join(parts)

    def _label(self, place: float) -> str:
        trace = self._trace
        slot = int(place)
        if trace is None or not 0 <= slot < len(trace.tokens):
            return ""
        return visible(trace.tokens[slot].raw)

    def _tip(self, slot: int) -> str:
        trace = self._trace
        assert trace is not None
        name = self.tr("Position {0} {1}").format(slot, written(trace.tokens[slot]))
        words = figures.in_words(trace, slot, self._known[slot]) or self.tr("padding")
        return f"{name}: {words}"

    def _pick(self, slot: int) -> None:
        """The step that a generated token came from."""
        trace = self._trace
        if trace is not None and slot >= len(trace.prompt):
            self.session.select(step=slot - len(trace.prompt))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        if self._trace is not None:  # the unit may be another one, too
            self._draw(self._trace, self.session.state.step_index)

    def views(self) -> Mapping[str, View]:
        return {self.tr("Surprisal"): View(self.chart, self._table)}

    def _table(self) -> Iterator[Sequence[object]]:
        yield "token", "text", "origin", "surprisal_nats", "entropy_bits", "rank"
        trace = self._trace
        if trace is None:
            return
        for slot, (token, one) in enumerate(zip(trace.tokens, self._known, strict=False)):
            found = ("", "", "") if one is None else (one.nats, one.entropy_bits, one.rank + 1)
            yield slot, written(token), token.origin, *found


def _axis_words(value: float) -> str:
    """A surprisal that is in the unit of now."""
    return f"{'∞' if isinf(value) else format(value, 'g')} {unit()}"
