"""Keys and values of one position, every layer and head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from PySide6.QtWidgets import QPushButton

from explorer.figures.cost import kv_strips as figures
from explorer.figures.cost.kv_strips import Strips
from explorer.figures.text import tokens
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import PositionRead, ReadSlot
from explorer.ui.canvases.maps.kv_strips import StripsView
from explorer.ui.kit import boxes, forms
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.look.theme import Theme
from explorer.ui.panel.paged_panel import Page
from explorer.ui.panel.panel import View


class PositionPage(Page):
    """Keys are in the trace; values are read off the engine's cache when asked for."""

    ID = "position"
    FORMER_ID = "PositionPage"
    TITLE = QT_TRANSLATE_NOOP("PositionPage", "Keys and values")
    NEEDS = (*Page.NEEDS, "measured", "status.activity", "selection.key")

    def __init__(self, session: Session, theme: Theme) -> None:
        super().__init__()
        self._session = session
        self._state: State | None = None
        self._rows: tuple[tuple[str, Strips], ...] = ()
        self.slot = forms.spin(self.tr("Position"), 0, 0, 0)
        self.slot.valueChanged.connect(self._show)
        self.read_button = QPushButton(self.tr("Read values"))
        self.read_button.clicked.connect(lambda: session.measure(ReadSlot, slot=self.slot.value()))
        self._words = ResultLabel()
        self.view = StripsView(theme, self._tip)
        self.view.setAccessibleName(self.tr("Keys and values of one position by layer and head"))
        self.view.hovered.connect(self._read_out)
        row = forms.row((self.tr("position"), self.slot), ("", self.read_button))
        boxes.column(self, row, self._words, (self.view, 1), gap=1)

    def show_state(self, new: State) -> str | None:
        shown = new.shown
        if shown is None:
            self._state = None
            return ""
        before, self._state = self._state, new
        self.slot.blockSignals(True)
        self.slot.setRange(0, shown.slots - 1)
        key = new.selection.key
        if key is not None and (before is None or before.selection.key != key):
            self.slot.setValue(key)
        self.slot.blockSignals(False)
        ready = new.model_is_free and new.model_of_run
        self.read_button.setEnabled(ready and shown.trace.request.uses_cache)
        self.read_button.setToolTip(
            self.tr("Keys are recorded in every pass. Values are read from the cache on request.")
            if new.model_of_run
            else self.tr("Only the model of this run can read its values. Open it first.")
        )
        self._show()
        return None

    def _show(self) -> None:
        state = self._state
        shown = None if state is None else state.shown
        if state is None or shown is None:
            return
        keys = figures.keys_at(shown.trace, shown.step, self.slot.value())
        rows = [(self.tr("keys, layer by layer"), keys)]
        values = self._values(state)
        if values is not None:
            rows.append((self.tr("values"), values))
        self._rows = tuple(rows)
        self.view.set_rows(*self._rows)
        self._words.setText(self._summary())

    def _values(self, state: State) -> Strips | None:
        """The values that were read, if they are of this position."""
        found = state.result(PositionRead)
        return figures.values_of(found) if found and found.slot == self.slot.value() else None

    def _summary(self) -> str:
        state = self._state
        assert state is not None
        assert state.trace is not None
        slot = self.slot.value()
        if len(self._rows) > 1:
            text = self.tr("Position {0} {1}")
        elif not state.trace.request.uses_cache:
            text = self.tr("Position {0} {1}: values are not stored without a cache")
        else:
            text = self.tr(
                "Position {0} {1}: values are not stored. Click “Read values” to compute them."
            )
        return text.format(slot, tokens.visible(state.trace.tokens[slot].raw))

    def _tip(self, row: int, layer: int, head: int) -> str:
        strips = self._rows[row][1]
        part = strips.layers[layer]
        if part is None:
            return self.tr("Layer {0}: {1}").format(layer, strips.reasons[layer])
        numbers = part[head]
        return self.tr("Layer {0}, KV head {1}: {2} numbers from {3} to {4}, norm {5}").format(
            layer, head, len(numbers), f"{numbers.min():z.3g}", f"{numbers.max():z.3g}",
            f"{np.linalg.norm(numbers):z.3g}",
        )  # fmt: skip

    def _read_out(self, words: str) -> None:
        if self._state is not None:
            self._words.setText(words or self._summary())

    def views(self) -> Mapping[str, View]:
        return {self.tr("Keys and values"): View(self.view, self._table)} if self._rows else {}

    def _table(self) -> Iterator[Sequence[object]]:
        yield "what", "layer", "kv_head", "dimension", "number"
        for place, (_, strips) in enumerate(self._rows):
            for layer, part in enumerate(strips.layers):
                for head, numbers in enumerate(() if part is None else part):
                    for dimension, number in enumerate(numbers.tolist()):
                        yield ("key", "value")[place], layer, head, dimension, number
