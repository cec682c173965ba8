"""Ready-made beginnings: the second side with one thing that is another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMenu, QWidget

from explorer.figures.text import characters
from explorer.session import transitions
from explorer.session.state import State
from explorer.trace.request import TYPED, Form, RunRequest
from explorer.ui.beside.acting_side import ActingSide
from explorer.ui.beside.side_by_side import SideBySide

_LONGEST = 60  # letters of a branch in a menu


class WaysBeside(QObject):
    """Each begins the second side if there is none, and makes it the side that acts."""

    def __init__(
        self, beside: SideBySide, choose_model: Callable[[], None], window: QWidget
    ) -> None:
        """`choose_model` lists the models for the side that acts."""
        super().__init__(window)
        self._beside, self._window = beside, window
        self._choose_model = choose_model

    def another_prompt(self) -> None:
        """The same model; the prompt is selected, to be typed over."""
        side = self._begin()
        side.prompt.edit.setFocus()
        side.prompt.edit.selectAll()

    def another_model(self) -> None:
        """The same prompt; the model is chosen from the list."""
        self._begin(opens=False)
        self._choose_model()

    def other_settings(self) -> None:
        """The same prompt; the first of the sampling settings has the focus."""
        self._begin().sampling.temperature.spin.setFocus()

    def saved_run(self) -> None:
        """A file, which is asked for."""
        self._begin(opens=False).files.ask_file()

    def raw_beside_chat(self) -> None:
        """The same question the other way, as many steps."""
        state = self._own
        chat = not state.request.chat
        card = state.next_card
        if chat and card is not None and not card.has_chat_template:
            self._beside.acting.session.report(
                self.tr("{0} has no chat template. Open an instruct model.").format(card.name)
            )
            return
        self._lay_out(msgspec.structs.replace(state.request, chat=chat, **TYPED))

    def other_form(self) -> None:
        """The same .gguf file in its other form, as many steps."""
        state = self._own
        now = "" if state.card is None else state.card.form
        form: Form = "as-is" if now == "float32" else "float32"
        model = state.request.model
        asked = transitions.opened(state.request, model, None, None, None, None, form)
        self._lay_out(asked, opens=False)

    def another_branch(self) -> None:
        """One of the other branches; of several one is chosen."""
        state = self._own
        others = [one for one in state.tree if one.number != state.branches.current]
        if len(others) == 1:
            self._show_branch(others[0].number)
            return
        menu = QMenu(self._window)
        for one in others:
            text = b"".join(token.raw for token in one.trace.chosen).decode("utf-8", "replace")
            shown = characters.elide(" ".join(text.split()), _LONGEST)
            name = f"{one.name}: {shown}".replace("&", "&&")
            menu.addAction(name, partial(self._show_branch, one.number))
        menu.popup(self._window.mapToGlobal(self._window.rect().center()))

    def _show_branch(self, number: int) -> None:
        branch = next((one for one in self._own.tree if one.number == number), None)
        if branch is not None:
            self._begin()
            self._beside.copy_of(branch)

    @property
    def _own(self) -> State:
        return self._beside.own.session.state

    def _begin(self, opens: bool = True) -> ActingSide:
        second = self._beside.begin(opens)
        self._beside.act_on(second.side)
        return second.side

    def _lay_out(self, request: RunRequest, opens: bool = True) -> None:
        """Put this in place on the second side, and make as many steps as the other has.

        Not `opens`: it is another model, or another form of it.
        """
        state = self._own
        steps = 0 if state.trace is None else len(state.trace.steps)
        side = self._begin(opens)
        links = self._beside.links
        assert links is not None

        def begin() -> None:
            side.session.lay_out(request, state.sampling, state.stops, steps)
            if not (opens or steps):
                side.session.open_model(request.model, form=request.form)

        side.files.unsaved.before(lambda: links.act(side.session, lambda _: begin()))
