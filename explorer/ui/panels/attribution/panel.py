"""Attribution: a logit as the sum of what each head and MLP adds to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtWidgets import QToolButton, QWidget

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.figures.inside import attribution as figures
from explorer.figures.text.tokens import written
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.inside.attribution import Attribute, Attribution
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Bars, Figure, LegendEntry, Line, Paint
from explorer.ui.canvases.tokens.cell_board import CellBoard
from explorer.ui.kit import forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.asking import Asking, Question
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.attribution import words

_CHOICES = 10  # tokens to choose from


class AttributionPanel(Panel):
    """Asks for the position that is looked at by itself; a map of heads, or sums by layer."""

    ID = "attribution"
    TITLE = QT_TRANSLATE_NOOP("AttributionPanel", "Attribution")
    TERM = "attribution"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP("AttributionPanel", "What each head and MLP adds to a logit")
    EMPTY = QT_TRANSLATE_NOOP(
        "AttributionPanel",
        "Type a prompt and press Step (Space) to see which parts of the model make a logit.",
    )
    NEEDS = (
        *Panel.NEEDS, "measured", "refused", "status.activity", "selection.query",
        "selection.layer", "selection.head", "card", "opened",
    )  # fmt: skip

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._found: Attribution | None = None
        self._map = figures.PartsMap((), np.zeros((0, 0)))
        self._layers = 0
        self._slot = 0
        self._offered: tuple[int, ...] = ()  # ids that can be chosen
        self._asking = Asking(self, session, self._wanted)
        self.token, self.against = ComboBox(), ComboBox()
        self.token.setAccessibleName(self.tr("Token whose logit is taken apart"))
        self.against.setAccessibleName(self.tr("Token to compare it with"))
        for box in (self.token, self.against):
            box.currentIndexChanged.connect(self._asking.later)
        self.by_layer = QToolButton()
        self.by_layer.setText(self.tr("By layer"))
        self.by_layer.setToolTip(self.tr("Show the sums of each layer instead of the heads"))
        self.by_layer.setCheckable(True)
        row = forms.row(
            (self.tr("Token"), self.token), (self.tr("minus"), self.against), ("", self.by_layer)
        )
        self._words = ResultLabel()
        self.board = CellBoard(theme)
        self.board.setAccessibleName(self.tr("Attribution: layers by heads"))
        self.board.hovered.connect(self._read_out)
        self.board.picked.connect(self._go_to)
        self.chart = Chart(theme, self._tip)
        self.chart.setAccessibleName(self.tr("Attribution by layer"))
        self.chart.picked.connect(lambda place: self._go_to(place - 1))
        self._sum = SentenceLabel(look="small")
        self.pages = OneOf()
        self.by_layer.toggled.connect(lambda on: self.pages.setCurrentIndex(int(on)))
        self.pages.addWidget(self.board)
        self.pages.addWidget(self.chart)
        self.content.setSpacing(3)
        self.content.addLayout(row)
        self.content.addWidget(self._words)
        self.content.addWidget(self.pages, 1)
        self.content.addWidget(self._sum)

    # -- showing

    def show_state(self, old: State | None, new: State) -> None:
        super().show_state(old, new)
        self._asking.later()

    def draw(self, new: State) -> None:
        shown = new.shown
        if shown is None:
            self._found = None
            self.show_empty()
            return
        self._offer(new)
        found = new.result(Attribution)
        self._found = found if found is not None and found.slot == shown.query else None
        if self._found is None:
            self.show_empty(self._reason(new))
            return
        self._layers = shown.trace.card.layers
        self._map = figures.parts_map(self._found, self._layers)
        self._draw(self._found, shown.layer, shown.head)
        if why := new.refusal(Attribute):
            self._words.setText(why)
        self.show_content()

    def _reason(self, new: State) -> str:
        if not new.model_of_run:
            return self.tr("Only the model of this run can take a logit apart. Open it first.")
        return new.refusal(Attribute) or self.tr("Taking the logit apart…")

    def _offer(self, new: State) -> None:
        """The most likely tokens of the step, where it is the step's own position."""
        shown = new.shown
        assert shown is not None
        step = shown.trace.steps[shown.step]
        named = {token.id: token for token in step.top}
        best = np.argsort(-step.logits, kind="stable")[: 4 * _CHOICES].tolist()
        own = shown.query == step.readout
        ids = tuple([i for i in best if i in named][:_CHOICES]) if own else ()
        self._slot = shown.query
        if ids == self._offered and self.token.count():
            return
        self._offered = ids
        for box, first in (
            (self.token, self.tr("most likely")),
            (self.against, self.tr("nothing")),
        ):
            box.blockSignals(True)
            box.clear()
            box.addItem(first, None)
            for token_id in ids:
                box.addItem(written(named[token_id]), token_id)
            box.blockSignals(False)

    def _draw(self, found: Attribution, layer: int, head: int) -> None:
        map_, top = self._map, self._map.top

        def cell(row: int, column: int) -> BoardCell | None:
            value = float(map_.values[row, column])
            return None if np.isnan(value) else BoardCell(f"{value:+.2f}", value / top)

        self.board.show_figure(
            CellsFigure(
                rows=[str(row) for row in range(self._layers)],
                columns=[words.column_words(column) for column in map_.columns],
                cell=cell,
                words=self._cell_words,
                corner=self.tr("layer"),
                signed=True,
                wide=48,
            )
        )
        self.board.set_selected(layer, head if head < len(map_.columns) else None)
        self.chart.show_made(lambda: self._figure(found, layer))
        self._words.setText(words.headline(found))
        self._sum.setText(words.sum_words(found))

    def _figure(self, found: Attribution, layer: int) -> Figure:
        """The embedding at 0, layer n at n + 1, what belongs to no layer at the end."""
        mixing, rest = figures.by_layer(found, self._layers)
        places = np.arange(self._layers + 2, dtype=np.float64)
        before, after = self._ends(found)
        both = np.concatenate([mixing, rest, [before, after, 0.0]])
        low, high = float(both.min()) * 1.06, float(both.max()) * 1.06
        inside, zero = places[1:-1], np.zeros(self._layers)
        return Figure(
            x=Axis(self.tr("layer"), self._place_words, whole=True),
            y=Axis(self.tr("added to the logit"), plain),
            places=places,
            x_range=(-0.5, self._layers + 1.5),
            y_range=(low, high if high > low else low + 1),
            bars=(
                Bars(self.tr("attention"), inside - 0.2, zero, mixing, Paint("prefill"), 0.4),
                Bars(self.tr("MLP"), inside + 0.2, zero, rest, Paint("decode"), 0.4),
                Bars(self.tr("no layer"), places[[0, -1]], np.zeros(2),
                     np.array([before, after]), Paint("rest"), 0.6),
            ),
            lines=(self._zero(),),
            legend=(
                LegendEntry(self.tr("attention"), "prefill"),
                LegendEntry(self.tr("MLP"), "decode"),
                LegendEntry(self.tr("embedding, bias"), "rest"),
            ),
            marked=(layer + 0.5, layer + 1.5),
        )  # fmt: skip

    def _zero(self) -> Line:
        ends = np.array([-0.5, self._layers + 1.5])
        return Line(self.tr("zero"), ends, np.zeros(2), Paint("muted"), 1.0, read=False)

    def _ends(self, found: Attribution) -> tuple[float, float]:
        """What the embedding adds, and all else that belongs to no layer."""
        parts = figures.outside(found)
        before = sum(part.value for part in parts if part.kind == "embedding")
        return before, sum(part.value for part in parts) - before

    def _place_words(self, place: float) -> str:
        if place <= 0:
            return words.kind_words("embedding")
        return words.kind_words("bias") if place > self._layers else str(int(place) - 1)

    def _tip(self, place: int) -> str:
        found = self._found
        if found is None:
            return ""
        if 1 <= place <= self._layers:
            mixing, rest = figures.by_layer(found, self._layers)
            return self.tr("Layer {0}: attention {1}, MLP {2}").format(
                place - 1, words.number(mixing[place - 1]), words.number(rest[place - 1])
            )
        first = place == 0
        parts = [p for p in figures.outside(found) if (p.kind == "embedding") == first]
        return ", ".join(map(words.of, parts)) or self._place_words(place)

    def _cell_words(self, row: int, column: int) -> str:
        kind, head = self._map.columns[column]
        value = float(self._map.values[row, column])
        name = words.part_words(kind, row, head)
        if np.isnan(value):
            return self.tr("{0}: this layer has none").format(name)
        return self.tr("{0} adds {1} to the logit").format(name, words.number(value))

    def _read_out(self, at: tuple[int, int] | None) -> None:
        if self._found is not None:
            told = words.headline(self._found) if at is None else self._cell_words(*at)
            self._words.setText(told)

    # -- wishes

    def _wanted(self, state: State) -> Question | None:
        """The logit at the position that is looked at, of the tokens that were chosen."""
        shown = state.shown
        if shown is None or shown.trace.tokens[shown.query].origin == "padding":
            return None
        token, against = self.token.currentData(), self.against.currentData()
        return Attribute, {"slot": shown.query, "token": token, "against": against}

    def _go_to(self, layer: int, column: int | None = None) -> None:
        head = None if column is None else self._map.columns[column][1]
        if 0 <= layer < self._layers:
            self.session.select(layer=layer, **({} if head is None else {"head": head}))

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {"page": "layers" if self.by_layer.isChecked() else "heads"}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        if choices.get("page") in ("layers", "heads"):
            self.by_layer.setChecked(choices["page"] == "layers")

    def views(self) -> Mapping[str, View]:
        found = self._found
        if found is None:
            return {}
        return {
            self.tr("Attribution by head"): View(self.board, lambda: figures.table(found)),
            self.tr("Attribution by layer"): View(self.chart, lambda: figures.table(found)),
        }
