"""Timings: each pass as it was measured, and the layers of the selected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.figures import timing as figures
from explorer.figures.timing import TimingFigure, ms_text
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.canvases.column_parts import Columns, Part
from explorer.ui.canvases.columns import ColumnChart
from explorer.ui.elided import ElidedLabel
from explorer.ui.panel import Panel, View
from explorer.ui.theme import Theme


class TimingsPanel(Panel):
    """Prefill, decode and recompute told apart; warm-up an outline, capture a part on top."""

    ID = "timings"
    TITLE = QT_TRANSLATE_NOOP("TimingsPanel", "Timings")
    EXPLANATION = QT_TRANSLATE_NOOP("TimingsPanel", "Milliseconds of each pass, as measured")
    EMPTY = QT_TRANSLATE_NOOP(
        "TimingsPanel", "Type a prompt and press Step (Space): the time of each pass shows here."
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._figure: TimingFigure | None = None
        self._passes = ColumnChart(theme, self.tr("step"), ms_text, self._pass_tip)
        self._passes.setAccessibleName(self.tr("Time of each pass"))
        self._passes.picked.connect(lambda step: session.select(step=step))
        self._layers = ColumnChart(theme, self.tr("layer"), ms_text, self._layer_tip)
        self._layers.setAccessibleName(self.tr("Time of each layer in the selected pass"))
        self._layers.picked.connect(self._pick_layer)
        self._speed = ElidedLabel(
            tip=self.tr("Median of the passes after the prefill, warm-up left out")
        )
        self._positions = ElidedLabel()
        self._positions.setProperty("look", "small")
        charts = QHBoxLayout()
        charts.setSpacing(10)
        charts.addWidget(self._passes)
        charts.addWidget(self._layers)
        self.content.setSpacing(1)
        self.content.addWidget(self._speed)
        self.content.addWidget(self._positions)
        self.content.addLayout(charts, 1)

    def show_state(self, old: State | None, new: State) -> None:
        if old is not None and old.trace is new.trace and old.step_index == new.step_index:
            return
        index = new.step_index
        if new.trace is None or index is None:
            self._figure = None
            self.show_empty()
            return
        figure = figures.chart(new.trace, index)
        self._figure = figure
        self._speed.setText(self._speed_words(figure))
        self._positions.setText(self._position_words(figure))
        self._passes.set_columns(_pass_columns(figure), selected=index)
        self._layers.set_columns(_layer_columns(figure))
        self.show_content()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._passes.set_theme(theme)
        self._layers.set_theme(theme)

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Time by step"): View(self._passes, self._pass_table),
            self.tr("Time by layer"): View(self._layers, self._layer_table),
        }

    def _speed_words(self, figure: TimingFigure) -> str:
        parts = []
        if figure.prefill_ms is not None:
            parts.append(self.tr("Prefill {0}").format(ms_text(figure.prefill_ms)))
        if figure.median_ms is not None and figure.tokens_per_second is not None:
            parts.append(
                self.tr("then {0} a token: {1} tokens/s").format(
                    ms_text(figure.median_ms), f"{figure.tokens_per_second:.3g}"
                )
            )
        return ", ".join(parts)

    def _position_words(self, figure: TimingFigure) -> str:
        return self.tr("{0} positions processed; without a cache it would be {1}").format(
            f"{figure.positions:,}", f"{figure.positions_without_cache:,}"
        )

    def _pass_tip(self, index: int) -> str:
        assert self._figure is not None
        one = self._figure.passes[index]
        phases = {
            "prefill": self.tr("prefill"),
            "decode": self.tr("decode"),
            "recompute": self.tr("recompute"),
        }
        lines = [
            self.tr("Step {0}, {1}: {2} for {3} positions").format(
                index, phases[one.phase], ms_text(one.forward_ms), f"{one.positions:,}"
            ),
            self.tr("copying queries and keys out: {0} on top").format(ms_text(one.capture_ms)),
        ]
        if one.warm_up:
            lines.append(self.tr("First pass after loading: warm-up, not the model's own speed."))
        if one.rebuilt_tokens:
            lines.append(
                self.tr("The cache was rebuilt first: {0} positions.").format(one.rebuilt_tokens)
            )
        return "\n".join(lines)

    def _layer_tip(self, index: int) -> str:
        assert self._figure is not None
        if index < len(self._figure.layer_ms):
            return self.tr("Layer {0}: {1}").format(
                index, ms_text(float(self._figure.layer_ms[index]))
            )
        return self.tr("Embedding, final norm, head and the rest: {0}").format(
            ms_text(self._figure.outside_layers_ms)
        )

    def _pick_layer(self, index: int) -> None:
        if self._figure is not None and index < len(self._figure.layer_ms):
            self.session.select(layer=index)

    def _pass_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "step", "phase", "positions", "forward_ms", "capture_ms", "warm_up", "rebuilt_tokens"
        for p in self._figure.passes:
            yield (
                p.index,
                p.phase,
                p.positions,
                p.forward_ms,
                p.capture_ms,
                p.warm_up,
                p.rebuilt_tokens,
            )

    def _layer_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "layer", "ms"
        yield from enumerate(self._figure.layer_ms.tolist())
        yield "outside the layers", self._figure.outside_layers_ms


def _pass_columns(figure: TimingFigure) -> Columns:
    passes = figure.passes
    forward = np.array([p.forward_ms for p in passes], np.float64)
    capture = np.array([p.capture_ms for p in passes], np.float64)
    values = forward + capture
    return Columns(
        values,
        tuple(p.phase for p in passes),
        parts=(Part(forward), Part(capture, "rest")),
        hollow=frozenset(i for i, p in enumerate(passes) if p.warm_up),
        cap=_cap(values),
    )


def _cap(values: np.ndarray) -> float | None:
    """Where the axis ends if a few columns would dwarf the rest: 1.6 times the usual height."""
    if len(values) < 4:
        return None
    usual = sorted(values.tolist())[len(values) * 4 // 5]  # np.quantile takes 100 times as long
    return usual * 1.6 if values.max() > usual * 3 else None


def _layer_columns(figure: TimingFigure) -> Columns:
    values = np.append(figure.layer_ms.astype(np.float64), figure.outside_layers_ms)
    layers = len(figure.layer_ms)
    return Columns(
        values,
        ("decode",) * layers + ("rest",),
        names=[*map(str, range(layers)), "rest"],
    )
