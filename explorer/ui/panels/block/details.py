"""The chosen stage enlarged: its formula, its numbers, pairs, products or experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QToolButton, QWidget

from explorer.figures.drawing.board import BoardCell, CellsFigure
from explorer.figures.inside import block as figures
from explorer.figures.inside.block import Experts, ScoreTerms, StageGrid, TurnedPair
from explorer.trace.inside.walk import LayerStage
from explorer.ui.canvases.tokens.cell_board import CellBoard
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panels.block import words
from explorer.ui.panels.block.dials import Dials
from explorer.ui.panels.block.experts import ExpertCharts
from explorer.ui.panels.block.stage_words import stage_words

_CELL = 46.0  # pixels of a number, at a zoom of 1


class StageDetails(QWidget):
    """Shows one stage; a click on a number goes to its head, or to its head and key."""

    picked = Signal(int)  # head
    keyPicked = Signal(int, int)  # head, slot
    resized = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._stage: LayerStage | None = None
        self._grid: StageGrid | None = None
        self._keys: Sequence[str] = ()
        self._terms: ScoreTerms | None = None
        self._order: list[int] = []  # of its products, the largest first
        self.title = QLabel()
        self.title.setProperty("look", "title")
        self.does = SentenceLabel(look="muted")
        self.formula, self.check = SentenceLabel(), SentenceLabel(look="small")
        self.score = SentenceLabel()
        self.line = ResultLabel(look="small")
        self.numbers = QToolButton()
        self.numbers.setText(self.tr("Numbers"))
        self.numbers.setToolTip(self.tr("Show the numbers themselves"))
        self.numbers.setCheckable(True)
        self.numbers.toggled.connect(self._turn)
        self.board, self.terms = CellBoard(theme), CellBoard(theme)
        self.board.setAccessibleName(self.tr("Numbers of the stage"))
        self.terms.setAccessibleName(self.tr("Query times key, the largest product first"))
        self.board.hovered.connect(self._read_board)
        self.board.picked.connect(self._pick)
        self.terms.hovered.connect(self._read_terms)
        self.dials = Dials(theme)
        self.dials.setAccessibleName(self.tr("Pairs turned by position"))
        self.dials.hovered.connect(self._read_dial)
        self.experts = ExpertCharts(theme)
        board = QWidget()
        boxes.column(board, (self.board, 3), self.score, (self.terms, 2), gap=3).addStretch(0)
        self.pages = OneOf()
        for page in (board, self.dials, self.experts):
            self.pages.addWidget(page)
        top = boxes.line(None, (self.title, 1), self.numbers, gap=4)
        parts = (top, self.does, self.formula, self.check, (self.pages, 1), self.line)
        boxes.column(self, *parts, gap=1, edges=(6, 0, 0, 0))

    # -- showing

    def show_stage(
        self,
        stage: LayerStage,
        grid: StageGrid | None,
        keys: Sequence[str],
        pairs: Sequence[TurnedPair],
        experts: Experts | None,
    ) -> None:
        """Draw another stage; `keys` are the tokens of a run, by slot."""
        self._stage, self._grid, self._keys = stage, grid, keys
        said = stage_words(stage)
        self.title.setText(said.title)
        self.does.setText(said.does)
        self.formula.setText(stage.formula)
        self.check.setText(
            self.tr("{0} numbers, norm {1}. {2}").format(
                words.shape(stage), f"{stage.norm:z.4g}", words.checked(stage)
            )
        )
        position = 0 if stage.turn is None else stage.turn.position
        self.dials.show_pairs(pairs, position)
        self.experts.show_experts(experts if stage.name in ("router", "experts") else None)
        self._draw_board()
        self.show_terms(None, "")
        self.numbers.setVisible(self._other > 0)
        self._turn()

    def show_terms(self, terms: ScoreTerms | None, told: str) -> None:
        """Draw the products of one score; None = no score is looked at."""
        self._terms = terms
        self.score.setText(told)
        self.score.setVisible(bool(told))
        self.terms.setVisible(terms is not None)
        if terms is not None:
            self._order = np.argsort(-np.abs(terms.products), kind="stable").tolist()
            self.terms.show_figure(_terms_figure(terms, self._order, self._term_words))
            self.terms.setMaximumHeight(self.terms.whole_height)
        self.board.set_selected(*self._selected())
        self._read_board(None)

    @property
    def wrap(self) -> int:
        """How many numbers of a vector there is room for in a row."""
        u = unit(self)
        return max(2, int((self.width() - 56 * u) / (_CELL * u)))

    @property
    def shown_terms(self) -> ScoreTerms | None:
        """The products that are drawn."""
        return self._terms

    @property
    def _other(self) -> int:
        """The page that shows the stage better than its numbers do; 0 = there is none."""
        if self.dials.pairs:
            return 1
        return 2 if self.experts.shown is not None else 0

    def _turn(self) -> None:
        self.pages.setCurrentIndex(0 if self.numbers.isChecked() else self._other)
        self._read_board(None)

    def _draw_board(self) -> None:
        stage, grid = self._stage, self._grid
        assert stage is not None
        if grid is None:
            self.board.show_figure(CellsFigure((), (), lambda r, c: None, lambda r, c: ""))
            return
        count, share = len(grid.numbers), figures.is_share(stage)

        def cell(row: int, column: int) -> BoardCell | None:
            value = float(grid.numbers[count - 1 - row, column])
            if not np.isfinite(value):
                return None
            return BoardCell(words.number(value), value if share else value / (grid.top or 1))

        self.board.show_figure(
            CellsFigure(
                rows=self._row_names(grid)[::-1],
                columns=self._column_names(stage, grid),
                cell=cell,
                words=lambda row, column: self._cell_words(count - 1 - row, column),
                corner=words.corner(stage),
                signed=not share,
                wide=_CELL,
            )
        )
        self.board.setMaximumHeight(self.board.whole_height)
        self.board.set_selected(*self._selected())

    def _row_names(self, grid: StageGrid) -> list[str]:
        rows, wide = grid.numbers.shape
        if grid.form == "vector":
            return [str(row * wide) for row in range(rows)]
        named = "H{0}" if grid.form in ("keys", "heads") else "{0}"
        return [named.format(row) for row in range(rows)]

    def _column_names(self, stage: LayerStage, grid: StageGrid) -> list[str]:
        count = grid.numbers.shape[1]
        if grid.form != "keys":
            return [str(column) for column in range(count)]
        first = stage.first_key or 0
        return [self._key(first + column) for column in range(count)]

    def _key(self, slot: int) -> str:
        return self._keys[slot] if slot < len(self._keys) else str(slot)

    def _selected(self) -> tuple[int | None, int | None]:
        grid, stage = self._grid, self._stage
        if grid is None or stage is None or grid.row is None:
            return None, None
        row = len(grid.numbers) - 1 - grid.row
        if self._terms is None or stage.first_key is None:
            return row, None
        column = self._terms.key - stage.first_key
        return row, column if 0 <= column < grid.numbers.shape[1] else None

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.resized.emit()

    # -- reading

    def _cell_words(self, row: int, column: int) -> str:
        stage, grid = self._stage, self._grid
        assert stage is not None
        assert grid is not None
        if np.isnan(grid.numbers[row, column]):
            return ""
        first = stage.first_key or 0
        return words.cell(stage, grid, row, column, self._key(first + column))

    def _read_board(self, at: tuple[int, int] | None) -> None:
        if self._grid is None or self._stage is None:
            self.line.setText(self.tr("Too many numbers to show."))
        elif at is not None:
            self.line.setText(self._cell_words(len(self._grid.numbers) - 1 - at[0], at[1]))
        elif self.pages.currentIndex() == 1:
            self.line.setText(self.tr("Grey: the pair before. Colour: after."))
        elif self.pages.currentIndex() == 2:
            self.line.setText(self.experts.told)
        elif self._terms is not None:
            self.line.setText(self.tr("Below: q times k, the largest product first."))
        else:
            self.line.setText(words.grid_words(self._stage, self._grid))

    def _read_terms(self, at: tuple[int, int] | None) -> None:
        if at is None:
            self._read_board(None)
        else:
            self.line.setText(self._term_words(*at))

    def _read_dial(self, number: int | None) -> None:
        if number is None:
            self._read_board(None)
        else:
            self.line.setText(self.dials.words_of(number))

    def _term_words(self, row: int, column: int) -> str:
        terms = self._terms
        assert terms is not None
        at = self._order[column]
        return self.tr("Number {0}: q {1} × k {2} = {3}").format(
            at, f"{terms.q[at]:z.5g}", f"{terms.k[at]:z.5g}", f"{terms.products[at]:z.5g}"
        )

    # -- wishes

    def _pick(self, row: int, column: int) -> None:
        grid, stage = self._grid, self._stage
        if grid is None or stage is None:
            return
        number = len(grid.numbers) - 1 - row
        if grid.form == "keys":
            self.keyPicked.emit(number, (stage.first_key or 0) + column)
        elif grid.form == "heads":
            self.picked.emit(number)


def _terms_figure(
    terms: ScoreTerms, order: Sequence[int], told: Callable[[int, int], str]
) -> CellsFigure:
    """q over k over their products, in this order."""
    rows = [one[list(order)] for one in (terms.products, terms.k, terms.q)]
    tops = [float(np.abs(row).max(initial=0.0)) or 1.0 for row in rows]

    def cell(row: int, column: int) -> BoardCell:
        value = float(rows[row][column])
        return BoardCell(words.number(value), value / tops[row])

    return CellsFigure(
        rows=("q · k", "k", "q"),
        columns=[str(place) for place in order],
        cell=cell,
        words=told,
        signed=True,
        wide=_CELL,
    )
