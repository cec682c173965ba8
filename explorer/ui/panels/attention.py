"""Attention: all heads at a glance, one head's map beside them, and what it says in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QWidget,
)

from explorer.figures import atlas as atlases
from explorer.figures import attention as figures
from explorer.figures import blocks
from explorer.figures.atlas import Atlas
from explorer.figures.attention import Map
from explorer.figures.tokens import Label, extended
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace
from explorer.ui.canvases.atlas import AtlasView
from explorer.ui.canvases.heatmap import Heatmap
from explorer.ui.colormaps import COLOUR_MAPS
from explorer.ui.elided import ElidedLabel
from explorer.ui.icons import icon
from explorer.ui.panel import Panel, View
from explorer.ui.theme import Theme
from explorer.ui.worker import Worker


@dataclass(frozen=True, slots=True)
class _Look:
    """What is looked at: one head in one step of one trace."""

    trace: Trace
    step: int
    layer: int
    head: int

    @property
    def passes(self) -> tuple[Step, ...]:
        return self.trace.steps[: self.step + 1]

    @property
    def slots(self) -> int:
        return self.trace.read_slots(self.step)

    def goes_on_from(self, earlier: _Look) -> bool:
        """True if this only adds to what `earlier` shows."""
        return figures.shared_rows(earlier.passes, self.passes) == earlier.slots


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A map ready to draw, and what it is of."""

    look: _Look
    map: Map
    levels: np.ndarray
    top: float
    per_map: bool


