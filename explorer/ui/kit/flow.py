"""A row of controls that goes on in a next row where there is no more room."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class Flow(QLayout):
    """Items keep the sizes they like; the first may take the room its row has left."""

    def __init__(self, parent: QWidget | None = None, *, first_grows: bool = False) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._first_grows = first_grows
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(4)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        rows = self._rows(width)
        return sum(high for _, high in rows) + self.spacing() * (len(rows) - 1)

    def sizeHint(self) -> QSize:
        sizes = [size for _, size in self._seen()]
        whole = sum(size.width() + self.spacing() for size in sizes) - self.spacing()
        return QSize(max(whole, 0), max((size.height() for size in sizes), default=0))

    def minimumSize(self) -> QSize:
        widest = max((item.minimumSize().width() for item in self._items), default=0)
        return QSize(widest, self.heightForWidth(max(self.geometry().width(), widest)))

    def setGeometry(self, area: QRect) -> None:
        changed = area.width() != self.geometry().width()
        super().setGeometry(area)
        y = area.top()
        for row, high in self._rows(area.width()):
            self._place(row, QRect(area.left(), y, area.width(), high))
            y += high + self.spacing()
        parent = self.parentWidget()
        if changed and parent is not None:
            parent.updateGeometry()  # other rows, another least height

    def _seen(self) -> list[tuple[QLayoutItem, QSize]]:
        """Each item that is not hidden, with the size it likes."""
        items = (item for item in self._items if not item.isEmpty())
        return [(item, item.sizeHint().expandedTo(item.minimumSize())) for item in items]

    def _rows(self, width: int) -> list[tuple[list[tuple[QLayoutItem, QSize]], int]]:
        """Items row by row, and how high each row is."""
        rows: list[tuple[list[tuple[QLayoutItem, QSize]], int]] = []
        used, spacing = width + 1, self.spacing()
        for item, size in self._seen():
            wide = spacing + size.width()
            if used + wide > width:
                rows.append(([], 0))
                used = -spacing
            row, high = rows[-1]
            row.append((item, size))
            rows[-1] = (row, max(high, size.height()))
            used += wide
        return rows

    def _place(self, row: list[tuple[QLayoutItem, QSize]], area: QRect) -> None:
        used = sum(size.width() for _, size in row) + self.spacing() * (len(row) - 1)
        spare = max(0, area.width() - used)
        x = area.left()
        parent = self.parentWidget()
        mirrored = parent is not None and parent.layoutDirection() == Qt.LayoutDirection.RightToLeft
        for item, size in row:
            wide = min(size.width(), area.width())
            if self._first_grows and item is self._items[0]:
                wide += spare
            down = (area.height() - size.height()) // 2
            place = QRect(QPoint(x, area.top() + down), QSize(wide, size.height()))
            if mirrored:
                place.moveRight(area.left() + area.right() - place.left())
            item.setGeometry(place)
            x += wide + self.spacing()
