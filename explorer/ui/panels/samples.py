"""Samples: what chance makes of a distribution, and what greedy misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from PySide6.QtWidgets import QPushButton, QWidget

from explorer.figures.text import tokens
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import DrawMany, Draws, SearchResult, SearchSequences
from explorer.ui.canvases.tokens.token_bars import BarRow, TokenBars
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import forms
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import TabWidget
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel, View
from explorer.wording import exact_percent, percent

_MOST_ROWS = 200


class DrawsPanel(Panel):
    """Both need the model; both are about the prefix of the step that is looked at."""

    ID = "draws"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("DrawsPanel", "Samples")
    TERM = "sampling"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "DrawsPanel",
        "Many samples from the same text, and a search for a more likely sequence than greedy",
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "DrawsPanel",
        "Type a prompt and press Step (Space). Then sample its continuation many times here.",
    )
    NEEDS = (*Panel.NEEDS, "measured", "sampling", "status.activity", "status.experiment")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._state: State | None = None
        self.bars = TokenBars(theme, (self.tr("exact"), self.tr("sampled")))
        self.bars.setAccessibleName(self.tr("Next token: exact probability and sampled share"))
        self.bars.capacityChanged.connect(self._show_draws)
        self._drawn_table = forms.table(self.tr("Sampled continuations"), 2)
        self.found_table = forms.table(self.tr("Greedy and the best sequence found"), 3)
        self._drawn_words, self._found_words = forms.words(), forms.words()
        self.tabs = TabWidget()
        self.tabs.addTab(self._build_draws(), self.tr("Sample many"))
        self.tabs.addTab(self._build_search(), self.tr("Better than greedy?"))
        self.content.addWidget(self.tabs, 1)

    def _build_draws(self) -> QWidget:
        self.count = forms.spin(self.tr("Number of samples"), 1, 100_000, 50)
        self.length = forms.spin(self.tr("Tokens per sample"), 1, 64, 5)
        self.draw_button = QPushButton(self.tr("Sample"))
        self.draw_button.setToolTip(self.tr("Uses the current sampling settings"))
        self.draw_button.clicked.connect(self._draw_many)
        self.stop_draws_button = self._stop_button()
        row = forms.row(
            (self.tr("Samples"), self.count), (self.tr("of"), self.length),
            (self.tr("tokens"), None), ("", self.draw_button), ("", self.stop_draws_button),
        )  # fmt: skip
        return forms.page(row, self._drawn_words, self.bars, self._drawn_table)

    def _build_search(self) -> QWidget:
        self._depth = forms.spin(self.tr("Number of tokens in the sequence"), 1, 16, 4)
        self._width = forms.spin(self.tr("Beam width"), 1, 64, 4)
        self._passes = forms.spin(self.tr("Maximum number of passes"), 1, 20_000, 200)
        self.search_button = QPushButton(self.tr("Search"))
        self.search_button.setToolTip(
            self.tr(
                "Beam search first, then the most likely prefixes, until no better "
                "sequence can exist"
            )
        )
        self.search_button.clicked.connect(self._begin_search)
        self._stop_search = self._stop_button()
        beam = TermLabel(self.tr("beam"), term="beam-search")
        row = forms.row(
            (self.tr("Tokens"), self._depth), (beam, self._width),
            (self.tr("passes"), self._passes), ("", self.search_button), ("", self._stop_search),
        )  # fmt: skip
        return forms.page(row, self._found_words, self.found_table)

    def _stop_button(self) -> QPushButton:
        """Beside the one that begins, never in its place: a second click would end it at once."""
        button = QPushButton(self.tr("Stop"))
        button.setEnabled(False)
        button.clicked.connect(self.session.cancel)
        return button

    def _draw_many(self) -> None:
        self.session.measure(DrawMany, count=self.count.value(), length=self.length.value())

    def _begin_search(self) -> None:
        self.session.measure(
            SearchSequences,
            length=self._depth.value(),
            width=self._width.value(),
            passes=self._passes.value(),
        )

    @property
    def _drawing(self) -> bool:
        return self._state is not None and self._state.status.experiment is DrawMany

    # -- showing

    def draw(self, new: State) -> None:
        self._state = new
        if new.shown is None:
            self.show_empty()
            return
        ready = new.model_is_free
        self.draw_button.setEnabled(ready and not new.sampling.takes_best)
        self.stop_draws_button.setEnabled(self._drawing)
        self.search_button.setEnabled(ready)
        self._stop_search.setEnabled(new.status.experiment is SearchSequences)
        self._show_draws()
        self._show_found()
        self.show_content()

    def set_theme(self, theme: Theme) -> None:
        super().set_theme(theme)
        self._show_draws()

    def choices(self) -> dict[str, str | float]:
        return {"tab": float(self.tabs.currentIndex())}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        tab = choices.get("tab")
        if isinstance(tab, float) and tab in range(self.tabs.count()):
            self.tabs.setCurrentIndex(int(tab))

    def views(self) -> Mapping[str, View]:
        views = {}
        if self._draws() is not None:
            views[self.tr("Next token, sampled")] = View(self.bars, self._first_rows)
            views[self.tr("Continuations")] = View(self._drawn_table, self._continuation_rows)
        if self._found() is not None:
            views[self.tr("Best sequence")] = View(self.found_table, self._found_rows)
        return views

    def _draws(self) -> Draws | None:
        return None if self._state is None else self._state.result(Draws)

    def _found(self) -> SearchResult | None:
        return None if self._state is None else self._state.result(SearchResult)

    def _show_draws(self) -> None:
        draws = self._draws()
        for part in (self.bars, self._drawn_table):
            part.setVisible(draws is not None)
        if draws is None:
            self._drawn_words.setText(self._words_before())
            return
        self._drawn_words.setText(self._words_of(draws))
        self.bars.set_rows(self._bar_rows(draws))
        rows = draws.continuations[:_MOST_ROWS]
        forms.fill(
            self._drawn_table,
            (self.tr("continuation"), self.tr("times")),
            [(tokens.visible(row.raw), f"{row.drawn:,}") for row in rows],
        )

    def _words_before(self) -> str:
        """In place of draws: why there are none, or that they are coming."""
        if self._drawing:
            return self.tr("Sampling…")
        if self._state is not None and self._state.sampling.takes_best:
            return self.tr("Greedy always gives the same tokens. Switch it off to sample.")
        return self.tr("Each sample continues the text before the selected token.")

    def _words_of(self, draws: Draws) -> str:
        """How many draws, and how far their shares are from what was expected."""
        count, asked = draws.count, draws.asked
        made = _number(count, self.tr("1 sample"), self.tr("{0} samples"))
        if count < asked:
            going_on = self._drawing
            so_far = (
                self.tr("{0} of {1} samples so far"),
                self.tr("Stopped after {0} of {1} samples"),
            )
            made = so_far[not going_on].format(f"{count:,}", f"{asked:,}")
        words = self.tr("{0} of {1} each ({2}): {3}.").format(
            made,
            _number(draws.length, self.tr("1 token"), self.tr("{0} tokens")),
            _number(draws.passes, self.tr("1 pass"), self.tr("{0} passes")),
            _number(
                draws.distinct,
                self.tr("always the same continuation"),
                self.tr("{0} different continuations"),
            ),
        )
        miss = draws.miss
        if miss is None:
            more = self.tr(
                "Every first token is too unlikely to be expected once. Draw more samples."
            )
        else:
            more = self.tr(
                "First tokens: sampled and exact shares differ by {0} percentage points on average."
            ).format(percent(miss).removesuffix(" %"))
        return f"{words} {more}"

    def _bar_rows(self, draws: Draws) -> list[BarRow]:
        fits = max(self.bars.rows_that_fit(), 1)
        rows = sorted(draws.first, key=lambda row: (-row.exact, row.id))[:fits]
        return [
            BarRow(
                key=row.id,
                label=tokens.visible(row.raw),
                first=row.exact,
                first_text=percent(row.exact),
                second=row.drawn / draws.count,
                second_text=percent(row.drawn / draws.count),
                tip=self.tr("id {0}: sampled {1} of {2} times, expected {3}").format(
                    row.id, row.drawn, draws.count,
                    f"{row.exact * draws.count:.3g}",
                ),
            )
            for row in rows
        ]  # fmt: skip

    def _show_found(self) -> None:
        found = self._found()
        self.found_table.setVisible(found is not None)
        if found is None:
            self._found_words.setText(
                self.tr("Greedy chooses the most likely token each time, but the whole "
                "sequence may not be the most likely one. Search looks for a better "
                "one.")
            )  # fmt: skip
            return
        greedy, best = found.greedy, found.best
        if found.beats_greedy:
            text = self.tr("Found a sequence {0} times as likely as the greedy one.").format(
                f"{best.probability / greedy.probability:.3g}"
            )
        elif found.proven:
            text = self.tr("No better sequence exists: greedy found the most likely one.")
        else:
            text = self.tr("No better sequence found within these limits.")
        if found.proven:
            passes = _number(found.passes, self.tr("1 pass"), self.tr("{0} passes"))
            searched = self.tr("Proved in {0}.").format(passes)
        else:
            searched = self.tr(
                "Not settled in {0} passes: a sequence of up to {1} may still exist."
            ).format(f"{found.passes:,}", exact_percent(found.bound))
        self._found_words.setText(f"{text} {searched}")
        forms.fill(
            self.found_table,
            ("", self.tr("sequence"), self.tr("probability")),
            [
                (name, tokens.visible(one.text), exact_percent(one.probability))
                for name, one in ((self.tr("greedy"), greedy), (self.tr("best found"), best))
            ],
        )

    def _first_rows(self) -> Iterator[Sequence[object]]:
        yield "id", "text", "exact_probability", "raw_probability", "drawn", "draws"
        if (draws := self._draws()) is None:
            return
        for row in draws.first:
            text = tokens.visible(row.raw)
            yield row.id, text, row.exact, row.raw_probability, row.drawn, draws.count

    def _continuation_rows(self) -> Iterator[Sequence[object]]:
        yield "ids", "text", "drawn"
        draws = self._draws()
        for row in () if draws is None else draws.continuations:
            yield " ".join(map(str, row.ids)), tokens.visible(row.raw), row.drawn

    def _found_rows(self) -> Iterator[Sequence[object]]:
        yield "which", "ids", "text", "probability", "log_probability"
        if (found := self._found()) is None:
            return
        for name, one in (("greedy", found.greedy), ("best", found.best)):
            ids = " ".join(map(str, one.ids))
            yield name, ids, tokens.visible(one.text), one.probability, one.log_probability


def _number(count: int, one: str, more: str) -> str:
    return one if count == 1 else more.format(f"{count:,}")
