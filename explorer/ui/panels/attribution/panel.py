"""Attribution: a logit as the sum of what each head and MLP adds to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from explorer.figures.drawing.board import NO_CELLS, BoardCell, CellsFigure
from explorer.figures.inside import attribution as figures
from explorer.session.selection import Shown
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.inside.attribution import Attribute, Attribution, LogitPart
from explorer.ui.canvases.charts.axis import Axis, plain
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.charts.marks import Bars, Figure, LegendEntry, Line, Paint
from explorer.ui.canvases.charts.ranked_bars import RankedBars, RankedRow
from explorer.ui.kit import forms
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.asking import Asking, Question
from explorer.ui.panel.board_panel import BoardPanel
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.attribution import words
from explorer.ui.panels.attribution.token_list import TokenList
from explorer.wording import signed

_CHOICES = 10  # tokens to choose from
_BOTH_FROM = 560  # pixels at a zoom of 1: the ranking stands beside the map
_PAGES = ("heads", "ranking", "layers")


class AttributionPanel(BoardPanel):
    """Asks for the position that is looked at by itself; a map, a ranking, or sums by layer."""

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
        "selection.layer", "selection.head", "card", "opened", "names",
    )  # fmt: skip

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._found: Attribution | None = None
        self._map = figures.PartsMap((), np.zeros((0, 0)))
        self._ranked: list[LogitPart] = []
        self._layers = 0
        self._offered: object = None  # what can be chosen
        self._asking = Asking(self, session, self._wanted)
        self.token = TokenList(self.tr("Token whose logit is taken apart"))
        self.against = TokenList(self.tr("Token to compare it with"))
        for box in (self.token, self.against):
            box.changed.connect(self._choose_token)
        self.view = ComboBox()
        for page, text in zip(
            _PAGES,
            (self.tr("heads by layers"), self.tr("ranking"), self.tr("sums by layer")),
            strict=True,
        ):
            self.view.addItem(text, page)
        self.view.setAccessibleName(self.tr("How the parts are shown"))
        self.view.currentIndexChanged.connect(self._turn)
        row = forms.row(
            (self.tr("Token"), self.token), (self.tr("minus"), self.against),
            (self.tr("Show"), self.view),
        )  # fmt: skip
        self.board.setAccessibleName(self.tr("Attribution: layers by heads"))
        self.board.show_all()
        self.ranking = RankedBars(theme)
        self.ranking.setAccessibleName(self.tr("Attribution: all parts, the largest first"))
        self.ranking.hovered.connect(self._read_part)
        self.ranking.picked.connect(self._go_to_part)
        self.chart = Chart(theme, self._tip)
        self.chart.setAccessibleName(self.tr("Attribution by layer"))
        self.chart.picked.connect(lambda place: self._go_to_layer(place - 1))
        self._sum = SentenceLabel(look="small")
        both = QWidget()
        self._both = QHBoxLayout(both)
        self._both.setContentsMargins(0, 0, 0, 0)
        self._both.addWidget(self.board, 3)
        self._both.addWidget(self.ranking, 2)
        self.pages.addWidget(both)
        self.pages.addWidget(self.chart)
        self.content.addLayout(row)
        self.content.addWidget(self.words)
        self.content.addWidget(self.pages, 1)
        self.content.addWidget(self._sum)
        self._turn()

    # -- room

    def _turn(self) -> None:
        """The page that is chosen; the ranking stands beside the map where there is room."""
        page = self.view.currentData()
        self.pages.setCurrentIndex(int(page == "layers"))
        roomy = self.width() >= _BOTH_FROM * unit(self)
        self.board.setVisible(page != "ranking")
        self.ranking.setVisible(page == "ranking" or roomy)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._turn()

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
        self._offer(shown)
        found = new.result(Attribution)
        self._found = found if found is not None and self._answers(found, shown) else None
        if self._found is None:
            if found is not None:  # of other tokens: the lists to choose from stay in place
                self._draw_nothing(self._reason(new))
            else:
                self.show_empty(self._reason(new), refused=bool(new.refusal(Attribute)))
            return
        self._layers = shown.trace.card.layers
        self._map = figures.parts_map(self._found, self._layers)
        self._draw(self._found, shown.layer, shown.head)
        if why := new.refusal(Attribute):
            self.words.setText(why)
        self.show_content()

    def _asked(self, shown: Shown) -> tuple[int, int | None, int | None]:
        """Position, token and the one it is compared with; without a choice the step's own token.

        No token: the most likely one, at a position whose logits are not here.
        """
        chosen = self.token.token
        token = shown.chosen_id if chosen is None else chosen
        return shown.query, token, self.against.token

    def _answers(self, found: Attribution, shown: Shown) -> bool:
        """True if this is the sum that the lists ask for."""
        slot, token, against = self._asked(shown)
        if found.slot != slot or (found.against and found.against.id) != against:
            return False
        return token is None or found.target.id == token

    def _choose_token(self) -> None:
        if self.session.state.shown is not None:
            self.draw(self.session.state)
        self._asking.later()

    def _reason(self, new: State) -> str:
        if not new.model_of_run:
            return self.tr("Only the model of this run can take a logit apart. Open it first.")
        why = new.refusal(Attribute) or self._asking.held_up(new)
        return why or self.tr("Taking the logit apart…")

    def _offer(self, shown: Shown) -> None:
        """The most likely tokens of the step, where it is the step's own position, and others."""
        step = shown.last_pass
        named = {token.id: token for token in step.top}
        best = np.argsort(-step.logits, kind="stable")[: 4 * _CHOICES].tolist()
        own = shown.query == step.readout
        ids = tuple([i for i in best if i in named][:_CHOICES]) if own else ()
        names = self.session.state.names
        if (own, ids, names) == self._offered:
            return
        self._offered = own, ids, names
        likely = [named[token_id] for token_id in ids]
        first = self.tr("chosen token") if own else self.tr("most likely")
        self.token.offer(first, likely, names)
        self.against.offer(self.tr("nothing"), likely, names)

    def _draw(self, found: Attribution, layer: int, head: int) -> None:
        map_, top = self._map, self._map.top

        def cell(row: int, column: int) -> BoardCell | None:
            value = float(map_.values[row, column])
            return None if np.isnan(value) else BoardCell(signed(value, ".2f"), value / top)

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
        self._ranked = figures.ranked(found)
        self.ranking.show_rows([self._bar(part, (layer, head)) for part in self._ranked])
        self.chart.show_made(lambda: self._figure(found, layer))
        self.words.setText(words.headline(found))
        self._sum.setText(words.sum_words(found))

    def _draw_nothing(self, why: str) -> None:
        self.board.show_figure(NO_CELLS)
        self.ranking.show_rows(())
        self.chart.show_figure(None)
        self.words.setText(why)
        self._sum.setText("")
        self.show_content()

    def _bar(self, part: LogitPart, selected: tuple[int, int]) -> RankedRow:
        name = words.part_words(part.kind, part.layer, part.head)
        return RankedRow(
            name, part.value, words.number(part.value), words.added(name, part.value),
            part.head is not None and (part.layer, part.head) == selected,
        )  # fmt: skip

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
        return words.added(name, value)

    def headline(self) -> str:
        return "" if self._found is None else words.headline(self._found)

    def _read_part(self, row: int | None) -> None:
        if self._found is not None:
            self.words.setText(self.headline() if row is None else self.ranking.rows[row].words)

    # -- wishes

    def _wanted(self, state: State) -> Question | None:
        """The sum that the lists ask for, if it is not known."""
        shown = state.shown
        if shown is None or shown.trace.tokens[shown.query].origin == "padding":
            return None
        if self._found is not None and self._answers(self._found, shown):
            return None
        slot, token, against = self._asked(shown)
        return Attribute, {"slot": slot, "token": token, "against": against}

    def go_to(self, row: int, column: int) -> None:
        self._go_to_layer(row, self._map.columns[column][1])

    def _go_to_layer(self, layer: int, head: int | None = None) -> None:
        if 0 <= layer < self._layers:
            self.session.select(layer=layer, **({} if head is None else {"head": head}))

    def _go_to_part(self, row: int) -> None:
        part = self._ranked[row]
        if part.layer is not None:
            self._go_to_layer(part.layer, part.head)

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {"page": self.view.currentData()}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        page = choices.get("page")
        if page in _PAGES:
            self.view.setCurrentIndex(_PAGES.index(page))

    def views(self) -> Mapping[str, View]:
        found = self._found
        if found is None:
            return {}
        return {
            self.tr("Attribution by head"): View(self.board, lambda: figures.table(found)),
            self.tr("Attribution, ranked"): View(
                self.ranking, lambda: figures.table(found, in_order=True)
            ),
            self.tr("Attribution by layer"): View(self.chart, lambda: figures.table(found)),
        }
