"""Attention: all heads at a glance, one head's map beside them, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QT_TRANSLATE_NOOP, QEvent, QSize, Qt
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer.figures import attention as figures
from explorer.figures import blocks
from explorer.figures.atlas import Atlas
from explorer.figures.heads import HeadScores
from explorer.figures.tokens import Label, extended
from explorer.session.state import State
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.ui.attention_source import AttentionSource, DrawnMap, Look
from explorer.ui.canvases.atlas import AtlasView
from explorer.ui.canvases.heatmap import Heatmap
from explorer.ui.colormaps import COLOUR_MAPS
from explorer.ui.elided import ElidedLabel
from explorer.ui.icons import icon
from explorer.ui.panel import Panel, View
from explorer.ui.theme import Theme, unit

if TYPE_CHECKING:
    from explorer.session.session import Session


class AttentionPanel(Panel):
    """Atlas and map follow the selected step, layer, head and query."""

    ID = "attention"
    TITLE = QT_TRANSLATE_NOOP("AttentionPanel", "Attention")
    EXPLANATION = QT_TRANSLATE_NOOP(
        "AttentionPanel", "Each row shows what one token reads: brighter is more"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "AttentionPanel",
        "Type a prompt and press Step (Space): what every head of every layer reads shows here.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.source = AttentionSource(self)
        self.source.mapReady.connect(self._show_map)
        self.source.mapFailed.connect(self._show_reason)
        self._look: Look | None = None
        self._drawn: DrawnMap | None = None
        self._tokens: tuple[Token, ...] = ()
        self._labels: tuple[Label, ...] = ()
        self._query: int | None = None
        self._scores: HeadScores | None = None
        self._over: Callable[[], str] | None = None  # words for what the mouse or cursor is on
        self._build()

    # -- building

    def _build(self) -> None:
        self._atlas_view = AtlasView(self.theme, self._head_words)
        self._atlas_view.picked.connect(
            lambda layer, head: self.session.select(layer=layer, head=head)
        )
        self._atlas_view.hovered.connect(self._on_head_hovered)
        self.source.atlasReady.connect(self._show_atlas)
        self.source.scoresReady.connect(self._show_scores)
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
        split.addWidget(self._build_side())
        split.addWidget(self._map_page)
        split.setStretchFactor(0, 1)
        split.setStretchFactor(1, 3)
        split.setSizes([180, 540])
        split.setChildrenCollapsible(False)
        self._readout = ElidedLabel()
        self._readout.setAccessibleName(self.tr("What is under the cursor"))
        self.content.setSpacing(4)
        self.content.addLayout(self._build_tools())
        self.content.addWidget(split, 1)
        self.content.addWidget(self._readout)

    def _build_side(self) -> QWidget:
        """The atlas under the choice of its order."""
        self._order = QComboBox()
        for words, kind in (
            (self.tr("By layer"), None),
            (self.tr("First token first"), "first"),
            (self.tr("Previous token first"), "previous"),
            (self.tr("Induction first"), "induction"),
            (self.tr("Narrow first"), "entropy"),
        ):
            self._order.addItem(words, kind)
        for i, tip in enumerate(
            (
                self.tr("Layers down, heads across"),
                self.tr("Heads that look at the first token most"),
                self.tr("Heads that look at the token just before most"),
                self.tr("Heads that look at what followed the last copy of the token most"),
                self.tr("Heads whose rows are spread least (entropy)"),
            )
        ):
            self._order.setItemData(i, tip, Qt.ItemDataRole.ToolTipRole)
        self._order.setAccessibleName(self.tr("Order of the heads"))
        self._order.setToolTip(self.tr("Order of the heads"))
        self._order.setMinimumContentsLength(8)
        self._order.currentIndexChanged.connect(self._on_order)
        side = QWidget()
        column = QVBoxLayout(side)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addWidget(self._order)
        column.addWidget(self._atlas_view, 1)
        return side

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
        self._size_icons()
        return row

    # -- state

    def show_state(self, old: State | None, new: State) -> None:
        trace, step = new.trace, new.step_index
        if trace is None or step is None:
            self._forget()
            self.show_empty()
            return
        before = self._look
        self._look = look = _clamped(new, trace, step)
        self._follow_tokens(trace)
        if before is None or (before.layer, before.head) != (look.layer, look.head):
            self._atlas_view.set_selected(look.layer, look.head)
        self.source.show(look)
        self._mark(new)
        if self.empty:
            self.show_content()

    def _forget(self) -> None:
        self.source.forget()
        self._look = self._drawn = self._over = self._scores = None
        self._atlas_view.set_order(None)

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
        self._read()

    def _show_map(self, drawn: DrawnMap) -> None:
        self._drawn = drawn
        self._map_page.setCurrentIndex(0)
        padding = [i for i, token in enumerate(self._tokens) if token.origin == "padding"]
        top = figures.percent(drawn.top)
        self._heatmap.set_map(drawn.levels, self._labels, padding, top, drawn.pooled)
        self._read()

    def _show_atlas(self, atlas: Atlas) -> None:
        if self._scores is not None and self._scores.heads != atlas.heads:
            self._scores = None  # of another model
            self._atlas_view.set_order(None)
        self._atlas_view.set_atlas(atlas)

    def _show_scores(self, scores: HeadScores) -> None:
        self._scores = scores
        self._atlas_view.set_order(scores.order())

    def _show_reason(self, sentence: str) -> None:
        self._drawn = None
        self._reason.setText(sentence)
        self._map_page.setCurrentIndex(1)
        self._read()

    # -- reading

    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        self._over = None if cell is None else lambda: self._cell_sentence(*cell)
        self.session.select(key=None if cell is None else cell[1])
        self._read()

    def _on_head_hovered(self, cell: tuple[int, int] | None) -> None:
        self._over = None if cell is None else lambda: self._head_words(*cell)
        self._read()

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

    def _read(self) -> None:
        """The line below: what the cursor is on, else what the selected query reads."""
        self._readout.setText(self._row_words() if self._over is None else self._over())

    def _row_words(self) -> str:
        drawn = self._drawn
        if drawn is None or self._query is None or self._query >= len(drawn.map.weights):
            return ""
        look = drawn.look
        read = figures.row(look.trace, look.step, look.layer, look.head, self._query)
        return self.tr("{0} reads {1}").format(
            figures.token(self._query, self._labels), figures.shares(read, self._labels, 4)
        )

    def _head_words(self, layer: int, head: int) -> str:
        look = self._look
        if look is None or self._query is None:
            return ""
        why = blocks.reason(look.trace, look.step, layer)
        if why:
            return self.tr("layer {0} has no attention map: {1}").format(layer, why)
        if head >= blocks.record_of(look.trace, look.step, layer).heads:
            return self.tr("layer {0} has no head {1}").format(layer, head)
        if self._scores is not None:
            return self._score_words(self._scores, layer, head)
        read = figures.row(look.trace, look.step, layer, head, self._query)
        return self.tr("{0}, read by {1}").format(
            figures.sentence(layer, head, read, self._labels, 3),
            figures.token(self._query, self._labels),
        )

    def _score_words(self, scores: HeadScores, layer: int, head: int) -> str:
        mean = float(scores.means[layer, head])
        if np.isnan(mean):
            return self.tr("layer {0} head {1}: no token here to ask about").format(layer, head)
        words = {
            "first": self.tr("{0} on the first token, on average"),
            "previous": self.tr("{0} on the token just before, on average"),
            "induction": self.tr("{0} on what followed the last copy of the token, on average"),
            "entropy": self.tr("rows spread over {0} bits, on average"),
        }[scores.kind]
        figure = f"{mean:.3g}" if scores.kind == "entropy" else figures.percent(mean)
        return self.tr("layer {0} head {1}: {2}").format(layer, head, words.format(figure))

    # -- choices

    def _on_colours(self) -> None:
        name = self._colours.currentData()
        self._heatmap.set_colours(name)
        self._atlas_view.set_colours(name, bool(self._scale.currentData()))

    def _on_order(self) -> None:
        kind = self._order.currentData()
        self._scores = None
        if kind is None:
            self._atlas_view.set_order(None)
        self.source.set_kind(kind)

    def _on_scale(self) -> None:
        self._on_colours()
        self.source.set_scale(per_map=bool(self._scale.currentData()))

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._atlas_view.set_theme(theme)
        self._heatmap.set_theme(theme)
        for name, button in self._buttons.items():
            button.setIcon(icon(name, theme))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._size_icons()

    def _size_icons(self) -> None:
        size = round(16 * unit(self))
        for button in getattr(self, "_buttons", {}).values():
            button.setIconSize(QSize(size, size))

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


def _clamped(state: State, trace: Trace, step: int) -> Look:
    """What the selection means in this trace: a model opened later may have fewer heads."""
    layer = min(state.selection.layer, blocks.layer_count(trace, step) - 1)
    heads = [record.heads for record in trace.steps[step].layers]
    most = heads[layer] if layer < len(heads) and heads[layer] else max(heads, default=1)
    return Look(trace, step, layer, min(state.selection.head, max(most - 1, 0)))
