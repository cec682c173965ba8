"""The models found, as a table that sorts by true figures and filters by any word of a row."""

from __future__ import annotations

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRegularExpression,
    QSortFilterProxyModel,
    Qt,
)

from explorer.figures.text import sentences
from explorer.trace.found_models import FoundModel
from explorer.ui.access.tips import tip
from explorer.ui.dialogs import loading_words
from explorer.wording import short_bytes

Index = QModelIndex | QPersistentModelIndex
_SORT = Qt.ItemDataRole.UserRole
_WHOLE = _SORT + 1  # everything that the filter looks at
_NUMBERS = (2, 3)
_ROOT = QModelIndex()


class ModelTable(QAbstractTableModel):
    """One row a model."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.models: tuple[FoundModel, ...] = ()
        self._available: int | None = None  # bytes of memory
        self._heads = (
            self.tr("Name"),
            self.tr("Architecture"),
            self.tr("Parameters"),
            self.tr("Size"),
            self.tr("Stored as"),
            self.tr("Fits"),
            self.tr("Location"),
        )

    def set_models(self, models: tuple[FoundModel, ...], available: int | None = None) -> None:
        """Show these, beside so many bytes of memory that can be had."""
        self._available = available
        if models != self.models:
            self.beginResetModel()
            self.models = models
            self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.models)

    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._heads)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return self._heads[section]
            if role == Qt.ItemDataRole.TextAlignmentRole:
                return _side(section)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        found, column = self.models[index.row()], index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return sentences.name(self._text(found, column))
        if role == _SORT:
            # Floats, as Qt would compare small and large integers as different types.
            figures = {2: float(found.parameters or 0), 3: float(found.bytes)}
            return figures.get(column, self._text(found, column).casefold())
        if role == _WHOLE:
            return " ".join((found.name, found.architecture, found.dtype, found.source, found.path))
        if role == Qt.ItemDataRole.ToolTipRole:
            return tip(found.path)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(column)
        return None

    def _text(self, found: FoundModel, column: int) -> str:
        number = "–" if found.parameters is None else f"{found.parameters:,}"
        fits = {True: self.tr("yes"), False: self.tr("no"), None: self.tr("unknown")}
        if found.is_gguf and loading_words.fits(found, "as-is", self._available):
            fits[False] = self.tr("as it is")
        return (
            found.name,
            found.architecture,
            number,
            short_bytes(found.bytes),
            found.dtype,
            self.tr("incomplete") if found.incomplete else fits[found.fits],
            found.source,
        )[column]


def _side(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class ModelFilter(QSortFilterProxyModel):
    """Rows in which every word typed occurs, in any column."""

    def __init__(self, source: ModelTable, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self.setSourceModel(source)
        self.setSortRole(_SORT)
        self.setFilterRole(_WHOLE)

    def set_words(self, text: str) -> None:
        each = "".join(f"(?=.*{QRegularExpression.escape(word)})" for word in text.split())
        option = QRegularExpression.PatternOption.CaseInsensitiveOption
        self.setFilterRegularExpression(QRegularExpression(f"^{each}", option))

    def found(self, index: Index) -> FoundModel | None:
        """The model of a row as it is shown."""
        at = self.mapToSource(index)
        return self._source.models[at.row()] if at.isValid() else None
