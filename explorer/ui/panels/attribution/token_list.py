"""The likeliest tokens to choose from, and on request any other."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.text.tokens import written
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.panel.token_dialog import TokenDialog

_ANOTHER = "another"


class TokenList(ComboBox):
    """Its first entry stands for no token; tokens that the user looked up stay in it."""

    changed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self._names: Vocabulary | None = None
        self._looked_up: dict[int, Token] = {}
        self._before = 0  # the entry that is chosen
        self.dialog: TokenDialog | None = None
        self.currentIndexChanged.connect(self._on_chosen)

    @property
    def token(self) -> int | None:
        """The id that is chosen; None for the first entry."""
        chosen = self.itemData(self._before)
        return chosen if isinstance(chosen, int) else None

    def offer(self, first: str, likely: Sequence[Token], names: Vocabulary | None) -> None:
        """Other tokens.  The first entry is chosen, unless the user's choice was looked up.

        Without a vocabulary no other token can be looked up.
        """
        if names is not self._names:
            self._names, self._looked_up = names, {}
        kept = self.token if self.token in self._looked_up else None
        ids = {token.id for token in likely}
        more = [token for token in self._looked_up.values() if token.id not in ids]
        with QSignalBlocker(self):
            self.clear()
            self.addItem(first, None)
            for token in (*likely, *more):
                self.addItem(written(token), token.id)
            if names is not None:
                self.addItem(self.tr("another…"), _ANOTHER)
            self._before = 0 if kept is None else self.findData(kept)
            self.setCurrentIndex(self._before)

    def _on_chosen(self, place: int) -> None:
        if self.itemData(place) != _ANOTHER:
            self._before = place
            self.changed.emit()
            return
        with QSignalBlocker(self):
            self.setCurrentIndex(self._before)
        if self._names is not None:
            self.dialog = TokenDialog(self._names, self.window())
            self.dialog.chosen.connect(self._take)
            self.dialog.open()

    def _take(self, token_id: int) -> None:
        """Add a token that was looked up, and choose it."""
        if self._names is None or self.dialog is None or self.dialog.names is not self._names:
            return  # another model was opened meanwhile
        token = self._names.token(token_id)
        if self.findData(token_id) < 0:
            self._looked_up[token_id] = token
            with QSignalBlocker(self):
                self.insertItem(self.count() - 1, written(token), token_id)
        self.setCurrentIndex(self.findData(token_id))
