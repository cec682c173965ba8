"""What the cache would take at another dtype, batch or length: computed by the formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from explorer.figures.cost.cache_estimate import DTYPES, CacheEstimate, what_if
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.card import ModelCard
from explorer.trace.fingerprint import same_weights
from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.canvases.charts.column_chart import ColumnChart, Columns, Part
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look import themed
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.paged_panel import Page
from explorer.ui.panel.panel import View
from explorer.wording import bytes_text, short_bytes

_SPINS = (66, 104)  # pixels at a zoom of 1: four digits, and eight with their commas
_MOST_TOKENS, _MOST_BATCH, _LENGTHS = 10_000_000, 4_096, 8


class EstimatePage(Page):
    """Needs no run: the card of the model is enough, but for recurrent states."""

    ID = "estimate"
    FORMER_ID = "WhatIfPage"
    TITLE = QT_TRANSLATE_NOOP("EstimatePage", "What if")
    NEEDS = (*Page.NEEDS, "card")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._card: ModelCard | None = None
        self._layer_bytes: tuple[int, ...] = ()
        self.dtype = ComboBox()
        self.dtype.addItems(DTYPES)
        self.dtype.setAccessibleName(self.tr("Number format of the cache"))
        self.batch = forms.spin(self.tr("Sequences in the batch"), 1, _MOST_BATCH, 1)
        self.length = forms.spin(self.tr("Tokens of each sequence"), 1, _MOST_TOKENS, 1)
        self.length.setGroupSeparatorShown(True)
        self.dtype.currentIndexChanged.connect(self._show)
        for spin in (self.batch, self.length):
            spin.valueChanged.connect(self._show)
        self._narrow()
        row = forms.row(
            ("", self.dtype), (self.tr("batch"), self.batch), (self.tr("tokens"), self.length)
        )
        self._words = ResultLabel()
        along = Axis(self.tr("tokens"), whole=True)
        up = Axis(self.tr("cache, computed"), short_bytes, binary=True)
        self.chart = ColumnChart(theme, along, up, self._tip)
        self.chart.setAccessibleName(self.tr("Cache bytes by length, by formula"))
        boxes.column(self, row, self._words, (self.chart, 1), gap=1)

    def show_state(self, new: State) -> str | None:
        card = new.card if new.trace is None else new.trace.card
        if card is None:
            self._card = None
            return self.tr("Open a model to compute the size of its cache.")
        index = new.step_index
        steps = () if new.trace is None or index is None else new.trace.steps[index : index + 1]
        self._layer_bytes = steps[0].cache_bytes_per_layer if steps else ()
        if self._card is None or not same_weights(self._card.fingerprint, card.fingerprint):
            self._begin_with(card)
        self._card = card
        self._show()
        return None

    def _begin_with(self, card: ModelCard) -> None:
        """The loaded dtype, one sequence, the whole context."""
        for part, value in ((self.batch, 1), (self.length, card.context or 1024)):
            part.blockSignals(True)
            part.setValue(value)
            part.blockSignals(False)
        self.dtype.blockSignals(True)
        self.dtype.setCurrentText(card.dtype)
        self.dtype.blockSignals(False)

    def _worked_out(self, length: int) -> CacheEstimate | None:
        assert self._card is not None
        return what_if(
            self._card, self.dtype.currentText(), self.batch.value(), length, self._layer_bytes
        )

    def _lengths(self) -> list[int]:
        """Eighths of the length that is set."""
        longest = self.length.value()
        return sorted({max(1, longest * part // _LENGTHS) for part in range(1, _LENGTHS + 1)})

    def _show(self) -> None:
        if self._card is None:
            return
        found = self._worked_out(self.length.value())
        self.chart.setVisible(found is not None)
        if found is None:
            self._words.setText(self.tr("There is no formula for this model: its layers differ."))
            return
        computed = self.tr("By formula: {0}").format(bytes_text(found.total))
        self._words.setText(" · ".join([computed, *self._beside(found)]))
        lengths = self._lengths()
        found_of = (self._worked_out(length) for length in lengths)
        sizes = np.array([float(one.total) for one in found_of if one is not None])
        parts = [Part(self.tr("computed"), sizes)]
        places = np.array(lengths, np.float64)
        self.chart.set_columns(Columns(sizes, ("formula",), parts=parts, places=places))

    def _beside(self, found: CacheEstimate) -> list[str]:
        assert self._card is not None
        parts = []
        if found.as_mha is not None:
            parts.append(
                self.tr("with keys for all {0} heads (MHA): {1}").format(
                    self._card.heads, short_bytes(found.as_mha)
                )
            )
        if found.states is None:
            parts.append(self.tr("recurrent states not measured yet: press Step"))
        elif found.states:
            parts.append(
                self.tr("includes {0} of recurrent states (measured)").format(
                    short_bytes(found.states)
                )
            )
        if self._card.context and self.length.value() > self._card.context:
            parts.append(
                self.tr("longer than the context ({0} tokens)").format(f"{self._card.context:,}")
            )
        return parts

    def _tip(self, place: int) -> str:
        length = self._lengths()[place]
        found = self._worked_out(length)
        assert found is not None
        return self.tr("{0} tokens: {1} by formula").format(f"{length:,}", bytes_text(found.total))

    def _narrow(self) -> None:
        """All in one line beside the maps."""
        for spin, wide in ((self.batch, _SPINS[0]), (self.length, _SPINS[1])):
            spin.setFixedWidth(round(wide * unit(self)))

    def set_theme(self, theme: Theme) -> None:
        self._narrow()
        themed.pass_on(self, theme)

    def views(self) -> Mapping[str, View]:
        return {self.tr("Cache by length, by formula"): View(self.chart, self._table)}

    def _table(self) -> Iterator[Sequence[object]]:
        yield "dtype", "batch", "tokens", "computed_bytes"
        for length in self._lengths():
            found = self._worked_out(length)
            if found is not None:
                yield self.dtype.currentText(), self.batch.value(), length, found.total
