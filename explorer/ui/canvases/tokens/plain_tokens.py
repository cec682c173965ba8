"""The tokens of a run as plain text."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QSizePolicy


class PlainTokens(QPlainTextEdit):
    """All tokens as text to select and copy from, in the room of the strip."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)

    def minimumSizeHint(self) -> QSize:
        return QSize(40, 10)

    def show_text(self, text: str) -> None:
        """Show it; what is selected in it stays selected while only more is added."""
        before = self.toPlainText()
        if text == before:
            return
        if before and text.startswith(before):
            end = QTextCursor(self.document())
            end.movePosition(QTextCursor.MoveOperation.End)
            marked = self.textCursor()
            anchor, position = marked.anchor(), marked.position()
            end.insertText(text[len(before) :])
            marked.setPosition(anchor)
            marked.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(marked)
        else:
            self.setPlainText(text)