class AttentionPanel(Panel):
    """Atlas and map follow the selected step, layer, head and query."""

    ID = "attention"
    TITLE = QT_TRANSLATE_NOOP("AttentionPanel", "Attention")
    EXPLANATION = QT_TRANSLATE_NOOP(
        "AttentionPanel", "Each row is a token, reading the tokens before it: brighter is more"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "AttentionPanel",
        "Type a prompt and press Step (Space): what every head of every layer reads shows here.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._worker = Worker(self)
        self._look: _Look | None = None
        self._drawn: _Drawn | None = None
        self._atlas: Atlas | None = None
        self._map_of: _Look | None = None  # what the worker's map lane is busy with
        self._atlas_of: _Look | None = None
        self._tokens: tuple[Token, ...] = ()
        self._labels: tuple[Label, ...] = ()
        self._query: int | None = None
        self._build()

    # -- building

    def _build(self) -> None:
        self._atlas_view = AtlasView(self.theme, self._head_words)
        self._atlas_view.picked.connect(
            lambda layer, head: self.session.select(layer=layer, head=head)
        )
        self._atlas_view.hovered.connect(self._read_head)
        self._heatmap = Heatmap(self.theme, self._cell_sentence)
        self._heatmap.hovered.connect(self._on_hovered)
        self._heatmap.picked.connect(self._on_picked)
        self._reason = QLabel()
        self._reason.setWordWrap(True)
        self._reason.setProperty("look", "muted")
        self._reason.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._map_page = QStackedWidget()
        self._map_page.addWidget(self._heatmap)
        self._map_page.addWidget(self._reason)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self._atlas_view)
        split.addWidget(self._map_page)
        split.setStretchFactor(0, 2)
        split.setStretchFactor(1, 5)
        split.setChildrenCollapsible(False)
        self._readout = ElidedLabel()
        self._readout.setAccessibleName(self.tr("What is under the cursor"))
        self.content.setSpacing(4)
        self.content.addLayout(self._build_tools())
        self.content.addWidget(split, 1)
        self.content.addWidget(self._readout)

    def _build_tools(self) -> QHBoxLayout:
        self._name = ElidedLabel()
        self._name.setProperty("look", "title")
        self._colours = QComboBox()
        for name in COLOUR_MAPS:
            self._colours.addItem(name.capitalize(), name)
        self._colours.setAccessibleName(self.tr("Colour map"))
        self._colours.setToolTip(self.tr("Colour map"))
        self._colours.currentIndexChanged.connect(self._on_colours)
        self._scale = QComboBox()
        self._scale.addItem(self.tr("0 to 100 %"), False)
        self._scale.addItem(self.tr("0 to maximum"), True)
        self._scale.setAccessibleName(self.tr("Scale"))
        self._scale.setToolTip(self.tr("What the brightest colour stands for"))
        self._scale.currentIndexChanged.connect(self._on_scale)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self._name, 1)
        row.addWidget(self._colours)
        row.addWidget(self._scale)
        self._buttons: dict[str, QToolButton] = {}
        for name, words, act in (
            ("zoom-in", self.tr("Larger cells (+)"), lambda: self._heatmap.zoom(1.5)),
            ("zoom-out", self.tr("Smaller cells (-)"), lambda: self._heatmap.zoom(1 / 1.5)),
            ("fit", self.tr("The whole map (0)"), self._heatmap.fit),
        ):
            button = QToolButton()
            button.setProperty("look", "flat")
            button.setToolTip(words)
            button.setAccessibleName(words)
            button.setIcon(icon(name, self.theme))
            button.clicked.connect(act)
            row.addWidget(button)
            self._buttons[name] = button
        return row

    # -- state

    def show_state(self, old: State | None, new: State) -> None:
        trace, step = new.trace, new.step_index
        if trace is None or step is None:
            self._forget()
            self.show_empty()
            return
        heads = [record.heads for record in trace.steps[step].layers]
        layer = min(new.selection.layer, blocks.layer_count(trace, step) - 1)
        most = heads[layer] if layer < len(heads) and heads[layer] else max(heads, default=1)
        look = _Look(trace, step, layer, min(new.selection.head, max(most - 1, 0)))
        before, self._look = self._look, look
        self._follow_tokens(trace)
        if before is None or before.trace is not trace or before.step != step:
            self._ask_atlas()
        if before != look:
            self._atlas_view.set_selected(look.layer, look.head)
            self._ask_map()
        self._mark(new)
        if self.empty:
            self.show_content()

    def _forget(self) -> None:
        self._worker.drop("map")
        self._worker.drop("atlas")
        self._look = self._drawn = self._atlas = self._map_of = self._atlas_of = None

    def _follow_tokens(self, trace: Trace) -> None:
        tokens = trace.tokens
        if tokens != self._tokens:
            self._labels = extended(self._tokens, self._labels, tokens)
            self._tokens = tokens

    def _mark(self, state: State) -> None:
        assert self._look is not None
        readout = self._look.trace.steps[self._look.step].readout
        query = readout if state.selection.query is None else state.selection.query
        self._query = min(query, self._look.slots - 1)
        self._heatmap.set_marks(self._query, state.selection.key)
        self._name.setText(
            self.tr("Layer {0} · head {1}").format(self._look.layer, self._look.head)
        )
        self._read_row()

    # -- the map

    def _ask_map(self) -> None:
        """Have the map worked out, unless one that this only adds to is on its way."""
        look = self._look
        assert look is not None
        why = blocks.reason(look.trace, look.step, look.layer)
        if why:
            self._worker.drop("map")
            self._map_of = None
            self._drawn = None
            self._explain(look.layer, why)
            return
        busy = self._map_of
        if busy and (busy.layer, busy.head) == (look.layer, look.head) and look.goes_on_from(busy):
            return
        self._map_of = look
        known = self._drawn.map if self._drawn else None
        per_map = bool(self._scale.currentData())

        def work() -> _Drawn:
            whole = figures.full_map(look.trace, look.step, look.layer, look.head, known)
            top = whole.top if per_map else 1.0
            return _Drawn(
                look, whole, figures.levels(whole.weights, whole.kinds, top), top, per_map
            )

        self._worker.ask("map", work, self._show_map, self._no_map)

    def _show_map(self, drawn: _Drawn) -> None:
        self._map_of = None
        self._drawn = drawn
        self._map_page.setCurrentIndex(0)
        padding = [i for i, token in enumerate(self._tokens) if token.origin == "padding"]
        self._heatmap.set_map(drawn.levels, self._labels, padding, figures.percent(drawn.top))
        self._read_row()
        if self._look != drawn.look or drawn.per_map != bool(self._scale.currentData()):
            self._ask_map()

    def _no_map(self, error: Exception) -> None:
        self._map_of = None
        if isinstance(error, MemoryError):
            error = ValueError(
                self.tr("There is not enough memory for this map; try a shorter prompt.")
            )
        if not isinstance(error, ValueError):
            raise error
        self._drawn = None
        self._reason.setText(str(error))
        self._map_page.setCurrentIndex(1)

    def _explain(self, layer: int, why: str) -> None:
        self._reason.setText(self.tr("Layer {0} has no attention map: {1}.").format(layer, why))
        self._map_page.setCurrentIndex(1)
        self._readout.setText("")

    # -- the atlas

    def _ask_atlas(self) -> None:
        """Have the atlas brought up to date, unless one that this only adds to is being built."""
        look = self._look
        assert look is not None
        if self._atlas_of and look.goes_on_from(self._atlas_of):
            return
        self._atlas_of = look
        known = self._atlas

        def work() -> Iterator[Atlas]:
            return atlases.build(look.trace, look.step, known, look.layer)

        self._worker.ask("atlas", work, self._show_atlas)

    def _show_atlas(self, atlas: Atlas) -> None:
        self._atlas_view.set_atlas(atlas)
        if not atlas.complete:
            return
        self._atlas = atlas
        built, self._atlas_of = self._atlas_of, None
        if (
            built
            and self._look
            and (built.trace, built.step) != (self._look.trace, self._look.step)
        ):
            self._ask_atlas()

    # -- reading

    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        self.session.select(key=None if cell is None else cell[1])
        if cell is None:
            self._read_row()
        else:
            self._readout.setText(self._cell_sentence(*cell))

    def _on_picked(self, query: int, key: int) -> None:
        assert self._look is not None
        readout = self._look.trace.steps[self._look.step].readout
        self.session.select(query=None if query == readout else query, key=key)

    def _cell_sentence(self, query: int, key: int) -> str:
        if self._drawn is None or query >= len(self._drawn.map.weights):
            return ""
        look, whole = self._drawn.look, self._drawn.map
        words = figures.cell_words(
            int(whole.kinds[query, key]), float(whole.weights[query, key]), query, key
        )
        return self.tr("{0} reads {1}: {2} (layer {3} head {4})").format(
            figures.token(query, self._labels),
            figures.token(key, self._labels),
            words,
            look.layer,
            look.head,
        )

    def _read_row(self) -> None:
        """What the selected query reads, on the line below the map."""
        drawn = self._drawn
        if drawn is None or self._query is None or self._query >= len(drawn.map.weights):
            return
        look = drawn.look
        read = figures.row(look.trace, look.step, look.layer, look.head, self._query)
        self._readout.setText(
            self.tr("{0} reads {1}").format(
                figures.token(self._query, self._labels), figures.shares(read, self._labels, 4)
            )
        )

    def _read_head(self, cell: tuple[int, int] | None) -> None:
        if cell is None:
            self._read_row()
        else:
            self._readout.setText(self._head_words(*cell))

    def _head_words(self, layer: int, head: int) -> str:
        look = self._look
        if look is None or self._query is None:
            return ""
        why = blocks.reason(look.trace, look.step, layer)
        if why:
            return self.tr("layer {0} has no attention map: {1}").format(layer, why)
        if head >= blocks.record_of(look.trace, look.step, layer).heads:
            return self.tr("layer {0} has no head {1}").format(layer, head)
        read = figures.row(look.trace, look.step, layer, head, self._query)
        return self.tr("{0}, read by {1}").format(
            figures.sentence(layer, head, read, self._labels, 3),
            figures.token(self._query, self._labels),
        )

    # -- choices

    def _on_colours(self) -> None:
        name = self._colours.currentData()
        self._heatmap.set_colours(name)
        self._atlas_view.set_colours(name, bool(self._scale.currentData()))

    def _on_scale(self) -> None:
        self._on_colours()
        if self._look is not None:
            self._map_of = None
            self._ask_map()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._atlas_view.set_theme(theme)
        self._heatmap.set_theme(theme)
        for name, button in self._buttons.items():
            button.setIcon(icon(name, theme))

    def views(self) -> Mapping[str, View]:
        return {
            self.tr("Attention map"): View(self._heatmap, self._table),
            self.tr("All heads"): View(self._atlas_view),
        }

    def _table(self) -> Iterator[Sequence[object]]:
        """The map's figures: weights, "masked", or nothing where the kernel saw no such key."""
        drawn = self._drawn
        if drawn is None:
            return
        slots = range(len(drawn.map.weights))
        names = [f"{slot} {self._labels[slot].text}" for slot in slots]
        yield [self.tr("layer {0} head {1}").format(drawn.look.layer, drawn.look.head), *names]
        for query, name in zip(slots, names, strict=True):
            weights, kinds = drawn.map.weights[query], drawn.map.kinds[query]
            yield [
                name,
                *(
                    float(w) if k == blocks.READ else ("masked" if k == blocks.MASKED else "")
                    for w, k in zip(weights, kinds, strict=True)
                ),
            ]
