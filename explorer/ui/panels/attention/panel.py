"""Attention: all heads at a glance, one head's map beside them, and what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QSplitter, QWidget

from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_scores import HeadScores, Order
from explorer.figures.attention.map_blocks import MASKED
from explorer.figures.attention.map_request import Beside, DrawnMaps, MapRequest
from explorer.figures.attention.strongest_heads import Ranking
from explorer.figures.text.tokens import Label, extended, find
from explorer.session.changes import only_points
from explorer.session.selection import Shown
from explorer.session.state import State
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.ui.canvases.maps.thumbnails import Sheet
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.text_size import for_back_row
from explorer.ui.look.theme import Theme
from explorer.ui.panel.head_menu import cell_menu, head_menu, patch_menu
from explorer.ui.panel.measured_orders import MeasuredOrders
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.attention import scales, tables, words
from explorer.ui.panels.attention.comparing import Comparing
from explorer.ui.panels.attention.drawing.draw_mask import DrawMask
from explorer.ui.panels.attention.heads_side import HeadsSide
from explorer.ui.panels.attention.map_source import AttentionSource
from explorer.ui.panels.attention.pages import Pages
from explorer.ui.panels.attention.toolbar import Toolbar
from explorer.ui.threads.later import later
from explorer.wording import progress_percent

if TYPE_CHECKING:
    from explorer.session.session import Session

_PART = ("zoom", "left", "top")


class AttentionPanel(Panel):
    """Everything in it follows the selected step, layer, head and query."""

    ID = "attention"
    TITLE = QT_TRANSLATE_NOOP("AttentionPanel", "Attention")
    TERM = "attention-weight"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "AttentionPanel",
        "One row per token: brighter = more attention",
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "AttentionPanel",
        "Type a prompt and press Step (Space) to see the attention of every head in every layer.",
    )

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.source = AttentionSource(self, lambda: self.heads.atlas.sheet_maker())
        self._look: Shown | None = None
        self._drawn: DrawnMaps | None = None
        self._tokens: tuple[Token, ...] = ()
        self._labels: tuple[Label, ...] = ()
        self._scores: HeadScores | None = None
        self._over: Callable[[], str] | None = None  # words for what the mouse or cursor is on
        self._view = ""
        self._best_wanted = False  # the best head is selected once it is known
        self._choosing = False  # choices of a file are put in place
        self._part: list[float] = []  # of the map, to be shown once it is there
        self._build()
        self._connect()

    @property
    def busy(self) -> bool:
        return self.source.busy or self.tray.next.busy or self.pages.maps.busy

    # -- building

    def _build(self) -> None:
        self.tools = Toolbar(self.theme)
        self.comparing = Comparing(self.session, self.theme, self)
        self.compare_bar, self.tray = self.comparing.bar, self.comparing.tray
        self.heads = HeadsSide(self.theme, self._head_words)
        self.measured = MeasuredOrders(self, self.session, lambda: self.heads.kind)
        self.pages = Pages(
            self.theme,
            self._map_words,
            self._token_words,
            lambda key: self._cell_words(self._query or 0, key),
        )
        self.drawing = DrawMask(self.session, self.pages.maps, self)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.addWidget(self.heads)
        self._split.addWidget(self.pages)
        self._split.setStretchFactor(1, 1)
        self._split.setSizes([150, 550])
        self._split.setChildrenCollapsible(False)
        self.caveat = SentenceLabel(look="small")
        self.readout = ResultLabel()
        self.readout.setAccessibleDescription(self.tr("What is under the cursor"))
        self.content.setSpacing(4)
        for part in (self.tools, self.drawing.bar, self.compare_bar, self.caveat):
            self.content.addWidget(part)
        self.content.addWidget(self._split, 1)
        self.content.addWidget(self.tray)
        self.content.addWidget(self.readout)
        self.caveat.setVisible(False)
        self._set_comparing(self.session.state)

    def _connect(self) -> None:
        source, tools = self.source, self.tools
        source.drawn.connect(self._show_drawn)
        self.pages.grew.connect(self._share_out)
        self.pages.currentChanged.connect(self._share_out)
        self.pages.maps.counted.connect(self._share_out)
        source.failed.connect(self._show_reason)
        source.wantsAll.connect(self.session.fetch_all)
        source.progress.connect(self._show_progress)
        source.ordering.connect(self._show_ordering)
        source.atlasReady.connect(self._show_atlas)
        source.scoresReady.connect(self._show_scores)
        tools.changed.connect(self._on_choice)
        tools.compared.connect(self._on_compared)
        tools.coloured.connect(self._on_coloured)
        tools.drawing.connect(self._draw)
        self.drawing.switched.connect(tools.draw.setChecked)
        tools.goTo.connect(self.begin_go_to)
        tools.zoomed.connect(lambda factor: self.pages.walked.zoom(factor))
        self.compare_bar.changed.connect(self._on_choice)
        self.heads.changed.connect(self._on_choice)
        self.heads.ordered.connect(self._on_order)
        self.heads.go_to.wanted.connect(self._go_to)
        self.heads.go_to.left.connect(self._end_go_to)
        source.ranked.connect(self._show_ranking)
        for finder in (self.heads.finder, tools.finder):
            finder.wanted.connect(self.find_head)
        for heads in (self.heads.go_to, self.heads.atlas):
            heads.picked.connect(lambda layer, head: self.session.select(layer=layer, head=head))
        self.heads.atlas.hovered.connect(self._on_head_hovered)
        self.heads.atlas.menuAsked.connect(self._show_head_menu)
        maps, arcs, row = self.pages.maps, self.pages.arcs, self.pages.row
        maps.hovered.connect(self._on_hovered)
        maps.menuAsked.connect(self._show_cell_menu)
        arcs.moved.connect(self._on_token_hovered)
        row.hovered.connect(self._on_key_hovered)
        maps.picked.connect(self._on_picked)
        arcs.picked.connect(self._on_picked)
        row.picked.connect(lambda key: self.session.select(key=key))

    # -- room

    def _share_out(self) -> None:
        """In front of a class the map fills its height, and the heads take the width it leaves."""
        if for_back_row():
            later(self, self._split_for_class)  # once the parts have their height

    def _split_for_class(self) -> None:
        if not for_back_row():
            return
        whole = self._split.width() - self._split.handleWidth()
        filled = self.pages.filled_width()
        least = self.heads.minimumSizeHint().width()
        heads = least if filled is None else max(least, min(whole - filled, whole // 2))
        self._split.setSizes([heads, whole - heads])

    # -- state

    def show_state(self, old: State | None, new: State) -> None:
        before, self._look = self._look, new.shown
        look = self._look
        if look is None:
            self._set_comparing(new)
            self._forget()
            self.show_empty()
            return
        same_head = before is not None and (before.layer, before.head) == (look.layer, look.head)
        if same_head and old is not None and only_points(old, new):
            self._mark(look, before)
            self.comparing.point(new)
            return
        self._set_comparing(new)
        self._follow_tokens(look.trace)
        if not same_head:
            self.heads.atlas.set_selected(look.layer, look.head)
            self.heads.go_to.set_selected(look.layer, look.head)
        if before is not None and not look.same_passes(before):
            self._rank_again(look)
        self.source.show(
            MapRequest(
                look=look,
                figure=self.tools.chosen_figure,
                beside=self.comparing.beside(new),
                other=look.other,
                scale=self.tools.chosen_scale,
                arcs=self.tools.chosen_view == "arcs",
                which=self.heads.which,
                far_atlas=new.atlas_from_engine,
            )
        )
        self._mark(look, before)
        self.comparing.show_state(new)
        if self.comparing.on(new):
            self.pages.set_note(self.comparing.missing(new) or self.tr("being computed"))
        if self.measured.chosen:
            self._follow_measured(new)
        self.heads.atlas.set_changed(words.changed_heads(look.trace.request))
        self._show_drawing(look)
        if self.empty:
            self.show_content()

    def _show_drawing(self, look: Shown) -> None:
        """Marks are those of one head, and it alone is drawn on."""
        of_head = self.tools.chosen_figure in ("head", "sinkless")
        if self.drawing.on and not (of_head and self.tools.chosen_view == "maps"):
            self.drawing.switch(False)
        self.drawing.show_state(look if of_head else None)
        self.tools.offer_drawing(self.drawing.refusal())

    def _set_comparing(self, state: State) -> None:
        self.comparing.follow(state)
        on = self.comparing.on(state)
        if self.tools.compare.isChecked() != on:
            self.tools.compare.setChecked(on)
        self.heads.set_comparing(on, self.compare_bar.beside)
        beside = {
            "mask": self.tr("Orange: more without the mask. Blue: less."),
            "form": self.tr("Orange: more as it is than in float32. Blue: less."),
            "interventions": self.tr("Orange: more with the interventions. Blue: less."),
        }
        self.set_explanation(beside[self.comparing.of] if on else self.tr(self.EXPLANATION))

    def _forget(self) -> None:
        self.source.forget()
        self.drawing.show_state(None)
        self._drawn = self._over = self._scores = None
        self.measured.forget()
        self.heads.atlas.set_order(None)
        self.heads.atlas.set_doing("")
        self.heads.go_to.say("")

    def _follow_tokens(self, trace: Trace) -> None:
        tokens = trace.tokens
        if tokens != self._tokens:
            self._labels = extended(self._tokens, self._labels, tokens)
            self._tokens = tokens

    def _mark(self, look: Shown, before: Shown | None) -> None:
        self.pages.set_marks(look.query, look.key)
        self.tools.name.setText(words.title(self.tools.chosen_figure, look.layer, look.head))
        moved = before is None or before.query != look.query
        if moved and self._drawn is not None and self.tools.chosen_view == "row":
            self._show_page()
        self._read()

    @property
    def _query(self) -> int | None:
        """The slot whose row is read."""
        return None if self._look is None else self._look.query

    def set_simple(self, on: bool) -> None:
        """The map alone, or all heads beside it and every choice over it."""
        self.heads.setVisible(not on)
        self.tools.set_simple(on)

    # -- what was worked out

    def _show_drawn(self, drawn: DrawnMaps) -> None:
        self._drawn = drawn
        self._show_page()
        self._show_caveat()
        self._read()

    def _show_page(self) -> None:
        """Draw what there is in the view that is chosen; the others wait until they are."""
        drawn, view = self._drawn, self.tools.chosen_view
        if drawn is None:
            return
        self._view = view
        padding = [i for i, token in enumerate(self._tokens) if token.origin == "padding"]
        self.pages.turn_to(view).show_drawn(drawn, self._labels, padding, self._query or 0)
        if self._part and view == "maps":
            later(self, self._show_part)  # once the page has its size
        state = self.session.state
        if self.comparing.on(state) and (why := self.comparing.missing(state)):
            self.pages.set_note(why)

    def _show_caveat(self, progress: str = "") -> None:
        said = progress or words.caveat(self.tools.chosen_figure) or self.measured.problem
        if not said and self._scores is not None:
            said = words.strongest(self._scores)
        self.caveat.setVisible(bool(said))
        self.caveat.setText(said)

    def _show_progress(self, share: float) -> None:
        if share < 1:
            self._show_caveat(self.tr("Computing: {0}").format(progress_percent(share)))

    def _show_ordering(self, share: float) -> None:
        self.heads.atlas.set_doing(self.tr("sorting: {0}").format(progress_percent(share)))

    def _show_atlas(self, atlas: Atlas | None, sheet: Sheet | None) -> None:
        scores = self._scores
        if atlas is not None and not atlas.signed and scores is not None:
            self._scores = scores if scores.heads == atlas.heads else None  # of another model
        self.heads.show_atlas(atlas, self._scores, sheet)

    def _show_scores(self, scores: HeadScores) -> None:
        self._scores = scores
        self.heads.atlas.set_doing("")
        self.heads.show_order(scores)
        if self._best_wanted and scores.rows:
            layer, head = scores.order()[0]
            self.session.select(layer=layer, head=head)
        self._best_wanted = False
        self._show_caveat()

    def _show_reason(self, sentence: str) -> None:
        self._drawn = None
        self.pages.show_reason(sentence)
        self._show_caveat()
        self._read()

    # -- reading

    def _on_hovered(self, cell: tuple[int, int] | None) -> None:
        read = self._cell_words if self.tools.chosen_view == "row" else self._map_words
        self._over = None if cell is None else lambda: read(*cell)
        self.session.select(key=None if cell is None else cell[1])
        self._read()

    def _on_token_hovered(self, token: int | None) -> None:
        self._over = None if token is None else lambda: self._token_words(token)
        self.session.select(key=token)
        self._read()

    def _on_key_hovered(self, key: int | None) -> None:
        self._on_hovered(None if key is None or self._query is None else (self._query, key))

    def _on_head_hovered(self, at: tuple[int, int] | None) -> None:
        self._over = None if at is None else lambda: self._head_words(*at)
        self._read()

    def _on_picked(self, query: int, key: int) -> None:
        assert self._look is not None
        readout = self._look.last_pass.readout
        self.session.select(query=None if query == readout else query, key=key)

    def _cell_words(self, query: int, key: int) -> str:
        return "" if self._drawn is None else words.cell(self._drawn, self._labels, query, key)

    def _map_words(self, query: int, key: int) -> str:
        drawn = self._drawn
        if drawn is None:
            return ""
        said = words.cell_in_row(drawn, self._labels, query, key)
        changed = self.drawing.cell_words(query, key)
        return " · ".join(filter(None, [changed, said, scales.reading(drawn, query)]))

    def _token_words(self, token: int) -> str:
        drawn = self._drawn
        if drawn is None or token >= drawn.request.look.slots:
            return ""
        return words.row(drawn, self._labels, token)

    def _head_words(self, layer: int, head: int) -> str:
        if self._look is None or self._query is None:
            return ""
        said = words.head(self._look, self._scores, self._labels, self._query, layer, head)
        return words.with_change(said, self._look.trace.request, layer, head)

    def _read(self) -> None:
        """The line below: what the cursor is on, else what the selected query reads."""
        if self._over is not None:
            self.readout.setText(self._over())
        elif self._query is not None:
            self.readout.setText(self._token_words(self._query))

    # -- choices

    def _on_choice(self) -> None:
        if self._drawn is not None and self._view != self.tools.chosen_view:
            self._show_page()
        self._show_caveat()
        self.show_state(None, self.session.state)

    def _on_compared(self, on: bool) -> None:
        self.comparing.switch(on)
        self.show_state(None, self.session.state)

    def _on_coloured(self) -> None:
        self.pages.maps.set_colours(self.tools.colours)
        self.heads.atlas.set_colours(self.tools.colours, self.tools.chosen_scale)

    def find_head(self, kind: Order) -> None:
        """Put the heads in the order of `kind`, and select the best."""
        box = self.heads.order
        place = box.findData(kind)
        if box.currentIndex() == place:
            self._on_order()
        else:
            box.setCurrentIndex(place)

    def _show_head_menu(self, at: QPoint) -> None:
        """What can be changed at the selected head; there is nothing without a run."""
        if self._look is not None:
            self.head_menu = head_menu(self.session, self)
            self.head_menu.popup(at)

    def show_patch_menu(self) -> None:
        """What can be taken from other runs, over the map."""
        self.head_menu = patch_menu(self.session, self)
        self.head_menu.popup(self.pages.mapToGlobal(self.pages.rect().center()))

    def _show_cell_menu(self, query: int, key: int, at: QPoint) -> None:
        """What can be cut at a cell of the map."""
        drawn = None if self._drawn is None else self._drawn.maps[0]
        masked = drawn is not None and bool(drawn.map.kinds[query, key] == MASKED)
        self.head_menu = cell_menu(self.session, self, query, key, masked)
        self.head_menu.popup(at)

    def _follow_measured(self, state: State) -> None:
        """Show an order that the engine measures, as far as it is known of this step."""
        problem = self.measured.problem
        other, scores = self.measured.follow(state)
        self.heads.atlas.set_doing(self.measured.doing)
        if other and scores is not None:
            self._show_scores(scores)
            self.heads.atlas.set_doing(self.measured.doing)
        elif other:
            self._scores = None
            self.heads.atlas.set_order(None)
        if other or self.measured.problem != problem:
            self._show_caveat()

    def _on_order(self) -> None:
        self._scores = None
        self.measured.forget()
        self._best_wanted = self.heads.kind is not None
        self._show_caveat()
        if self.heads.kind is None:
            self.heads.atlas.set_order(None)
        self.heads.atlas.set_doing("")
        self.heads.atlas.to_top()
        kind = self.heads.kind
        self.source.set_kind(None if kind == "effect" or kind == "contribution" else kind)
        if not self._choosing:
            self.measured.ask()
        if self.measured.chosen:
            self._follow_measured(self.session.state)

    def draw_mask(self) -> None:
        """Begin to draw on the map of one head, or stop."""
        self._draw(not self.drawing.on)

    def _draw(self, on: bool) -> None:
        if on and self._look is not None:
            for box, value in ((self.tools.view, "maps"), (self.tools.figure, "head")):
                if value == "maps" or self.tools.chosen_figure != "sinkless":
                    box.setCurrentIndex(box.findData(value))
            self.pages.take_focus()
        self.drawing.switch(on and self._look is not None and not self.drawing.refusal())
        self.tools.draw.setChecked(self.drawing.on)

    def begin_go_to(self) -> None:
        """Ask for a token to go to."""
        if not self.empty:
            self.heads.go_to.begin()

    def compare(self) -> None:
        """Switch the comparison with and without the mask on or off."""
        self._compare_with("run", self.comparing.of == "mask")

    def compare_forms(self) -> None:
        """Switch the comparison of a file as it is and in float32 on or off."""
        self._compare_with("form", self.comparing.of == "form")

    def compare_interventions(self) -> None:
        """Switch the comparison with and without interventions on or off."""
        self._compare_with("interventions", self.comparing.of == "interventions")

    def _compare_with(self, beside: Beside, chosen: bool) -> None:
        on = not (chosen and self.comparing.on(self.session.state))
        if on and not chosen:
            self.compare_bar.choose(beside)
        self._on_compared(on)

    def _end_go_to(self) -> None:
        self.heads.go_to.hide()
        self.pages.take_focus()

    def _go_to(self, query: str, key: str) -> None:
        """Select a token by its number, or the next one that holds a text; or a query and a key."""
        look = self._look
        if look is None:
            return
        slots = self._labels[: look.slots]
        row = find(query, slots, self._query or 0)
        # A key is looked for up to its query first: what comes later is masked in most models.
        column = None if row is None else find(key, slots[: row + 1]) if key else row
        column = find(key, slots) if column is None and key else column
        if row is None or column is None:
            self.heads.go_to.say(
                self.tr(
                    "No token matches '{0}'. Enter a position from 0 to {1}, or some text."
                ).format(query if row is None else key, look.slots - 1)
            )
            return
        self._on_picked(row, column)
        if key:
            self.pages.walked.go_to(row, column)
            self.source.rank(look, row, column)
        else:
            self._end_go_to()
            self.pages.walked.go_to(row, column)

    def _show_ranking(self, found: Ranking) -> None:
        self.heads.go_to.show_ranking(found, self._labels)
        if self._look is not None:
            self.heads.go_to.set_selected(self._look.layer, self._look.head)
        self.heads.go_to.heads.scrollToTop()  # the best are what was asked for

    def _rank_again(self, look: Shown) -> None:
        """The same pair in other passes, as far as they have read both."""
        found = self.heads.go_to.ranking
        if found is None:
            return
        if max(found.query, found.key) < look.slots:
            self.source.rank(look, found.query, found.key)
        else:
            self.heads.go_to.say("")

    # -- what a session's file keeps

    def choices(self) -> dict[str, str | float]:
        part = self.pages.maps.view.part
        return {
            **{name: str(box.currentData()) for name, box in self._lists().items()},
            "colours": self.tools.colours,
            **({} if part is None else dict(zip(_PART, part, strict=True))),
        }

    def choose(self, choices: Mapping[str, str | float]) -> None:
        self._choosing = True
        for name, box in self._lists().items():
            values = [str(box.itemData(place)) for place in range(box.count())]
            if choices.get(name) in values:
                box.setCurrentIndex(values.index(str(choices[name])))
        self._choosing = False
        self._best_wanted = False  # a file names its own head
        self.tools.choose(colours=str(choices.get("colours")))
        part = [choices.get(name) for name in _PART]
        self._part = [one for one in part if isinstance(one, float)]
        self.pages.walked.zoom(0)

    def _lists(self) -> dict[str, QComboBox]:
        return {
            "view": self.tools.view,
            "figure": self.tools.figure,
            "scale": self.tools.scale,
            "order": self.heads.order,
            "side": self.heads.side,
            "beside": self.compare_bar.choice,
        }

    def _show_part(self) -> None:
        """The part of the map that a file was left at, once there is a map."""
        part, self._part = self._part, []
        if len(part) == len(_PART):
            self.pages.maps.show_part(*part)

    # -- copy and save

    def views(self) -> Mapping[str, View]:
        names = {"maps": self.tr("Attention map"), "arcs": self.tr("Arcs"), "row": self.tr("Row")}
        view = self.tools.chosen_view
        shown = {
            names[view]: View(
                self.pages.by_view[view], self._table, self._array, self._shown(), self._about()
            ),
            self.tr("All heads"): View(self.heads.atlas, self._heads_table),
        }
        if self.heads.go_to.ranking is not None:
            box = self.heads.go_to
            shown[self.tr("Heads of one query and key")] = View(box.heads, box.table)
        if self.comparing.on(self.session.state):
            shown[self.tr("Next token, both runs")] = View(self.tray.next, self.tray.next.table)
            shown[self.tr("Prefix experiment")] = View(self.tray.prefix, self.tray.prefix.table)
        return shown

    def _shown(self) -> str:
        """What is on screen, for the name of a file."""
        if self._drawn is None:
            return ""
        row = self._query if self.tools.chosen_view == "row" else None
        return words.shown(self._drawn, row)

    def _heads_table(self) -> Iterator[Sequence[object]]:
        scores = None if self.heads.kind is None else self._scores
        return tables.heads(self.heads.shown, scores)

    def _about(self) -> str:
        """The same for the caption, with the scale of the colours."""
        if self._drawn is None:
            return ""
        view = self.tools.chosen_view
        said = words.shown(self._drawn, self._query if view == "row" else None, step=False)
        scale = scales.name(self._drawn.request.scale)
        return said if view == "row" else self.tr("{0} · colours: {1}").format(said, scale)

    def _array(self) -> Callable[[], np.ndarray]:
        """The whole map, or with, without and difference; of the row view its row alone."""
        drawn, query = self._drawn, self._query or 0
        if drawn is None:
            return lambda: np.zeros((0, 0), np.float32)
        if self.tools.chosen_view == "row":
            return lambda: tables.array(drawn)[..., query, :]
        return lambda: tables.array(drawn)

    def _table(self) -> Iterator[Sequence[object]]:
        """The figures of what is shown; in a comparison one block for each side."""
        if self._drawn is None:
            return iter(())
        if self.tools.chosen_view == "row":
            return tables.row(self._drawn, self._labels, self._query or 0)
        return tables.maps(self._drawn, self._labels)
