"""Block: what one layer computes for one token, stage by stage, with the numbers of this run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QSplitter, QWidget

from explorer.figures.drawing.colormaps import difference
from explorer.figures.inside import block as figures
from explorer.figures.text import tokens
from explorer.figures.text.tokens import Label
from explorer.session.selection import Shown
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.inside.walk import LayerStage, LayerWalk, WalkLayer
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.ramp import Ramp
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.asking import Asking, Question
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.block import words
from explorer.ui.panels.block.details import StageDetails
from explorer.ui.panels.block.stage_list import StageList, StageRow
from explorer.ui.panels.block.stage_words import stage_words

_ABREAST_FROM = 430  # pixels of width at a zoom of 1: from there the stage stands beside the list


class BlockPanel(Panel):
    """Asks for the layer and the token that are looked at, while it is seen."""

    ID = "block"
    TITLE = QT_TRANSLATE_NOOP("BlockPanel", "Block")
    TERM = "block"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "BlockPanel", "What one layer computes for one token, stage by stage"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "BlockPanel",
        "Type a prompt and press Step (Space) to walk through a layer, stage by stage.",
    )
    NEEDS = (
        *Panel.NEEDS, "measured", "refused", "status.activity", "status.experiment",
        "selection.query", "selection.layer", "selection.head", "selection.key", "card", "opened",
    )  # fmt: skip

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._walk: LayerWalk | None = None
        self._shown: Shown | None = None
        self._labels: Sequence[Label] = ()
        self._stage = ("residual stream", 0)  # the chosen one: its name, and which of that name
        self._key: int | None = None  # slot that was clicked
        self._drawn: object = None
        self._asking = Asking(self, session, self._wanted)
        self._headline = ResultLabel()
        self._low, self._high, self._ramp = QLabel("−"), QLabel("+"), Ramp(difference(theme.dark))
        scale = QWidget()
        boxes.line(scale, self._low, self._ramp, self._high, gap=4)
        scale.setToolTip(
            self.tr("Colours of a strip: from minus to plus its largest number. Grey: hidden.")
        )
        self.list = StageList(theme)
        self.list.setAccessibleName(self.tr("Stages of the block"))
        self.list.picked.connect(self._choose_row)
        self.details = StageDetails(theme)
        self.details.picked.connect(lambda head: self.session.select(head=head))
        self.details.keyPicked.connect(self._go_to)
        self._parts = QSplitter(Qt.Orientation.Horizontal)
        self._parts.setChildrenCollapsible(False)
        for place, part in enumerate((self.list, self.details)):
            self._parts.addWidget(part)
            self._parts.setStretchFactor(place, (3, 4)[place])
        self.details.resized.connect(self._refit)
        self._added = SentenceLabel(look="small")
        self.content.setSpacing(3)
        self.content.addLayout(boxes.line(None, (self._headline, 1), scale, gap=6))
        self.content.addWidget(self._parts, 1)
        self.content.addWidget(self._added)

    # -- showing

    def show_state(self, old: State | None, new: State) -> None:
        super().show_state(old, new)
        self._asking.later()

    def draw(self, new: State) -> None:
        shown = self._shown = new.shown
        found = new.result(LayerWalk)
        place = None if shown is None else (shown.layer, shown.query)
        if shown is None or found is None or (found.layer, found.slot) != place:
            self._walk = None
            self._drawn = None
            self.show_empty(self._reason(new), refused=bool(new.refusal(WalkLayer)))
            return
        if found is not self._walk:
            self._walk, self._key, self._drawn = found, None, None
        if len(self._labels) != shown.slots or self._drawn is None:
            self._labels = tokens.labels(shown.trace.tokens[: shown.slots])
        self._draw()
        self.show_content()

    def _reason(self, new: State) -> str:
        if new.shown is None:
            return ""
        if not new.model_of_run:
            return self.tr("Only the model of this run can walk through its layers. Open it first.")
        refused = new.refusal(WalkLayer) or self._asking.held_up(new)
        if refused or not self._asking.settled(new):
            return refused or self.tr("Walking through the layer…")
        return self.tr("This layer was not read. Select another layer or token.")

    @property
    def walk(self) -> LayerWalk | None:
        """What is shown; None = nothing is."""
        return self._walk

    @property
    def stage(self) -> LayerStage | None:
        """The stage that is enlarged."""
        walk = self._walk
        return None if walk is None else walk.stages[self._row(walk)]

    def _heads(self) -> tuple[int, int]:
        """The head looked at, and how many query heads this layer has."""
        shown = self._shown
        assert shown is not None
        records = shown.last_pass.layers
        heads = records[shown.layer].heads if shown.layer < len(records) else 0
        return shown.head, heads or shown.trace.card.heads

    def _row(self, walk: LayerWalk) -> int:
        """The chosen stage of this walk; the same one of another layer, if it has it."""
        name, which = self._stage
        rows = [row for row, one in enumerate(walk.stages) if one.name == name]
        return rows[min(which, len(rows) - 1)] if rows else 0

    def _draw(self) -> None:
        walk = self._walk
        assert walk is not None
        head, heads = self._heads()
        wrap = self.details.wrap
        drawn = walk, head, heads, self._row(walk), wrap
        if self._drawn != drawn:
            self._drawn = drawn
            self._headline.setText(words.headline(walk, self._label(walk.slot)))
            self._added.setText(words.added(walk))
            self.list.show_rows(list(_rows(walk, head, heads)), self._row(walk))
            stage = walk.stages[self._row(walk)]
            self.details.show_stage(
                stage,
                figures.grid(stage, head, heads, wrap),
                [label.text for label in self._labels],
                figures.turned_pairs(walk, stage, head, heads),
                figures.experts(walk),
            )
        self._draw_terms()

    def _label(self, slot: int) -> str:
        return self._labels[slot].quoted if slot < len(self._labels) else ""

    def _draw_terms(self) -> None:
        """The products of the score of the key that is looked at; else of the one with most."""
        shown, walk, stage = self._shown, self._walk, self.stage
        assert shown is not None
        assert walk is not None
        if stage is None or stage.first_key is None or stage.numbers is None:
            return
        head, _ = self._heads()
        key = self._looked_at(stage, head)
        terms = figures.score_terms(shown.trace, shown.step, shown.layer, head, walk.slot, key)
        if terms is None:
            self.details.show_terms(None, "")
            return
        scores = next((one for one in walk.stages if one.name == "scores"), None)
        measured = None
        if scores is not None and scores.numbers is not None:
            measured = float(scores.numbers[head, key - (scores.first_key or 0)])
        told = words.score(terms, self._label(key), measured)
        self.details.show_terms(terms, told)

    def _looked_at(self, stage: LayerStage, head: int) -> int:
        shown = self._shown
        assert shown is not None
        assert stage.numbers is not None
        first = stage.first_key or 0
        for key in (shown.key, self._key):
            if key is not None and first <= key < first + stage.shape[1]:
                return key
        rows = stage.numbers
        return first + int(np.argmax(rows[min(head, len(rows) - 1)]))

    # -- wishes

    def _wanted(self, state: State) -> Question | None:
        """The layer and the token that are looked at, if they are not shown."""
        shown = state.shown
        if shown is None or shown.trace.tokens[shown.query].origin == "padding":
            return None
        found = state.result(LayerWalk)
        if found is not None and (found.layer, found.slot) == (shown.layer, shown.query):
            return None
        return WalkLayer, {"layer": shown.layer, "slot": shown.query}

    def _choose_row(self, row: int) -> None:
        walk = self._walk
        if walk is None:
            return
        name = walk.stages[row].name
        self._stage = name, sum(one.name == name for one in walk.stages[:row])
        self._draw()

    def _go_to(self, head: int, key: int) -> None:
        self._key = key
        self.session.select(head=head)
        self._draw_terms()

    # -- room and colours

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        abreast = self.width() >= _ABREAST_FROM * unit(self)
        wanted = Qt.Orientation.Horizontal if abreast else Qt.Orientation.Vertical
        if self._parts.orientation() != wanted:
            self._parts.setOrientation(wanted)

    def _refit(self) -> None:
        """Wrap vectors where the room ends now."""
        if self._walk is not None:
            self._draw()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._ramp.set_colours(difference(theme.dark))

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {"stage": self._stage[0], "numbers": float(self.details.numbers.isChecked())}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        stage, numbers = choices.get("stage"), choices.get("numbers")
        if isinstance(stage, str):
            self._stage = stage, 0
        if numbers in (0.0, 1.0):
            self.details.numbers.setChecked(bool(numbers))
        if self._walk is not None:
            self._draw()

    def views(self) -> Mapping[str, View]:
        walk, stage = self._walk, self.stage
        if walk is None or stage is None:
            return {}
        of = self.tr("layer {0}").format(walk.layer)
        details = self.details
        found = {
            self.tr("Stages of the block"): View(
                self.list, lambda: figures.stage_table(walk), of=of
            ),
            self.tr("Numbers of the stage"): View(
                details.pages, lambda: figures.number_table(stage), of=of
            ),
        }
        terms = details.shown_terms
        if terms is not None:
            found[self.tr("Products of a score")] = View(
                details.terms, lambda: figures.term_table(terms), of=of
            )
        return found


def _rows(walk: LayerWalk, head: int, heads: int) -> Iterator[StageRow]:
    for stage in walk.stages:
        said = stage_words(stage)
        strip = figures.strip(stage, head, heads)
        finite = np.abs(strip[np.isfinite(strip)])
        yield StageRow(
            title=said.title,
            term=said.term,
            group=said.group,
            shape=words.shape(stage),
            norm=f"{stage.norm:z.3g}",
            strip=strip,
            top=float(finite.max(initial=0.0)),
            share=figures.is_share(stage),
            told=words.told(stage),
        )
