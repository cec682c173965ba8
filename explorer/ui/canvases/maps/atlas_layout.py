"""Where the thumbnail of each head is drawn: layers down and heads across, or row by row."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF

_LEAST, _MOST = 9, 150  # pixels a side of a thumbnail, at a zoom of 1
_STRETCH = 2.2  # thumbnails may be that much wider than high

Head = tuple[int, int]  # layer, head


class AtlasLayout:
    """Places in rows and columns, and their pixels; `left` and `top` are room for numbers."""

    def __init__(self) -> None:
        self.layers = self.heads = 0
        self.order: Sequence[Head] | None = None
        self.cell = QSizeF(1, 1)  # of a thumbnail and its gap: whole device pixels
        self.gap = 1
        self.left = self.top = 0
        self._columns = 1
        self._places: dict[Head, tuple[int, int]] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of thumbnails."""
        if self.order is not None:
            return (-(-len(self.order) // self._columns), self._columns)
        return (self.layers, self.heads)

    def set_heads(self, layers: int, heads: int, order: Sequence[Head] | None) -> None:
        """So many heads, in an order of their own or layer by layer."""
        self.layers, self.heads, self.order = layers, heads, order
        self._columns = max(heads, 1)

    def set_space(self, space: QSize, u: float, ratio: float, wide: bool = False) -> None:
        """Thumbnails as large as the space allows; `u` is the zoom, `ratio` pixels to a point.

        `wide`: they fill the width, though fewer rows are seen at a time.

        Heads in an order of their own fill rows that fit, so that none has to be looked for aside.
        """
        if self.order is not None:
            fit = int((space.width() - self.left - 2) / (_LEAST * u))
            self._columns = max(1, min(self.heads, fit))
            self._places = {at: divmod(rank, self._columns) for rank, at in enumerate(self.order)}
        rows, columns = self.shape
        if rows and columns:
            across = (space.width() - self.left - 2) / columns
            high = min(across, (space.height() - self.top - 2) / rows)
            if wide:
                high = max(high, across / _STRETCH)
            high = min(max(high, _LEAST * u), _MOST * u)
            across = min(max(across, _LEAST * u), high * _STRETCH)
            self.cell = QSizeF(int(across * ratio) / ratio, int(high * ratio) / ratio)
        self.gap = 1 if self.cell.height() < 20 * u else 3

    @property
    def sheet(self) -> QSizeF:
        """All thumbnails with the gaps between them."""
        rows, columns = self.shape
        return QSizeF(columns * self.cell.width(), rows * self.cell.height())

    @property
    def whole(self) -> QSizeF:
        """Everything, labels included."""
        return self.sheet + QSizeF(self.left, self.top)

    def head_of(self, row: int, column: int) -> Head | None:
        """Which head is drawn at a place."""
        rows, columns = self.shape
        if not (0 <= row < rows and 0 <= column < columns):
            return None
        if self.order is None:
            return (row, column)
        rank = row * columns + column
        return self.order[rank] if rank < len(self.order) else None

    def place_of(self, layer: int, head: int) -> tuple[int, int] | None:
        """Where a head is drawn."""
        if self.order is not None:
            return self._places.get((layer, head))
        rows, columns = self.shape
        return (layer, head) if layer < rows and head < columns else None

    def rect(self, row: int, column: int, offset: QPointF) -> QRectF:
        """The thumbnail at a place, the whole sheet being drawn at `offset`."""
        width, height = self.cell.width(), self.cell.height()
        corner = offset + QPointF(column * width, row * height)
        return QRectF(corner.x(), corner.y(), width - self.gap, height - self.gap)

    def head_at(self, point: QPointF, offset: QPointF) -> Head | None:
        """Which head is drawn under a point."""
        if point.x() < self.left or point.y() < self.top:
            return None
        at = point - offset
        return self.head_of(int(at.y() // self.cell.height()), int(at.x() // self.cell.width()))


def stride(room: float, cell: float) -> int:
    """Every how many thumbnails a number of that many pixels fits."""
    return next((n for n in (1, 2, 4, 8, 16) if n * cell >= room), 32)
