"""A label for sentences, whatever they quote."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from explorer.figures.text.sentences import fitting


class SentenceLabel(QLabel):
    """Wraps, and never grows wide: no word of its text is longer than fits a small window."""

    def __init__(self, text: str = "", look: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if look:
            self.setProperty("look", look)
        self.setText(text)

    def setText(self, text: str) -> None:
        super().setText(fitting(text, keep="\n"))
