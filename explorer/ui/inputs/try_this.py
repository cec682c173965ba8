"""The card "Try this": what the open model can do, and three prompts that show it."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from explorer import smollm2
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.inputs import sample_prompts
from explorer.ui.inputs.sample_prompts import Sample
from explorer.ui.inputs.smollm2_download import Smollm2Download
from explorer.ui.kit import boxes
from explorer.ui.kit.scrolled import Snug
from explorer.ui.kit.sentence import SentenceLabel

_PROMPTS = 3
_COPYCAT = "copycat"


class TryThis(Snug):
    """A click puts a prompt in place and says what to look at; Step is the user's."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._taken: Sample | None = None
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = QLabel(self.tr("Try this"))
        title.setProperty("look", "title")
        self.about = SentenceLabel()
        self.prompts = [self._button() for _ in range(_PROMPTS)]
        self._samples: list[Sample] = []
        self.hint = SentenceLabel(look="muted")
        self.download = Smollm2Download(session)
        parts = (title, self.about, *self.prompts, self.hint, self.download)
        boxes.column(self, *parts, edges=(10, 6, 10, 8), gap=5)
        self.set_snug(True)  # the prompt above it has what is left

    def _button(self) -> QPushButton:
        button = QPushButton()
        button.setProperty("look", "choice")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(partial(self._take, button))
        return button

    def show_state(self, old: State | None, new: State) -> None:
        self.download.show_state(old, new)
        if not changed(old, new, "request", "card", "opened", "status", "trace"):
            return
        name = _model_of(new)
        self._samples = sample_prompts.fitting(name)[:_PROMPTS] if name else []
        if self._taken is not None and not new.request.prompt.startswith(self._taken.prompt):
            self._taken = None  # another prompt; a word more may be what it asks for
        for place, button in enumerate(self.prompts):
            button.setVisible(place < len(self._samples))
            if place < len(self._samples):
                sample = self._samples[place]
                button.setText(sample.title.replace("&", "&&"))
                button.setToolTip(sample.prompt.strip())
        self.about.setText(self._about(new, name))
        self.hint.setText(self._hint())
        self.hint.setVisible(bool(self._samples))

    def _about(self, state: State, name: str) -> str:
        if not name:
            return self.tr("No model is open. Choose one at the top left.")
        if name == _COPYCAT:
            return self.tr(
                "Copycat, a tiny teaching model, continues words that come back. It knows no facts "
                "and no grammar."
            )
        if name == smollm2.NAME:
            return self.tr(
                "SmolLM2, a small language model, writes English and knows some facts. It is often "
                "wrong."
            )
        shown = name if state.card is None else state.card.name
        return self.tr("These prompts suit most models. See what {0} makes of them.").format(shown)

    def _hint(self) -> str:
        if self._taken is None:
            return self.tr("Choose a prompt, then press Step (Space).")
        return self.tr("Press Step (Space). {0}").format(self._taken.look_at)

    def _take(self, button: QPushButton) -> None:
        self._taken = self._samples[self.prompts.index(button)]
        self._session.set_prompt(self._taken.prompt)
        self.hint.setText(self._hint())


def _model_of(state: State) -> str:
    """What is open, or is being opened; empty if nothing is."""
    if state.opened:
        return state.request.model if not state.other_model else state.opened[0].model
    return state.request.model if state.status.activity in ("loading", "starting") else ""
