"""A page of help: groups of rows with two columns, which a screen reader can walk over."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
)

from explorer.ui.look.theme import unit

Row = tuple[str, str]  # what is left and right
Group = tuple[str, Sequence[Row]]  # a title, and its rows


_BESIDE, _AROUND = 20, 5  # pixels at a zoom of 1 that a row keeps free, in width and height


class _Wrapped(QStyledItemDelegate):
    """Rows as high as their text needs: under a style sheet Qt's own takes one line for all."""

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        hint = super().sizeHint(option, index)
        rows = self.parent()
        if index.column() != 1 or not isinstance(rows, QTreeWidget):
            return hint
        u = unit(rows)
        room = QRect(0, 0, max(1, rows.columnWidth(1) - round(_BESIDE * u)), 10_000)
        text = str(index.data() or "")
        needed = rows.fontMetrics().boundingRect(room, int(Qt.TextFlag.TextWordWrap), text)
        return QSize(hint.width(), max(hint.height(), needed.height() + round(_AROUND * u)))


class GroupedRows(QTreeWidget):
    """Rows under the titles of their groups, all open; long texts on the right wrap."""

    def __init__(self, name: str, heads: tuple[str, str]) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setColumnCount(2)
        self.setHeaderLabels(list(heads))
        self.setWordWrap(True)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.setItemDelegate(_Wrapped(self))
        self.setAlternatingRowColors(True)
        self.setRootIsDecorated(False)
        self.setItemsExpandable(False)
        self.setUniformRowHeights(False)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        header = self.header()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Stretch)
        header.setSectionsMovable(False)
        # Rows are as high as their text needs at the width that the second column gets.
        header.sectionResized.connect(lambda *_: self.scheduleDelayedItemsLayout())

    def show_groups(self, groups: Sequence[Group]) -> None:
        """Other rows."""
        self.clear()
        for title, rows in groups:
            part = QTreeWidgetItem([title])
            part.setFlags(Qt.ItemFlag.ItemIsEnabled)
            self.addTopLevelItem(part)
            part.setFirstColumnSpanned(True)
            for row in rows:
                QTreeWidgetItem(part, list(row))
        self._dress()
        self.expandAll()
        first = self.topLevelItem(0)
        if first is not None and first.childCount():
            self.setCurrentItem(self._items()[0])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._dress()

    def _dress(self) -> None:
        """Titles in the bold of the font that there is now."""
        font = self.font()
        font.setBold(True)
        for part in map(self.topLevelItem, range(self.topLevelItemCount())):
            if part is not None:
                part.setFont(0, font)
        self.scheduleDelayedItemsLayout()

    def rows(self) -> list[Row]:
        """All that is shown, without the titles."""
        return [(item.text(0), item.text(1)) for item in self._items()]

    def select(self, left: str) -> None:
        """Go to the row that has this on its left, if there is one."""
        for item in self._items():
            if item.text(0) == left:
                self.setCurrentItem(item)
                self.scrollToItem(item, QAbstractItemView.ScrollHint.PositionAtCenter)
                return

    @property
    def selected(self) -> str:
        """What is on the left of the selected row; "" if none is."""
        item = self.currentItem()
        return "" if item is None or item.parent() is None else item.text(0)

    def _items(self) -> list[QTreeWidgetItem]:
        """The rows of all groups."""
        groups = map(self.topLevelItem, range(self.topLevelItemCount()))
        found = (part.child(row) for part in groups if part for row in range(part.childCount()))
        return [item for item in found if item is not None]
