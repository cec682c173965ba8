"""Files dropped on the window: their paths; text fields leave them to the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QObject
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

_DRAGS = (QEvent.Type.DragEnter, QEvent.Type.DragMove, QEvent.Type.Drop)


def local_files(data: QMimeData) -> list[str]:
    """The paths of the files on this computer among what is dragged."""
    return [url.toLocalFile() for url in data.urls() if url.isLocalFile()]


class IgnoreFileDrops(QObject):
    """Makes a text field ignore dragged files, which go to its parent; it still takes text."""

    def __init__(self, field: QWidget) -> None:
        super().__init__(field)
        taker = field.viewport() if isinstance(field, QAbstractScrollArea) else field
        taker.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _DRAGS and isinstance(event, QDropEvent) and event.mimeData().hasUrls():
            event.ignore()
            return True
        return False
