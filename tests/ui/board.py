"""The attention panel on a state of its own, without a session behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from explorer.session.state import State
from explorer.trace.comparison import Of
from explorer.ui.look.apply_theme import apply
from explorer.ui.look.theme import LIGHT
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.ui.waiting import activate, settle, show, wait_until


class Board:
    """The part of a session that a panel needs: the state, and a wish to change the selection."""

    def __init__(self) -> None:
        self.state = State()
        self.measured = self.fetched = False
        self.panel: AttentionPanel

    def select(self, **changes: Any) -> None:
        self.show(selection=replace(self.state.selection, **changes))

    def compare(self, on: bool, of: Of = "mask") -> None:
        self.show(comparing=on, compare_of=of)

    def measure(self, kind: type, quiet: bool = False, **settings: Any) -> None:
        self.measured = True

    def fetch_all(self) -> None:
        self.fetched = True

    def sweep_heads(self) -> None:
        self.measured = True

    def show(self, **changes: Any) -> None:
        old, self.state = self.state, replace(self.state, **changes)
        self.panel.show_state(old, self.state)

    def settle(self) -> None:
        wait_until(lambda: not self.panel.busy)
        settle()


@contextmanager
def shown_board(app: QApplication, width: int, height: int) -> Iterator[Board]:
    """One whose panel is on screen."""
    apply(app, LIGHT)
    board = Board()
    board.panel = AttentionPanel(board, LIGHT)  # type: ignore[arg-type]
    board.panel.resize(width, height)
    show(board.panel)
    activate(board.panel)
    board.panel.show_state(None, board.state)
    yield board
    board.panel.deleteLater()
    app.sendPostedEvents(board.panel, QEvent.Type.DeferredDelete.value)
