"""Logit lens: every layer's output, read through the model's own final norm and head."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtWidgets import QLabel, QWidget

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.figures.inside import lens as figures
from explorer.figures.inside.lens import LensColumn, LensColumns
from explorer.figures.text.tokens import written
from explorer.session.session import Session
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.ui.kit import boxes
from explorer.ui.kit.ramp import Ramp
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panel.layer_board import LayerBoardPanel
from explorer.ui.panel.panel import View
from explorer.ui.panels.lens import words
from explorer.ui.panels.lens.charts import LensCharts


class LensPanel(LayerBoardPanel):
    """A cell says what the model would; its colour how sure it is, or how near to the end."""

    ID = "lens"
    TITLE = QT_TRANSLATE_NOOP("LensPanel", "Logit lens")
    TERM = "logit-lens"
    BESIDE = "attention"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "LensPanel", "What the model would say if it ended after each of its layers"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "LensPanel",
        "Type a prompt and press Step (Space) to see what the model would say after each layer.",
    )
    QUESTION, ANSWER, SETTINGS = ReadLens, LensBoard, {"top": 5}  # tokens of a cell

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self.colour = ComboBox()
        for by in words.BY:
            self.colour.addItem(words.by_words(by), by)
        self.colour.setAccessibleName(self.tr("Colour the cells by"))
        self.colour.setToolTip(
            self.tr(
                "Probability: of the token in the cell. Rank, KL: how far the row is from what "
                "the model really says."
            )
        )
        self.colour.currentIndexChanged.connect(self._recolour)
        self._low, self._high, scale = QLabel(), QLabel(), QWidget()
        boxes.line(scale, self._low, Ramp(), self._high, gap=4)
        self.board.setAccessibleName(self.tr("Logit lens: layers by tokens"))
        self.charts = LensCharts(theme)
        self.charts.picked.connect(lambda row: self.go_to(row, self.slot))
        self.note = SentenceLabel(look="small")
        self.build(((self.tr("Colour"), self.colour), ("", scale)), self.charts, self.note)

    # -- what it shows

    def nothing(self) -> LensColumns:
        return LensColumns()

    def row_of(self, layer: int) -> int:
        return layer + 1

    def layer_of(self, row: int) -> int | None:
        assert self.trace is not None
        return figures.layer_of(row, self.trace.card.layers)

    @property
    def _vocabulary(self) -> int:
        return 2 if self.trace is None else self.trace.card.vocab_size

    def figure(self) -> CellsFigure:
        by, read, columns = words.BY[self.colour.currentIndex()], self.known, self.columns
        labels, vocabulary = self.labels, self._vocabulary

        def cell(row: int, slot: int) -> BoardCell | None:
            column = columns[slot]
            if column is None:
                return None
            best = int(column.ids[row, 0])
            text = written(read.token(best))
            return BoardCell(text, column.level(row, by, vocabulary), best == column.final_id)

        return CellsFigure(
            rows=read.rows,
            columns=[label.text for label in labels],
            cell=cell,
            words=lambda row, slot: words.cell_words(read, columns[slot], row, slot, labels[slot]),
            corner=self.tr("tokens →"),
        )

    def column_words(self, column: LensColumn) -> str:
        return words.token_words(self.known, column, self.slot, self.labels[self.slot])

    def draw_rest(self, column: LensColumn | None) -> None:
        low, high = words.ends(words.BY[self.colour.currentIndex()], self._vocabulary)
        self._low.setText(low)
        self._high.setText(high)
        self.note.setText(words.note(self.known.final_gap))
        row = self.row_of(self.layer)
        marked = row if row < len(self.known.rows) else None
        self.charts.show_column(self.known, column, self.headline(), marked)

    def _recolour(self) -> None:
        if self.trace is not None and not self.empty:
            self.redraw()

    # -- files

    def choices(self) -> dict[str, str | float]:
        return {**super().choices(), "colour": self.colour.currentData()}

    def choose(self, choices: Mapping[str, str | float]) -> None:
        super().choose(choices)
        colour = choices.get("colour")
        if colour in words.BY:
            self.colour.setCurrentIndex(words.BY.index(colour))

    def views(self) -> Mapping[str, View]:
        if not any(self.columns):
            return {}
        read, columns = self.known, self.columns
        charts = self.charts
        return {
            self.tr("Logit lens"): View(self.board, lambda: figures.table(read, columns)),
            self.tr("Probability by layer"): View(charts.pair.first, charts.table),
            self.tr("Entropy and KL by layer"): View(charts.pair.second, charts.table),
        }
