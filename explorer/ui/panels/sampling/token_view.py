"""Where is token X?  And every token of the vocabulary, sortable."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QTableView,
    QWidget,
)

from explorer.figures.prediction import sampling as figures
from explorer.figures.prediction.sampling import Chain
from explorer.figures.text.named_tokens import named
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.panels.sampling import words
from explorer.ui.panels.sampling.token_table import FINAL, RANK, RAW, TEXT, TokenTable

_MOST_FOUND = 4


class TokenView(QWidget):
    """A search line over a table of all V tokens; `forced` asks for one of them."""

    forced = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chain: Chain | None = None
        self._names: Vocabulary | None = None
        self.model = TokenTable(self)
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("Find a token (text or id)"))
        self.line.setAccessibleName(self.tr("Find a token by its text or id"))
        self.line.setClearButtonEnabled(True)
        self.line.textChanged.connect(self._find)
        self.force_button = QPushButton(self.tr("Force"))
        self.force_button.setToolTip(self.tr("Choose the selected token instead in this step"))
        self.force_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.force_button.clicked.connect(self._force_selected)
        self._answer = SentenceLabel(look="small")
        self._answer.hide()
        self._note = QLabel(
            self.tr("This file has text only for some tokens. Open its model to see the rest.")
        )
        self._note.setProperty("look", "small")
        self._note.setWordWrap(True)
        self.view = self._build_view()
        top = boxes.line(None, (self.line, 1), self.force_button)
        boxes.column(self, top, self._answer, self._note, (self.view, 1), edges=(0, 4, 0, 0), gap=4)

    def _build_view(self) -> QTableView:
        view = QTableView()
        view.setModel(self.model)
        view.setSortingEnabled(True)
        view.sortByColumn(RANK, Qt.SortOrder.AscendingOrder)
        view.verticalHeader().hide()
        view.verticalHeader().setDefaultSectionSize(24)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setWordWrap(False)
        view.setAccessibleName(self.tr("All tokens of the vocabulary"))
        header = view.horizontalHeader()
        header.setHighlightSections(False)
        # Never by their contents: that would ask for every one of 50,000 rows.
        for column, width in ((RANK, 62), (1, 62), (TEXT, 130), (3, 84), (RAW, 84), (FINAL, 96)):
            header.resizeSection(column, width)
        header.setSectionResizeMode(TEXT, QHeaderView.ResizeMode.Stretch)
        view.doubleClicked.connect(self._force_row)
        return view

    def show_chain(
        self, chain: Chain, names: Vocabulary | None, known: Mapping[int, Token]
    ) -> None:
        """Other figures; without a vocabulary only `known` tokens have a text."""
        self._chain, self._names = chain, names
        self.model.show(figures.listing(chain), names, known)
        self._note.setVisible(names is None)
        self._say(self.line.text())

    def _find(self, text: str) -> None:
        first = self._say(text)
        row = None if first is None else self.model.row_of(first)
        if row is not None:
            self.view.selectRow(row)
            self.view.scrollTo(self.model.index(row, 0), self.view.ScrollHint.PositionAtCenter)

    def _say(self, text: str) -> int | None:
        """Answer the line; the first id it names."""
        if self._chain is None or not text:
            self._answer.hide()
            return None
        size = len(self._chain.stages[0].ids)
        ids = named(text, size, self._names, self.model.known)
        lines = [self._standing(i) for i in ids[:_MOST_FOUND]]
        if not ids:
            lines = [self.tr("No token has this text. A word can take several tokens.")]
        elif len(ids) > _MOST_FOUND:
            lines.append(self.tr("… and {0} more").format(len(ids) - _MOST_FOUND))
        self._answer.setText("\n".join(lines))
        self._answer.show()
        return ids[0] if ids else None

    def _standing(self, token_id: int) -> str:
        assert self._chain is not None
        stages = [s for s in self._chain.stages if s.active]
        places = figures.standings(stages, token_id)
        where = " · ".join(words.standing(self.tr, one) for one in places)
        return f"{self.model.label(token_id)} (id {token_id}): {where}"

    def _force_selected(self) -> None:
        rows = self.view.selectionModel().selectedRows()
        if rows:
            self._force_row(rows[0])

    def _force_row(self, index: QModelIndex) -> None:
        self.forced.emit(self.model.token_id(index.row()))
