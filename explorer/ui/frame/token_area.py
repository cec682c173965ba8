"""The sequence on top of the panels: every token of the run, and the slider through its steps."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStackedLayout, QToolButton, QWidget

from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State, reading
from explorer.trace.chat import ChatParts, PromptParts, TurnParts
from explorer.ui.canvases.tokens import strip_legend
from explorer.ui.canvases.tokens.plain_tokens import PlainTokens
from explorer.ui.canvases.tokens.strip_legend import StripLegend
from explorer.ui.canvases.tokens.token_strip import TokenStrip
from explorer.ui.frame.timeline import Timeline
from explorer.ui.frame.token_colours import TokenColours
from explorer.ui.glossary.labels import stand_for
from explorer.ui.kit.boxes import column, line
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.look.theme import Theme, unit

_ROOM_FOR_TEXT = 620  # pixels of width at a zoom of 1, from which the switch to plain text is seen
_TOKENS_FROM = (
    "trace",
    "step_index",
    "prompt_tokens",
    "prompt_parts",
    "prompt_turns",
    "chat_parts",
    "request",
)


class TokenArea(QWidget):
    """A click on a generated token goes to the step that made it, on another to its row."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._controls = True
        self._hides_next = False
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.strip = TokenStrip(theme)
        stand_for(self.strip, term="token")
        self.strip.picked.connect(session.select_slot)
        self.strip.hovered.connect(lambda slot: session.select(key=slot))
        self._empty = ElidedLabel(look="muted")  # half a window is not to be as wide as it
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text = PlainTokens()
        self.text.setAccessibleName(self.tr("Text of all tokens"))
        self.as_text = QToolButton()
        self.as_text.setText(self.tr("Text"))
        self.as_text.setCheckable(True)
        self.as_text.setToolTip(self.tr("Show the tokens as plain text, to select and copy"))
        self.as_text.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.as_text.toggled.connect(lambda: self._show_tokens(session.state))
        self.legend = StripLegend(theme)
        self.timeline = Timeline(session)
        self.colours = TokenColours(session)
        self.colours.changed.connect(self._on_coloured)
        tokens = QWidget()
        tokens.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._pages = QStackedLayout(tokens)
        self._pages.addWidget(self._empty)
        self._pages.addWidget(self.strip)
        self._pages.addWidget(self.text)
        self._below = QWidget()
        line(self._below, (self.timeline, 1), self.legend, self.colours, self.as_text)
        column(self, tokens, self._below, gap=2, edges=(10, 4, 10, 4))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_controls(self, on: bool) -> None:
        """The slider and the choice of colours, or only the tokens and what their colours mean."""
        self._controls = on
        self._below.setVisible(on or self.colours.by is not None)

    def set_simple(self, on: bool) -> None:
        """Without the choice of colours, unless one is chosen."""
        self.colours.setVisible(not on or self.colours.by is not None)

    def hide_next(self, on: bool) -> None:
        """Leave out the token that the step on screen chose, and all that follow."""
        if on is not self._hides_next:
            self._hides_next = on
            self._show_tokens(self._session.state)

    def _on_coloured(self) -> None:
        self.show_controls(self._controls)
        self._show_colours(self._session.state)
        self._show_legend(self._session.state)

    def show_state(self, old: State | None, new: State) -> None:
        self.timeline.show_state(old, new)
        self.colours.show_state(old, new)
        loading = old is not None and "loading" in (old.status.activity, new.status.activity)
        if changed(old, new, *_TOKENS_FROM) or (loading and changed(old, new, "status")):
            self._show_tokens(new)
        if changed(old, new, "trace", "measured"):
            self._show_colours(new)
        shown = new.shown
        self.strip.set_marks(None if shown is None else shown.query, new.selection.key)
        if changed(old, new, *_TOKENS_FROM):
            self._show_legend(new)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        # A small window has no room for it; all that is generated can still be copied.
        self.as_text.setVisible(self.width() >= round(_ROOM_FOR_TEXT * unit(self)))

    def _show_tokens(self, state: State) -> None:
        shown = state.shown
        if shown is not None and self._hides_next:
            self.strip.set_tokens(shown.trace.tokens[: shown.slots])
        elif shown is not None:
            self.strip.set_tokens(shown.trace.tokens, read=shown.slots)
        elif state.trace is not None:
            self.strip.set_tokens(state.trace.tokens)
        else:
            self.strip.set_tokens(state.prompt_tokens)
        self.strip.set_parts(chat_parts(state))
        self.strip.set_reused(0 if state.trace is None else state.trace.reused_tokens)
        self.strip.set_forgotten(forgotten(state))
        some = state.trace is not None or bool(state.prompt_tokens)
        self._pages.setCurrentIndex((2 if self.as_text.isChecked() else 1) if some else 0)
        if self.as_text.isChecked():
            self.text.show_text(self.strip.text())
        self._empty.setText(self._words_for_none(state))

    def _words_for_none(self, state: State) -> str:
        """In place of tokens; the first opening of a model takes a while, which is shown here."""
        if state.status.activity == "loading":
            return self.tr("{0}. You can already type a prompt.").format(
                state.status.text.rstrip("….")
            )
        return self.tr("The tokens of your prompt appear here as you type.")

    def _show_colours(self, state: State) -> None:
        known = self.colours.known(state)

        def more(slot: int) -> str:
            return self.colours.tip(state, slot, known[slot]) if slot < len(known) else ""

        self.strip.set_levels(self.colours.levels(state, known), more)

    def _show_legend(self, state: State) -> None:
        """What the boxes mean; colours of figures have a key of their own."""
        shown, trace = state.shown, state.trace
        tokens = state.prompt_tokens if trace is None else trace.tokens
        read = len(tokens) if shown is None else shown.slots
        parts = chat_parts(state)
        by_origin = self.colours.by is None
        gone = bool(forgotten(state))
        looks = (
            strip_legend.kinds(tokens, read, parts, shown is not None, gone) if by_origin else ()
        )
        self.legend.set_kinds(looks)


def forgotten(state: State) -> tuple[range, ...]:
    """The slots that the token on screen, and all after it, no longer attend to."""
    shown = state.shown
    if shown is None:
        return ()
    evicted = shown.trace.request.context.forgotten(shown.slots)
    left_out = [range(*span) for span in shown.trace.steps[shown.step].left_out]
    return tuple(filter(None, (evicted, *left_out)))


def chat_parts(state: State) -> PromptParts | None:
    """The parts of the chat prompt that is shown, padding counted in; None if not known of it."""
    trace = state.trace
    if trace is None:
        live = state.prompt_turns
        return TurnParts(turns=live, slots=len(state.prompt_tokens)) if live else state.prompt_parts
    if trace.turns:
        return TurnParts(turns=trace.turns, slots=len(trace.prompt))
    parts = state.chat_parts.get(reading(trace.request))
    if parts is None:
        return None
    before = next((i for i, t in enumerate(trace.prompt) if t.origin != "padding"), 0)
    return ChatParts(
        message=parts.message + before,
        message_end=parts.message_end + before,
        answer=parts.answer + before,
    )
