"""Each pass as it was measured, and the layers of the selected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from explorer.figures.cost import timing as figures
from explorer.figures.cost.timing import PIECES, TimingFigure
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.cost.memory_bandwidth import Traffic
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.canvases.charts.marks import LegendEntry
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.chart_pair import ChartPair, ChartPairPage
from explorer.ui.panel.panel import View
from explorer.ui.panels.timings import words
from explorer.wording import ms_text


class PassesPage(ChartPairPage):
    """Prefill, decode and recompute by colour; attention, MLP and the rest by its strength."""

    ID = "passes"
    FORMER_ID = "PassesPage"
    TITLE = QT_TRANSLATE_NOOP("PassesPage", "Per pass")
    NEEDS = (*ChartPairPage.NEEDS, "floor", "painted")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._figure: TimingFigure | None = None
        up = Axis(self.tr("time"), ms_text)
        self._passes = passes = ColumnChart(
            theme, Axis(self.tr("token"), whole=True), up, self._pass_tip
        )
        passes.setAccessibleName(self.tr("Time of each pass"))
        passes.picked.connect(lambda step: session.select(step=step))
        self._layers = layers = ColumnChart(
            theme, Axis(self.tr("layer"), whole=True), up, self._layer_tip
        )
        layers.setAccessibleName(self.tr("Time of each layer in the selected pass"))
        layers.picked.connect(self._pick_layer)
        tip = self.tr("Median of the passes after the prefill, without warm-up. Half of the passes "
        "lie between the two times.")  # fmt: skip
        names = self.tr("Time by token"), self.tr("Time by layer")
        self.set_charts(ChartPair(passes, layers, names, tip))

    def needs(self, old: State | None, new: State) -> bool:
        ended = old is not None and old.busy and not new.busy
        return ended or super().needs(old, new)

    def show_state(self, new: State) -> str | None:
        shown = new.shown
        if shown is None:
            self._figure = None
            return ""
        index = shown.step
        known = () if self._figure is None else self._figure.passes
        figure = figures.chart(shown.trace, index, self._session.stopwatch.lap, known)
        self._figure = figure
        phase = figure.passes[index].phase
        legend = words.legend(figure, phase)
        self._passes.set_columns(_pass_columns(figure, new.floor, legend), selected=index)
        self._layers.set_columns(_layer_columns(figure, phase, legend))
        self.charts.set_words(
            words.speed(figure),
            words.positions(figure),
            words.bound(figure, new.floor),
            words.processes(figure.passes[index]) or words.course(figure.passes[index]),
        )
        return None

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Time by token"): View(self.charts.first, self._pass_table),
            self.tr("Time by layer"): View(self.charts.second, self._layer_table),
        }

    def _pass_tip(self, index: int) -> str:
        assert self._figure is not None
        return words.one_pass(self._figure.passes[index])

    def _layer_tip(self, index: int) -> str:
        assert self._figure is not None
        split = self._figure.split
        layer = index - _first_layer(self._figure)
        if not 0 <= layer < len(split.layers):
            name, ms = _outside_at(self._figure, index)
            return f"{words.tr(words.PIECE_WORDS[name])}: {ms_text(ms)}"
        parts = [split.layers]
        text = self.tr("Layer {0}: {1}")
        if split.attention[layer] or split.mlp[layer]:
            parts += [split.attention, split.mlp, split.rest]
            text = self.tr("Layer {0}: {1} (attention {2}, MLP {3}, norms and adds {4})")
        return text.format(layer, *(ms_text(float(part[layer])) for part in parts))

    def _pick_layer(self, index: int) -> None:
        if self._figure is not None:
            layer = index - _first_layer(self._figure)
            if 0 <= layer < len(self._figure.split.layers):
                self._session.select(layer=layer)

    def _pass_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield (
            *("step", "phase", "positions", "forward_ms", "capture_ms", "warm_up"),
            *("rebuilt_tokens", "pick_ms", "hand_over_ms", "display_ms", "step_ms"),
            *(f"{name.replace(' ', '_')}_ms" for name in PIECES),
        )
        for p in self._figure.passes:
            after = ("" if ms is None else ms for ms in (*p.course[2:], p.step_ms))
            yield (
                *(p.index, p.phase, p.positions, p.forward_ms, p.capture_ms, p.warm_up),
                *(p.rebuilt_tokens, *after),
                *p.pieces,
            )

    def _layer_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        split = self._figure.split
        yield "layer", "ms", "attention_ms", "mlp_ms", "norms_and_adds_ms"
        parts = (split.layers, split.attention, split.mlp, split.rest)
        for layer, row in enumerate(zip(*(part.tolist() for part in parts), strict=True)):
            yield layer, *row
        for name, ms in split.outside:
            yield name, ms, "", "", ""


def _pass_columns(
    figure: TimingFigure, floor: Traffic | None, legend: Sequence[LegendEntry]
) -> Columns:
    passes = figure.passes
    first, second = PIECES.index("attention"), PIECES.index("mlp")
    attention = np.array([p.pieces[first] for p in passes])
    mlp = np.array([p.pieces[second] for p in passes])
    capture = np.array([p.capture_ms for p in passes])
    values = np.array([p.forward_ms for p in passes], np.float64) + capture
    return Columns(
        values,
        [p.phase for p in passes],
        parts=(
            Part(words.tr("attention"), attention),
            Part(words.tr("MLP"), mlp, strength=words.MLP),
            Part(words.tr("rest"), values - capture - attention - mlp, strength=words.OTHER),
            Part(words.tr("capture"), capture, "rest"),
        ),
        hollow=frozenset(i for i, p in enumerate(passes) if p.warm_up),
        cap=cap(values),
        level=None if floor is None else floor.floor_ms,
        first=1,
        level_words=words.level(floor),
        legend=legend,
    )


def cap(values: np.ndarray) -> float | None:
    """Where the axis ends if a few columns would dwarf the rest: 1.6 times the usual height."""
    if len(values) < 4:
        return None
    usual = sorted(values.tolist())[len(values) * 4 // 5]  # np.quantile takes 100 times as long
    return usual * 1.6 if values.max() > usual * 3 else None


def _layer_columns(figure: TimingFigure, phase: str, legend: Sequence[LegendEntry]) -> Columns:
    """Embedding, the layers, final norm, head and the rest, in the order they run."""
    split = figure.split
    before = _first_layer(figure)
    outside = [ms for _, ms in split.outside]
    after = len(outside) - before

    def along(part: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(before), part, np.zeros(after)])

    other = np.concatenate([outside[:before], split.rest, outside[before:]])
    attention, mlp = along(split.attention), along(split.mlp)
    names = [words.tr(words.PIECE_WORDS[name]) for name, _ in split.outside]
    numbers = [*range(-before, 0), *range(len(split.layers), len(split.layers) + after)]
    return Columns(
        attention + mlp + other,
        (phase,),
        parts=(
            Part(words.tr("attention"), attention),
            Part(words.tr("MLP"), mlp, strength=words.MLP),
            Part(words.tr("rest"), other, strength=words.OTHER),
        ),
        first=-before,
        named=dict(zip(map(float, numbers), names, strict=True)),
        legend=[one for one in legend if one.look == "filled" and one.colour != "rest"],
    )


def _first_layer(figure: TimingFigure) -> int:
    """Columns that stand before the first layer."""
    return int(figure.split.embedding_ms is not None)


def _outside_at(figure: TimingFigure, index: int) -> tuple[figures.Piece, float]:
    outside, layers = figure.split.outside, len(figure.split.layers)
    return outside[index if index < _first_layer(figure) else index - layers]
