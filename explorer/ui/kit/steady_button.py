"""A button whose text changes while it is on, and whose size does not."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QToolButton, QWidget


class SteadyButton(QToolButton):
    """As wide as the longest of its texts, so that nothing beside it moves.

    The second press of a double click does nothing: it would undo the first.
    """

    def __init__(self, texts: Sequence[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._texts = texts

    def sizeHint(self) -> QSize:
        """Also the least size, by Qt's own."""
        hint = super().sizeHint()
        if self.toolButtonStyle() == Qt.ToolButtonStyle.ToolButtonIconOnly:
            return hint
        metrics, shown = self.fontMetrics(), Qt.TextFlag.TextShowMnemonic.value
        widths = [metrics.size(shown, text).width() for text in (*self._texts, self.text())]
        return QSize(hint.width() + max(widths) - widths[-1], hint.height())

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()
