"""Rows of boxes kept as pictures; a row that only became longer is painted on."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QPainter, QPixmap


class RowPictures:
    """The pictures, and from where on the newest of them is out of date."""

    def __init__(self) -> None:
        self._pictures: dict[int, QPixmap] = {}
        self._stale: tuple[int, int] | None = None  # a row, and the first slot that changed in it

    def outdate(self, row: int, slot: int) -> None:
        """Everything from `slot`, which stands in `row`, on has changed; row -1 = everything."""
        stale, self._stale = self._stale, None
        if stale is not None and stale[0] != row:
            self._pictures.pop(stale[0], None)
        if row in self._pictures:
            self._stale = (row, slot if stale is None else min(slot, stale[1]))
        self._pictures = {at: picture for at, picture in self._pictures.items() if at <= row}

    def get(self, row: int) -> tuple[QPixmap | None, int | None]:
        """The picture of a row, if there is one, and the slot from which it is out of date."""
        stale = self._stale[1] if self._stale is not None and self._stale[0] == row else None
        return self._pictures.get(row), stale

    def put(self, row: int, picture: QPixmap) -> None:
        """The row as it is now."""
        self._pictures[row] = picture
        if self._stale is not None and self._stale[0] == row:
            self._stale = None


def blank(width: float, height: float, ratio: float) -> QPixmap:
    """A clear picture of that size; `ratio` is device pixels to a point."""
    picture = QPixmap((QSizeF(width, height) * ratio).toSize() + QSize(0, 1))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    return picture


def wipe(painter: QPainter, picture: QPixmap, left: float) -> None:
    """Clear a picture from `left` on."""
    rest = QRectF(picture.rect()).adjusted(left, 0, 0, 0)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Clear)
    painter.fillRect(rest, Qt.GlobalColor.black)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
