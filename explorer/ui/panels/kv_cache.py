"""KV cache: what it holds, layer by layer and step by step, beside the formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.figures import cache as figures
from explorer.figures.cache import CacheFigure, bytes_text, short_bytes
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.canvases.column_parts import Columns
from explorer.ui.canvases.columns import ColumnChart
from explorer.ui.elided import ElidedLabel
from explorer.ui.panel import Panel, View
from explorer.ui.theme import Theme


class KvCachePanel(Panel):
    """Measured bytes on the cache's own tensors; the formula is a line and a verdict."""

    ID = "kv-cache"
    TITLE = QT_TRANSLATE_NOOP("KvCachePanel", "KV cache")
    EXPLANATION = QT_TRANSLATE_NOOP(
        "KvCachePanel", "Bytes of saved keys and values, measured, beside the formula"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "KvCachePanel",
        "Type a prompt and press Step (Space): the keys and values that the model saves show here.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._figure: CacheFigure | None = None
        self._layers = ColumnChart(theme, self.tr("layer"), short_bytes, self._layer_tip)
        self._layers.setAccessibleName(self.tr("Cache bytes by layer"))
        self._layers.picked.connect(lambda layer: session.select(layer=layer))
        self._growth = ColumnChart(theme, self.tr("step"), short_bytes, self._growth_tip)
        self._growth.setAccessibleName(self.tr("Cache bytes after each step"))
        self._growth.picked.connect(lambda step: session.select(step=step))
        self._measured = ElidedLabel()
        self._formula = ElidedLabel()
        self._formula.setProperty("look", "small")
        charts = QHBoxLayout()
        charts.setSpacing(10)
        charts.addWidget(self._layers)
        charts.addWidget(self._growth)
        self.content.setSpacing(1)
        self.content.addWidget(self._measured)
        self.content.addWidget(self._formula)
        self.content.addLayout(charts, 1)

    def show_state(self, old: State | None, new: State) -> None:
        if (
            old is not None
            and old.trace is new.trace
            and old.step_index == new.step_index
            and old.selection.layer == new.selection.layer
        ):
            return
        index = new.step_index
        if new.trace is None or index is None:
            self._figure = None
            self.show_empty()
            return
        figure = figures.chart(new.trace, index)
        self._figure = figure
        if figure.off_reason:
            self.show_empty(self.tr("The cache is {0}.").format(figure.off_reason))
            return
        self._measured.setText(self._measured_words(figure))
        self._formula.setText(self._formula_words(figure))
        expected = figure.formula_bytes / len(figure.layer_bytes) if len(figure.layer_bytes) else 0
        self._layers.set_columns(
            Columns(figure.layer_bytes.astype(np.float64), ("final",), level=expected or None),
            selected=min(new.selection.layer, len(figure.layer_bytes) - 1),
        )
        self._growth.set_columns(
            Columns(figure.growth_bytes.astype(np.float64), ("final",)), selected=index
        )
        self.show_content()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._layers.set_theme(theme)
        self._growth.set_theme(theme)

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Cache by layer"): View(self._layers, self._layer_table),
            self.tr("Cache growth"): View(self._growth, self._growth_table),
        }

    def _measured_words(self, figure: CacheFigure) -> str:
        return self.tr("{0} bytes, {1}").format(
            f"{figure.measured_bytes:,}", figures.verdict(figure)
        )

    def _formula_words(self, figure: CacheFigure) -> str:
        per_token = f"{figure.formula_bytes_per_token:,}"
        start = f"{figure.formula} = {per_token}" if figure.formula else per_token
        return self.tr("{0} × {1} tokens").format(start, f"{figure.tokens:,}")

    def _layer_tip(self, layer: int) -> str:
        assert self._figure is not None
        kinds = self._figure.layer_kinds
        kind = f" ({kinds[layer]})" if layer < len(kinds) else ""
        return self.tr("Layer {0}{1}: {2}").format(
            layer, kind, bytes_text(int(self._figure.layer_bytes[layer]))
        )

    def _growth_tip(self, step: int) -> str:
        assert self._figure is not None
        return self.tr("After step {0}: {1} for {2} tokens").format(
            step,
            bytes_text(int(self._figure.growth_bytes[step])),
            f"{int(self._figure.growth_tokens[step]):,}",
        )

    def _layer_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "layer", "bytes"
        yield from enumerate(self._figure.layer_bytes.tolist())

    def _growth_table(self) -> Iterator[Sequence[object]]:
        assert self._figure is not None
        yield "step", "tokens", "bytes"
        pairs = zip(
            self._figure.growth_tokens.tolist(), self._figure.growth_bytes.tolist(), strict=True
        )
        yield from ((step, tokens, size) for step, (tokens, size) in enumerate(pairs))
