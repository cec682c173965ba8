"""Every token of the vocabulary as rows of a table that makes a row only when it is seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from explorer.figures.prediction.sampling import Listing
from explorer.figures.text import tokens
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.wording import exact_percent

Index = QModelIndex | QPersistentModelIndex
RANK, ID, TEXT, BYTES, RAW, FINAL = range(6)


class TokenTable(QAbstractTableModel):
    """V rows, one an id: two ids that are spelled alike are two rows."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._heads = (
            self.tr("rank"), self.tr("id"), self.tr("text"), self.tr("bytes"),
            self.tr("model"), self.tr("final"),
        )  # fmt: skip
        self._listing: Listing | None = None
        self._order = np.zeros(0, np.int64)  # row -> id
        self._names: Vocabulary | None = None
        self._known: Mapping[int, Token] = {}
        self._sorted = (RANK, Qt.SortOrder.AscendingOrder)
        self._by_text: np.ndarray | None = None  # ids in order of their bytes

    def show(self, listing: Listing, names: Vocabulary | None, known: Mapping[int, Token]) -> None:
        """Other figures; without a vocabulary only the tokens in `known` have a text."""
        other = self._listing is None or len(self._listing.raw) != len(listing.raw)
        if other:
            self.beginResetModel()
        if names is not self._names:
            self._by_text = None
        self._listing, self._names, self._known = listing, names, known
        self._arrange()
        if other:
            self.endResetModel()
        elif len(self._order):
            # Only what is seen is asked for again: the view has a few dozen rows.
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._order) - 1, FINAL))

    def clear(self) -> None:
        self.beginResetModel()
        self._listing, self._order = None, np.zeros(0, np.int64)
        self.endResetModel()

    def token_id(self, row: int) -> int:
        """The id in a row."""
        return int(self._order[row])

    def row_of(self, token_id: int) -> int | None:
        """The row of an id."""
        found = np.flatnonzero(self._order == token_id)
        return int(found[0]) if len(found) else None

    def token(self, token_id: int) -> Token | None:
        """The token of an id, as far as its bytes are known."""
        if self._names is not None and token_id < len(self._names):
            return self._names.token(token_id)
        return self._known.get(token_id)

    @property
    def known(self) -> Mapping[int, Token]:
        """Tokens whose bytes are known without a vocabulary."""
        return self._known

    def label(self, token_id: int) -> str:
        """The visible text of an id, or that it is not known."""
        token = self.token(token_id)
        return self.tr("needs the model") if token is None else tokens.written(token)

    def table(self) -> Iterator[Sequence[object]]:
        """Every row as plain values, for a file."""
        yield "rank", "id", "text", "bytes_hex", "raw_probability", "probability"
        listing = self._listing
        if listing is None:
            return
        for i in self._order.tolist():
            token = self.token(i)
            text, raw = ("", "") if token is None else (tokens.written(token), token.raw.hex())
            yield int(listing.rank[i]), i, text, raw, float(listing.raw[i]), float(listing.final[i])

    # -- Qt

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._order)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self._heads)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self._heads[section]
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or self._listing is None:
            return None
        column = index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignLeft if column in (TEXT, BYTES) else None
            side = side or Qt.AlignmentFlag.AlignRight
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        token_id = self.token_id(index.row())
        if column == ID:
            return str(token_id)
        if column == RANK:
            return f"{int(self._listing.rank[token_id]) + 1:,}"
        if column == TEXT:
            return self.label(token_id)
        if column == BYTES:
            token = self.token(token_id)
            return "" if token is None else token.raw.hex(" ")
        p = float((self._listing.raw if column == RAW else self._listing.final)[token_id])
        return self.tr("cut") if column == FINAL and p == 0 else exact_percent(p)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._sorted = (column, order)
        self.layoutAboutToBeChanged.emit()
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        listing = self._listing
        if listing is None:
            return
        column, order = self._sorted
        falling = order == Qt.SortOrder.DescendingOrder
        if column in (TEXT, BYTES):
            ids = self._ids_by_text()
            self._order = ids[::-1] if falling else ids
            return
        if column == ID:
            ids = np.arange(len(listing.raw))
            self._order = ids[::-1] if falling else ids
            return
        if column == FINAL:
            keys = (listing.rank, -listing.final if falling else listing.final)
            self._order = np.lexsort(keys)
            return
        best_first = falling == (column == RAW)  # rank 1 is the largest probability
        ids = np.empty(len(listing.rank), np.int64)
        ids[listing.rank] = np.arange(len(ids))
        self._order = ids if best_first else ids[::-1]

    def _ids_by_text(self) -> np.ndarray:
        """Ids in order of their bytes; those that are not known come last."""
        assert self._listing is not None
        size = len(self._listing.raw)
        if self._by_text is None or len(self._by_text) != size:
            if self._names is not None and len(self._names) == size:
                self._by_text = self._names.by_bytes()
            else:
                known = [(token is None, token.raw if token else b"", i)
                         for i in range(size) for token in (self.token(i),)]  # fmt: skip
                self._by_text = np.array([i for *_, i in sorted(known)], np.int64)
        return self._by_text
