"""Asks for any token of the model's vocabulary, by its text or its id."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QLineEdit, QListWidget, QListWidgetItem, QWidget

from explorer.figures.text.named_tokens import beginning
from explorer.figures.text.tokens import written
from explorer.trace.vocabulary import Vocabulary
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel

MOST = 200  # tokens that are listed


class TokenDialog(Dialog):
    """A line to type in, and under it every token that it may mean; `chosen` gives one's id."""

    chosen = Signal(int)

    def __init__(self, names: Vocabulary, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Choose a token"))
        self.names = names
        self.line = QLineEdit()
        self.line.setPlaceholderText(self.tr("Token text or id"))
        self.line.setAccessibleName(self.tr("Find a token by its text or id"))
        self.line.setClearButtonEnabled(True)
        self.line.textChanged.connect(self._find)
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Tokens with this text"))
        self.list.setUniformItemSizes(True)
        self.list.itemDoubleClicked.connect(self.accept)
        self._said = SentenceLabel(look="small")
        buttons = QDialogButtonBox()
        self.take = buttons.addButton(self.tr("Choose"), QDialogButtonBox.ButtonRole.AcceptRole)
        self.take.setProperty("look", "primary")
        buttons.addButton(self.tr("Cancel"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self.lay_out(boxes.column(None, self.line, self._said, (self.list, 1), gap=6), buttons)
        self.size_for((360, 340))
        self._find("")

    def _find(self, text: str) -> None:
        """List what the text may mean, the likeliest first and selected."""
        ids = beginning(text, self.names, MOST)
        self.list.clear()
        for token_id in ids:
            words = self.tr("{0}   id {1}").format(written(self.names.token(token_id)), token_id)
            item = QListWidgetItem(words)
            item.setData(Qt.ItemDataRole.UserRole, token_id)
            self.list.addItem(item)
        self.list.setCurrentRow(0 if ids else -1)
        self.take.setEnabled(bool(ids))
        if not text:
            said = self.tr("Type the beginning of a token, or its id.")
        elif not ids:
            said = self.tr("No token begins with this text. A word can take several tokens.")
        elif len(ids) == MOST:
            said = self.tr("The first {0} tokens that begin with this text.").format(MOST)
        else:
            said = self.tr("Tokens that begin with this text: {0}").format(len(ids))
        self._said.setText(said)

    def accept(self) -> None:
        item = self.list.currentItem()
        if item is not None:
            self.chosen.emit(int(item.data(Qt.ItemDataRole.UserRole)))
            super().accept()
