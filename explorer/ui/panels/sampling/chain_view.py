"""The chain as a table of stages; the selected one's work as curves; what only this panel sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDoubleSpinBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QToolButton,
    QWidget,
)

from explorer.figures.prediction import sampling as figures
from explorer.figures.prediction.sampling import Chain, Orders
from explorer.sampling import Stage
from explorer.trace.request import ORDER, Sampling
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import DoubleSpinBox
from explorer.ui.look.theme import Theme
from explorer.ui.panels.sampling import words
from explorer.ui.panels.sampling.distribution_charts import DistributionCharts, OneStage
from explorer.wording import exact_percent, information


class ChainView(QWidget):
    """Follows whatever chain it is given; `requested` asks for other settings."""

    requested = Signal(object)  # Sampling

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chain: Chain | None = None
        self._sampling = Sampling()  # of the controls: what a request starts from
        self._stage = ""  # the selected one, by name
        self._table = self._build_table()
        self.curves = DistributionCharts(theme)
        self._outcome = _small_label()
        self._why = _small_label()
        settings = self._build_settings()
        # What came of it stands under the stages: where the room is small, charts are cut first.
        parts = (self._table, self._outcome, self._why, settings, (self.curves, 1))
        boxes.column(self, *parts, edges=(4, 4, 4, 2), gap=3)

    def _build_table(self) -> QTableWidget:
        table = QTableWidget(0, 5)
        table.setHorizontalHeaderLabels(
            [self.tr("stage"), self.tr("setting"), self.tr("tokens kept"),
             self.tr("probability kept"),
             self.tr("entropy")]
        )  # fmt: skip
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(24)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        table.setAccessibleName(self.tr("Stages of the sampling chain"))
        header = table.horizontalHeader()
        # Fixed: measuring every cell again at each move of a slider is what takes the time.
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setHighlightSections(False)
        table.itemSelectionChanged.connect(self._on_selected)
        return table

    def _build_settings(self) -> QHBoxLayout:
        self.min_p = self._spin(
            self.tr("Min-p"), 1.0,
            self.tr("Keep tokens with at least this fraction of the top probability. 0: off."),
        )  # fmt: skip
        self.min_p.valueChanged.connect(lambda value: self._request(min_p=value))
        self.penalty = self._spin(
            self.tr("Repetition penalty"), 10.0,
            self.tr("Above 1: tokens already in the text become less likely. 1: off."),
        )  # fmt: skip
        self.penalty.setMinimum(0.05)
        self.penalty.valueChanged.connect(lambda value: self._request(repetition_penalty=value))
        self.up_button = self._button("▲", self.tr("Move the selected stage up"))
        self.up_button.clicked.connect(lambda: self._move(-1))
        self.down_button = self._button("▼", self.tr("Move the selected stage down"))
        self.down_button.clicked.connect(lambda: self._move(1))
        self.usual_button = self._button(
            self.tr("Default order"), self.tr("The order used by transformers")
        )
        self.usual_button.clicked.connect(lambda: self._request(order=ORDER))
        row = QHBoxLayout()
        row.setSpacing(4)
        for label, spin in (
            (TermLabel(self.tr("Min-p"), term="min-p"), self.min_p),
            (TermLabel(self.tr("Penalty"), term="repetition-penalty"), self.penalty),
        ):
            label.setBuddy(spin)
            row.addWidget(label)
            row.addWidget(spin)
        row.addStretch(1)
        for button in (self.up_button, self.down_button, self.usual_button):
            row.addWidget(button)
        return row

    def _spin(self, name: str, most: float, tip: str) -> QDoubleSpinBox:
        spin = DoubleSpinBox()
        spin.setRange(0, most)
        spin.setDecimals(2)
        spin.setSingleStep(0.05)
        spin.setKeyboardTracking(False)
        spin.setAccessibleName(name)
        spin.setToolTip(tip)
        return spin

    def _button(self, text: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.setProperty("look", "flat")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button

    # -- showing

    def show_chain(
        self,
        chain: Chain,
        orders: Orders | None,
        controls: Sampling,
        label: Callable[[int], str],
    ) -> None:
        """Other figures; `controls` are the settings that a request changes."""
        self._chain, self._sampling = chain, controls
        self._fill(chain)
        for spin, value in (
            (self.min_p, chain.sampling.min_p), (self.penalty, chain.sampling.repetition_penalty)
        ):  # fmt: skip
            blocked = spin.blockSignals(True)
            spin.setValue(value)
            spin.blockSignals(blocked)
        self._outcome.setText(words.outcome(self.tr, chain, label))
        why = "" if orders is None else words.why_orders_differ(self.tr, orders, chain.sampling)
        self._why.setText(why)
        self._why.setVisible(bool(why))
        self._draw()

    def _fill(self, chain: Chain) -> None:
        table = self._table
        blocked = table.blockSignals(True)
        if table.rowCount() != len(chain.stages):
            table.setRowCount(len(chain.stages))
        row_of = {stage.name: row for row, stage in enumerate(chain.stages)}
        for row, stage in enumerate(chain.stages):
            ties = words.ties(self.tr, chain.stages[max(row - 1, 0)], stage, chain.sampling)
            for column, text in enumerate(self._cells(stage, chain.sampling, bool(ties))):
                item = table.item(row, column)
                if item is None:
                    item = QTableWidgetItem()
                    if column:
                        side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                        item.setTextAlignment(side)
                    table.setItem(row, column, item)
                if item.text() != text:
                    item.setText(text)
                item.setToolTip(ties)
        # Without a choice of the user's: the last stage that cut anything, else that did anything.
        active = [stage for stage in chain.stages if stage.active]
        cut = [stage for stage in active if stage.mass_kept < 1]
        usual = row_of[(cut or active)[-1].name]
        row = next((row for name, row in row_of.items() if name == self._stage), usual)
        if row != table.currentRow():
            table.selectRow(row)
        height = table.horizontalHeader().height() + 4
        height += sum(table.rowHeight(i) for i in range(table.rowCount()))
        if height != table.height():
            table.setFixedHeight(height)
        table.blockSignals(blocked)
        self._follow_selection()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Columns as wide as their widest words in the font of now."""
        super().resizeEvent(event)
        metrics = self._table.fontMetrics()
        widest = (
            self.tr("setting"),
            self.tr("tokens kept"),
            self.tr("probability kept") + " ",
            information(0.0001),
        )
        for column, text in enumerate(widest, 1):
            self._table.setColumnWidth(column, metrics.horizontalAdvance(text) + 22)

    def _cells(self, stage: Stage, sampling: Sampling, ties: bool) -> tuple[str, ...]:
        kept = self.tr("{0} (ties)") if ties else "{0}"
        return (
            words.name(self.tr, stage.name),
            words.setting(self.tr, stage, sampling),
            kept.format(f"{stage.kept:,}"),
            exact_percent(stage.mass_kept),
            information(stage.entropy_nats),
        )

    def table_rows(self) -> Iterator[Sequence[object]]:
        """The stages as plain values, for a file."""
        yield "stage", "active", "tokens_kept", "mass_kept", "entropy_nats"
        for stage in self._chain.stages if self._chain else ():
            yield stage.name, stage.active, stage.kept, stage.mass_kept, stage.entropy_nats

    @property
    def table(self) -> QTableWidget:
        return self._table

    def _draw(self) -> None:
        chain = self._chain
        if chain is None:
            return
        row = max(self._table.currentRow(), 0)
        stage, before = chain.stages[row], chain.stages[max(row - 1, 0)]
        # The number is drawn on the final distribution: shown wherever that is already reached.
        last = np.array_equal(stage.p, chain.stages[-1].p)
        data = OneStage(
            before=figures.curve(before.p),
            after=figures.curve(stage.p),
            kept=stage.kept,
            total=before.kept,
            level=chain.sampling.top_p if stage.name == "top_p" and stage.active else None,
            u=chain.u if last else None,
            landed=chain.landed if last else None,
        )
        line = self.tr("{0}: {1} of {2} tokens kept, {3} of the probability, entropy {4}").format(
            words.name(self.tr, stage.name), f"{stage.kept:,}", f"{before.kept:,}",
            exact_percent(stage.mass_kept), information(stage.entropy_nats),
        )  # fmt: skip
        ties = words.ties(self.tr, before, stage, chain.sampling)
        self.curves.show_stage(data, " · ".join(filter(None, (line, ties))))

    # -- requests

    def _on_selected(self) -> None:
        row = self._table.currentRow()
        if self._chain is not None and 0 <= row < len(self._chain.stages):
            self._stage = self._chain.stages[row].name
            self._draw()
        self._follow_selection()

    def _follow_selection(self) -> None:
        chain, row = self._chain, self._table.currentRow()
        movable = chain is not None and row >= 0 and not chain.sampling.takes_best
        name = chain.stages[row].name if chain is not None and row >= 0 else ""
        order = chain.sampling.order if chain is not None else ORDER
        self.up_button.setEnabled(movable and name in order[1:])
        self.down_button.setEnabled(movable and name in order[:-1])
        self.usual_button.setVisible(not figures.is_default(order))

    def _move(self, by: int) -> None:
        if self._chain is None:
            return
        name = self._chain.stages[self._table.currentRow()].name
        self._stage = name
        if name in ORDER:
            self._request(order=figures.moved(self._sampling.order, name, by))

    def _request(self, **changes: object) -> None:
        self.requested.emit(msgspec.structs.replace(self._sampling, **changes))


def _small_label() -> QLabel:
    return SentenceLabel(look="small")
