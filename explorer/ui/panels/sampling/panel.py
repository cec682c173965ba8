"""Sampling: from logits to a token, stage by stage, over the whole vocabulary."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QWidget

from explorer.figures.prediction import sampling as figures
from explorer.figures.prediction.next_token import FEW
from explorer.figures.prediction.sampling import Chain, Orders
from explorer.sampling import SamplingError
from explorer.session.changes import changed
from explorer.session.selection import Shown
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ResultLabel
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import TabWidget
from explorer.ui.look.theme import Theme
from explorer.ui.panel.panel import Panel, View
from explorer.ui.panels.sampling import words
from explorer.ui.panels.sampling.chain_view import ChainView
from explorer.ui.panels.sampling.token_view import TokenView
from explorer.ui.threads.worker import Worker


class SamplingPanel(Panel):
    """Needs no model: the raw logits are there, the rest follows the controls."""

    ID = "sampling"
    BESIDE = "attention"
    TITLE = QT_TRANSLATE_NOOP("SamplingPanel", "Sampling")
    TERM = "sampling"
    EXPLANATION = QT_TRANSLATE_NOOP(
        "SamplingPanel", "From logits to the chosen token, stage by stage"
    )
    EMPTY = QT_TRANSLATE_NOOP(
        "SamplingPanel",
        "Type a prompt and press Step (Space) to see how a token is chosen from the logits.",
    )
    NEEDS = (*Panel.NEEDS, "sampling", "names")

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(session, theme, parent)
        self._state: State | None = None
        self._worker = Worker(self)
        self._chain: Chain | None = None
        self._orders: Orders | None = None
        self._as_picked = False  # else: with the settings of the controls
        self._whose = ResultLabel()
        self._switch = QPushButton()
        self._switch.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._switch.clicked.connect(self._toggle)
        top = boxes.line(None, (self._whose, 1), self._switch)
        self.chain_view = ChainView(theme)
        self.chain_view.requested.connect(session.set_sampling)
        self.token_view = TokenView()
        self.token_view.forced.connect(session.force)
        self.tabs = TabWidget()
        self.tabs.addTab(self.chain_view, self.tr("Stages"))
        self.tabs.addTab(self.token_view, self.tr("All tokens"))
        self.tabs.currentChanged.connect(lambda _: self._redraw())
        self.content.setSpacing(3)
        self.content.addLayout(top)
        self.content.addWidget(self.tabs, 1)

    def show_state(self, old: State | None, new: State) -> None:
        if old is not None and changed(old, new, "sampling"):
            self._as_picked = False  # whoever moves a control wants to see what it does
        elif changed(old, new, *Panel.NEEDS):
            self._as_picked = new.selection.step is not None  # a step of the past: as it was
        super().show_state(old, new)

    def draw(self, new: State) -> None:
        self._state = new
        self._redraw()

    def views(self) -> Mapping[str, View]:
        if self._chain is None:
            return {}
        return {
            self.tr("Stages"): View(self.chain_view, self.chain_view.table_rows),
            self.tr("All tokens"): View(self.token_view, self.token_view.model.table),
        }

    @property
    def busy(self) -> bool:
        return self._worker.busy

    def _toggle(self) -> None:
        self._as_picked = not self._as_picked
        self._redraw()

    def _redraw(self) -> None:
        state = self._state
        shown = None if state is None else state.shown
        if state is None or shown is None:
            self._worker.drop("chain")
            self._forget("")
            return
        trace, index = shown.trace, shown.step
        settings = shown.last_pass.sampling if self._as_picked else state.sampling
        both = self.tabs.currentWidget() is self.chain_view

        def work() -> tuple[State, Shown, Chain, Orders | None]:
            found = figures.chain(trace, index, settings)
            return state, shown, found, figures.orders(trace, index, found) if both else None

        # Not in the window's thread: a large vocabulary takes longer than a move of a slider.
        few = len(shown.last_pass.logits) <= FEW
        self._worker.follow("chain", work, self._show, self._show_reason, at_once=few)

    def _forget(self, why: str) -> None:
        self._chain = None
        self.token_view.model.clear()
        self.show_empty(why)

    def _show_reason(self, error: Exception) -> None:
        if not isinstance(error, SamplingError):
            raise error
        self._forget(str(error))

    def _show(self, found: tuple[State, Shown, Chain, Orders | None]) -> None:
        state, shown, self._chain, self._orders = found
        self._switch.setVisible(shown.last_pass.sampling != state.sampling)
        self._switch.setText(
            self.tr("Show current settings") if self._as_picked
            else self.tr("Show settings used")
        )  # fmt: skip
        self._whose.setText(words.whose(self.tr, self._chain))
        self._draw(state, shown, self._chain)
        self.show_content()

    def _draw(self, state: State, shown: Shown, chain: Chain) -> None:
        """Only the tab that is seen."""
        # Tokens whose bytes travel with the trace.
        known = {token.id: token for token in (*shown.trace.tokens, *shown.last_pass.top)}
        if self.tabs.currentWidget() is self.token_view:
            self.token_view.show_chain(chain, state.names, known)
            return

        def label(token_id: int) -> str:
            return words.token(known, state.names, token_id)

        self.chain_view.show_chain(chain, self._orders, state.sampling, label)
