"""What the cache holds, layer by layer and step by step, beside the formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from explorer.figures.cost import cache as figures
from explorer.figures.cost.cache import CacheFigure
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair, ChartPairPage
from explorer.ui.panel.panel import View
from explorer.ui.panels.kv_cache.words import FORMULA, KIND_COLOURS, tr, verdict
from explorer.wording import bytes_text, short_bytes


class LayersPage(ChartPairPage):
    """Columns are measured on the cache's own tensors; the dashes are the formula."""

    ID = "layers"
    FORMER_ID = "LayersPage"
    TITLE = QT_TRANSLATE_NOOP("LayersPage", "Layers")
    NEEDS = (*ChartPairPage.NEEDS, "selection.layer")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._figure: CacheFigure | None = None
        along = Axis(self.tr("layer"), whole=True), Axis(self.tr("token"), whole=True)
        up = Axis(self.tr("cache"), short_bytes, binary=True)
        self._layers = layers = ColumnChart(theme, along[0], up, self._layer_tip)
        layers.setAccessibleName(self.tr("Cache bytes by layer"))
        layers.picked.connect(lambda layer: session.select(layer=layer))
        self._growth = growth = ColumnChart(theme, along[1], up, self._growth_tip)
        growth.setAccessibleName(self.tr("Cache bytes after each token"))
        growth.picked.connect(lambda step: session.select(step=step))
        names = self.tr("Memory by layer"), self.tr("Memory by token")
        self.set_charts(ChartPair(layers, growth, names))

    def show_state(self, new: State) -> str | None:
        shown = new.shown
        if shown is None:
            self._figure = None
            return ""
        known = () if self._figure is None else self._figure.growth
        figure = self._figure = figures.chart(shown.trace, shown.step, known)
        if figure.off_reason:
            return self.tr("KV cache: {0}.").format(figure.off_reason)
        layer = min(new.selection.layer, len(figure.layer_bytes) - 1)
        legend = _legend(figure)
        self._layers.set_columns(_layer_columns(figure, legend), selected=layer)
        self._growth.set_columns(_growth_columns(figure, legend), selected=shown.step)
        self.charts.set_words(self._headline(figure), self._formula(figure), self._more(figure))
        return None

    def views(self) -> Mapping[str, View]:
        if self._figure is None or self._figure.off_reason:
            return {}
        return {
            self.tr("Cache by layer"): View(self.charts.first, self._layer_table),
            self.tr("Cache growth"): View(self.charts.second, self._growth_table),
        }

    # -- words

    def _headline(self, figure: CacheFigure) -> str:
        return verdict(figure)

    def _formula(self, figure: CacheFigure) -> str:
        if not figure.formula_bytes_per_token:
            return self.tr("no keys or values: nothing grows with the tokens")
        per_token = f"{figure.formula_bytes_per_token:,}"
        start = f"{figure.formula} = {per_token}" if figure.formula else per_token
        return self.tr("{0} × {1} tokens").format(start, f"{figure.tokens:,}")

    def _more(self, figure: CacheFigure) -> str:
        """Where it lies, what sharing keys saves, and how much context is left."""
        parts = []
        if figure.rank_bytes:
            parts.append(
                self.tr("by process: {0}").format(" / ".join(map(short_bytes, figure.rank_bytes)))
            )
        if figure.mha_factor > 1:
            parts.append(
                self.tr("groups of heads share keys (GQA): {0} instead of {1}").format(
                    short_bytes(figure.formula_bytes),
                    short_bytes(figure.formula_bytes * figure.mha_factor),
                )
            )
        if figure.context_left is not None:
            parts.append(
                self.tr("context left: {0} of {1} tokens").format(
                    f"{figure.context_left:,}", f"{figure.limit:,}"
                )
            )
        return " · ".join(parts)

    def _layer_tip(self, layer: int) -> str:
        assert self._figure is not None
        figure = self._figure
        kind = figure.layer_kinds[layer] if layer < len(figure.layer_kinds) else ""
        size = int(figure.layer_bytes[layer])
        text = self.tr("Layer {0} ({1}): {2}").format(layer, tr(kind), bytes_text(size))
        full = figure.layer_formula[layer] if layer < len(figure.layer_formula) else np.nan
        if kind in figures.STATES:
            return text + "\n" + self.tr("fixed size, however many tokens were read")
        if np.isnan(full) or size == full:
            return text
        return text + "\n" + self.tr("with every token kept: {0}").format(bytes_text(int(full)))

    def _growth_tip(self, step: int) -> str:
        assert self._figure is not None
        held = self._figure.growth[step]
        text = self.tr("After token {0}: {1} for {2} positions").format(
            step + 1, bytes_text(held.total), f"{held.tokens:,}"
        )
        if len(self._figure.kinds) == 1:
            return text
        pairs = zip(self._figure.kinds, held.by_kind, strict=True)
        return f"{text}\n" + ", ".join(f"{tr(kind)} {short_bytes(size)}" for kind, size in pairs)

    # -- tables

    def _layer_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "layer", "kind", "bytes", "formula_bytes"
        figure = self._figure
        rows = zip(
            figure.layer_kinds, figure.layer_bytes.tolist(), figure.layer_formula.tolist(),
            strict=True,
        )  # fmt: skip
        for layer, (kind, size, full) in enumerate(rows):
            yield layer, kind, size, "" if full != full else int(full)

    def _growth_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "step", "tokens", "bytes", *(f"{kind}_bytes" for kind in self._figure.kinds)
        for step, held in enumerate(self._figure.growth):
            yield step, held.tokens, held.total, *held.by_kind


def _layer_columns(figure: CacheFigure, legend: Sequence[LegendEntry]) -> Columns:
    kinds = [KIND_COLOURS.get(kind, "rest") for kind in figure.layer_kinds]
    measured = figure.layer_bytes.astype(np.float64)
    return Columns(
        measured,
        kinds,
        parts=[Part(tr("measured"), measured)],
        marks=figure.layer_formula,
        marks_name=tr(FORMULA),
        legend=legend,
    )


def _growth_columns(figure: CacheFigure, legend: Sequence[LegendEntry]) -> Columns:
    table = np.array([held.by_kind for held in figure.growth], np.float64)
    tokens = np.array([held.tokens + held.evicted for held in figure.growth], np.float64)
    return Columns(
        table.sum(axis=1),
        ("prefill",),
        first=1,
        parts=[
            Part(tr(kind), table[:, i], KIND_COLOURS.get(kind, "rest"))
            for i, kind in enumerate(figure.kinds)
        ],
        marks=tokens * figure.formula_bytes_per_token if figure.formula_bytes_per_token else None,
        marks_name=tr(FORMULA),
        legend=legend,
    )


def _legend(figure: CacheFigure) -> list[LegendEntry]:
    """Each kind with what it holds, and the formula."""
    entries = []
    for kind in figure.kinds:
        sizes = [
            size
            for its, size in zip(figure.layer_kinds, figure.layer_bytes.tolist(), strict=False)
            if its == kind
        ]
        words = tr("{0}: {1} × {2}") if len(set(sizes)) == 1 else tr("{0}: {1} layers, {2}")
        shown = sizes[0] if len(set(sizes)) == 1 else sum(sizes)
        colour = KIND_COLOURS.get(kind, "rest")
        entries.append(LegendEntry(words.format(tr(kind), len(sizes), short_bytes(shown)), colour))
    if figure.formula:
        entries.append(LegendEntry(tr(FORMULA), "formula", look="line"))
    return entries
