"""Residual stream: how long it is after each layer, where it points, and what is added to it."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QLabel, QWidget

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.figures.drawing.colormaps import difference
from explorer.figures.inside import stream as figures
from explorer.figures.inside.stream import (
    STREAM,
    Colours,
    Measure,
    Part,
    StreamColumn,
    StreamColumns,
)
from explorer.session.session import Session
from explorer.trace.inside.stream import ReadStream, ResidualStream
from explorer.ui.kit import boxes
from explorer.ui.kit.ramp import Ramp
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.layer_board import LayerBoardPanel
from explorer.ui.panel.panel import View
from explorer.ui.panels.stream import words
from explorer.ui.panels.stream.charts import StreamCharts


class StreamPanel(LayerBoardPanel):
    """A cell is the norm, or the cosine, of the stream or of what one part of a layer adds."""

    ID = "stream"
    TITLE = QT_TRANSLATE_NOOP("StreamPanel", "Residual stream")
    TERM = "residual-stream"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "StreamPanel", "How long each token's vector is after each layer, and what is added to it"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "StreamPanel",
        "Type a prompt and press Step (Space) to see what each layer adds to the residual stream.",
    )
    QUESTION, ANSWER = ReadStream, ResidualStream

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._wished = ""  # a part that a file names, until the parts are known
        self._parts: dict[str, Part] = {"stream": STREAM}  # that can be chosen
        self._colours = Colours("norm")
        self.part, self.measure = ComboBox(), ComboBox()
        self.part.setAccessibleName(self.tr("Of what the cells are"))
        self.part.setToolTip(self.tr("The stream itself, or what one part of each layer adds"))
        self._list_parts()
        for measure in words.MEASURES:
            self.measure.addItem(words.measure_words(measure), measure)
        self.measure.setAccessibleName(self.tr("What the cells show"))
        self.measure.setToolTip(
            self.tr(
                "Norm: the length of the vector. Cosine: how far it points where the stream "
                "points after the last layer."
            )
        )
        for box in (self.part, self.measure):
            box.currentIndexChanged.connect(self._turned)
        self._low, self._high, self._ramp, scale = QLabel(), QLabel(), Ramp(), QWidget()
        boxes.line(scale, self._low, self._ramp, self._high, gap=4)
        self.board.setAccessibleName(self.tr("Residual stream: layers by tokens"))
        self.charts = StreamCharts(theme)
        self.charts.picked.connect(lambda row: self._go_to_layer(row - 1))
        self.proof = SentenceLabel(look="small")
        controls = (
            (self.tr("Show"), self.part), ("", self.measure), ("", scale),
        )  # fmt: skip
        self.build(controls, self.charts, self.proof)

    # -- what it shows

    def nothing(self) -> StreamColumns:
        return StreamColumns()

    @property
    def _part(self) -> Part:
        return self._parts[self.part.currentData()]

    @property
    def _measure(self) -> Measure:
        found: Measure = self.measure.currentData()
        return found

    def row_of(self, layer: int) -> int:
        return layer + 1 if self._part == STREAM else layer

    def layer_of(self, row: int) -> int | None:
        layer = row - 1 if self._part == STREAM else row
        return layer if 0 <= layer < self.known.layers else None

    def redraw(self) -> None:
        self._offer()
        super().redraw()

    def figure(self) -> CellsFigure:
        part, measure, known, columns = self._part, self._measure, self.known, self.columns
        found = [
            None if column is None else known.by_layer(column, part, measure) for column in columns
        ]
        read = [one for one in found if one is not None]
        self._colours = colours = figures.colours_of(read, measure)
        labels, first = self.labels, 0 if part == STREAM else 1
        rows = known.rows if part == STREAM else [str(layer) for layer in range(known.layers)]

        def cell(row: int, slot: int) -> BoardCell | None:
            column = found[slot]
            if column is None or column[row] != column[row]:  # this layer has no such part
                return None
            value = float(column[row])
            return BoardCell(words.number(value, measure), colours.level(value))

        return CellsFigure(
            rows=rows,
            columns=[label.text for label in labels],
            cell=cell,
            words=lambda row, slot: words.cell_words(
                known, columns[slot], row + first, slot, labels[slot]
            ),
            corner=self.tr("tokens →"),
            signed=measure == "cosine",
        )

    def _offer(self) -> None:
        """The parts that the model's layers have; they are not known before the first answer."""
        parts = {_name(part): part for part in (STREAM, *self.known.parts)}
        if not self.known.rows or parts == self._parts:
            return
        chosen = self._wished or self.part.currentData()
        self._parts, self._wished = parts, ""
        self.part.blockSignals(True)
        self._list_parts()
        self.part.setCurrentIndex(max(0, self.part.findData(chosen)))
        self.part.blockSignals(False)

    def _list_parts(self) -> None:
        self.part.clear()
        for name, part in self._parts.items():
            self.part.addItem(words.part_words(part), name)

    def column_words(self, column: StreamColumn) -> str:
        return words.token_words(self.known, column, self.slot, self.labels[self.slot])

    def draw_rest(self, column: StreamColumn | None) -> None:
        signed = self._measure == "cosine"
        self._ramp.set_colours(difference(self.theme.dark) if signed else "viridis")
        low, high = (-1.0, 1.0) if signed else (self._colours.low, self._colours.high)
        self._low.setText(words.number(low, self._measure))
        self._high.setText(words.number(high, self._measure))
        self.proof.setText(words.proof(self.known) if self.known.rows else "")
        row = self.layer + 1
        marked = row if row < len(self.known.rows) else None
        self.charts.show_column(self.known, column, self.headline(), marked)

    def _turned(self) -> None:
        if self.trace is not None and not self.empty:
            self.redraw()

    def _go_to_layer(self, layer: int) -> None:
        if layer >= 0:
            self.session.select(layer=layer)

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {**super().choices(), "part": self.part.currentData(), "measure": self._measure}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        super().choose(choices)
        measure = choices.get("measure")
        if measure in words.MEASURES:
            self.measure.setCurrentIndex(words.MEASURES.index(measure))
        part = str(choices.get("part", ""))
        self._wished = "" if part in self._parts else part
        if part in self._parts:
            self.part.setCurrentIndex(self.part.findData(part))

    def views(self) -> Mapping[str, View]:
        if not any(self.columns):
            return {}
        known, columns, slot = self.known, self.columns, self.slot
        one = [(slot, columns[slot] if slot < len(columns) else None)]
        pair = self.charts.pair
        return {
            self.tr("Residual stream"): View(
                self.board, lambda: figures.table(known, enumerate(columns))
            ),
            self.tr("Norms by layer"): View(pair.first, lambda: figures.table(known, one)),
            self.tr("Cosines by layer"): View(pair.second, lambda: figures.table(known, one)),
        }


def _name(part: Part) -> str:
    """A part as a file names it: "stream", "attention", "mlp", "mlp 2"."""
    kind, place = part
    return f"{kind or 'stream'} {place + 1}" if place else kind or "stream"
