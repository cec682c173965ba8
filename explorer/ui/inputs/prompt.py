"""The prompt box: text with its live tokens behind it, their number, and what is wrong."""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QTextCursor, QTextLine
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from explorer.figures.text import turns
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State, reading
from explorer.trace.step import Token
from explorer.ui.access.shortcut_guard import LEAVES_UNDO
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.inputs.control_token_choice import ControlChoice
from explorer.ui.inputs.turn_list import TurnList
from explorer.ui.kit import boxes
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme


def spans(text: str, tokens: tuple[Token, ...]) -> list[tuple[int, int]]:
    """Where each token is written in `text`, as (start, end) in UTF-16 units, in order.

    Ends where the tokens stop spelling the text, so a stale answer never colours a wrong place.
    A character spread over several tokens is one span for all of them.
    """
    data = text.encode("utf-8", "surrogatepass")
    # Per byte: UTF-16 units before, and up to the end of, the character it belongs to.
    before: list[int] = []
    after: list[int] = []
    units = 0
    for character in text:
        count = len(character.encode("utf-8", "surrogatepass"))
        before.extend([units] * count)
        units += 2 if ord(character) > 0xFFFF else 1
        after.extend([units] * count)
    found: list[tuple[int, int]] = []
    at = 0
    for token in tokens:
        raw = token.raw
        if not data.startswith(raw, at):
            if token.special:
                continue  # put there by the tokenizer, not typed
            if not (at == 0 and raw.startswith(b" ") and data.startswith(raw[1:])):
                break
            raw = raw[1:]  # a space that the tokenizer puts before the first word
        if not raw:
            continue
        end = at + len(raw)
        # A token that ends inside a character takes the whole of it.
        if not found or before[at] >= found[-1][1]:
            found.append((before[at], after[end - 1]))
        at = end
    return found


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _units(text: str) -> int:
    """Its length as Qt counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class TokenEdit(QPlainTextEdit):
    """A text field that paints a tint behind each token of its text."""

    left = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._tokens: tuple[Token, ...] = ()
        self._spans: list[tuple[int, int]] = []
        self._ends: list[int] = []
        self.setTabChangesFocus(True)
        # Typing is one act among steps and settings: the session takes back whichever was last.
        self.setUndoRedoEnabled(False)
        self.setProperty(LEAVES_UNDO, True)
        IgnoreFileDrops(self)
        self.textChanged.connect(self._measure)

    def text(self) -> str:
        """The text exactly; `toPlainText` would turn no-break spaces into spaces."""
        return self.document().toRawText().replace("\u2029", "\n").replace("\u2028", "\n")

    def show_text(self, text: str) -> None:
        """Take another text in place of the part that differs; the cursor goes to its end."""
        had = self.text()
        same = _alike(had, text)
        rest = _alike(had[same:][::-1], text[same:][::-1])
        cursor = self.textCursor()
        cursor.setPosition(_units(had[:same]))
        cursor.setPosition(_units(had[: len(had) - rest]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[same : len(text) - rest])
        self.setTextCursor(cursor)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Those that the text is tinted by."""
        return self._tokens

    def set_tokens(self, tokens: tuple[Token, ...]) -> None:
        if tokens == self._tokens:
            return
        self._tokens = tokens
        self._measure()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.viewport().update()

    def _measure(self) -> None:
        self._spans = spans(self.text(), self._tokens)
        self._ends = [end for _, end in self._spans]
        self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._spans:
            painter = QPainter(self.viewport())
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            self._paint_spans(painter)
            painter.end()
        super().paintEvent(event)

    def _paint_spans(self, painter: QPainter) -> None:
        """Only the lines on screen, and of each only the tokens on it."""
        colours = [QColor(self._theme.prompt.edge), QColor(self._theme.generated.edge)]
        for colour in colours:
            colour.setAlpha(70)
        block = self.firstVisibleBlock()
        bottom = self.viewport().height()
        while block.isValid():
            box = self.blockBoundingGeometry(block).translated(self.contentOffset())
            layout = block.layout()
            for i in range(layout.lineCount()):
                line = layout.lineAt(i)
                top = box.top() + line.y()
                if top > bottom:
                    return
                if top + line.height() >= 0:
                    self._paint_line(painter, colours, line, block.position(), box.left(), top)
            block = block.next()

    def _paint_line(
        self,
        painter: QPainter,
        colours: list[QColor],
        line: QTextLine,
        block_start: int,
        left: float,
        top: float,
    ) -> None:
        begin = block_start + line.textStart()
        end = begin + line.textLength()
        index = bisect_right(self._ends, begin)
        while index < len(self._spans) and self._spans[index][0] < end:
            first, last = self._spans[index]
            x = _x_of(line, max(first, begin) - block_start)
            right = _x_of(line, min(last, end) - block_start)
            painter.setBrush(colours[index % 2])
            rect = QRectF(left + x + 0.5, top + 0.5, max(right - x - 1, 2), line.height() - 1)
            painter.drawRoundedRect(rect, 3, 3)
            index += 1


def _x_of(line: QTextLine, position: int) -> float:
    """Where a character of a line begins."""
    answer = line.cursorToX(position)
    assert isinstance(answer, tuple)  # (x, cursor position)
    return float(answer[0])


_SHOWN_FROM = (
    *("request", "card", "opened", "vocabulary"),
    *("prompt_tokens", "prompt_parts", "prompt_turns", "prompt_problem", "prompt_note"),
)


class PromptBox(Wrapping):
    """Prompt, raw or chat, token count against the model's context."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._simple = False
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = TermLabel(self.tr("Prompt"), term="prompt")
        title.setProperty("look", "title")
        self._mode = ComboBox()
        self._mode.addItems([self.tr("Raw text"), self.tr("Chat")])
        self._mode.setAccessibleName(self.tr("How the prompt is read"))
        self._mode.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._mode.activated.connect(lambda index: session.set_chat(index == 1))
        self.edit = TokenEdit(theme)
        self.edit.setProperty("look", "prompt")  # the style leaves it three lines at least
        self.edit.setAccessibleName(self.tr("Prompt"))
        title.setBuddy(self.edit)
        self.edit.setPlaceholderText(self.tr("Type a prompt here, then press Step (Ctrl+Enter)"))
        self.edit.textChanged.connect(self._on_typed)
        self.turns = TurnList(session)
        self.turns.chosen.connect(self._show_text)
        self.turns.wanted.connect(self.edit.setFocus)
        self.control = ControlChoice(session)
        self._count = SentenceLabel(look="small")
        self._problem = SentenceLabel(look="error")
        self._remark = SentenceLabel(look="warning")  # the prompt is read all the same
        self._note = SentenceLabel(look="small")
        for label in (self._problem, self._remark, self._note):
            label.hide()
        top = boxes.line(None, (title, 1), self._mode)
        below = (self.control, self._count, self._problem, self._remark, self._note)
        boxes.column(self, top, self.turns, (self.edit, 1), *below, edges=(10, 6, 10, 6), gap=4)

    def set_simple(self, on: bool) -> None:
        """Without the choice between raw text and chat, unless it is a chat."""
        self._simple = on
        self._show_mode(self._session.state)

    def _show_mode(self, state: State) -> None:
        self._mode.setVisible(not self._simple or state.request.chat)

    @property
    def count_text(self) -> str:
        return self._count.text()

    @property
    def problem_text(self) -> str:
        return self._problem.text()

    @property
    def remark_text(self) -> str:
        """Where the tokens are not simply the text that was typed."""
        return self._remark.text()

    @property
    def note_text(self) -> str:
        return self._note.text()

    def show_state(self, old: State | None, new: State) -> None:
        self.turns.show_state(old, new)
        self._show_text()
        of_run = (new.card is None or new.other_model) and changed(old, new, "trace")
        if not (of_run or changed(old, new, *_SHOWN_FROM)):
            return
        self._mode.setCurrentIndex(int(new.request.chat))
        self._show_mode(new)
        card = new.next_card
        offered = card is None or card.has_chat_template
        self._mode.setEnabled(offered or new.request.chat)
        self._mode.setToolTip(
            self.tr(
                "Raw text: sent to the model unchanged. Chat: sent as a user message in "
                "the chat template."
            )
            if offered
            else self.tr("This model has no chat template. It continues raw text.")
        )
        tokens = _tokens_of(new)
        self.control.show_state(new)
        self._tint(new)
        self._count.setText(self._count_words(new, len(tokens)))
        problem, remark = new.prompt_problem, ""
        if new.prompt_tokens:
            problem, remark = "", problem
        said = ((self._problem, problem), (self._remark, remark), (self._note, new.prompt_note))
        for label, words in said:
            label.setText(words)
            label.setVisible(bool(words))

    def _show_text(self) -> None:
        """The prompt, or the turn that is edited."""
        message = self.turns.message
        text = self._session.state.request.prompt if message is None else message.content
        if text != self.edit.text():
            blocked = self.edit.blockSignals(True)
            self.edit.show_text(text)
            self.edit.blockSignals(blocked)
        self._tint(self._session.state)

    def _tint(self, state: State) -> None:
        """Show the tokens of the text that is edited."""
        tokens = _tokens_of(state)
        if state.request.chat:
            tokens = _message_of(state, tokens, self.turns.place)
        self.edit.set_tokens(tokens)

    def _on_typed(self) -> None:
        message, text = self.turns.message, self.edit.text()
        if message is None:
            self._session.set_prompt(text)
        else:
            messages = turns.messages_of(self._session.state.request)
            changed_one = turns.replaced(messages, self.turns.place, content=text)
            self._session.set_messages(changed_one, typing=True)

    def _count_words(self, state: State, count: int) -> str:
        card = state.next_card
        if card is None and state.trace is not None and not state.other_model:
            card = state.trace.card
        live = state.card is not None and not state.other_model
        if state.other_model and not count:
            name = Path(state.request.model).name if card is None else card.name
            return self.tr("Open {0} to count the tokens").format(name)
        if card is None or not (live or count):
            return self.tr("Open a model to count the tokens")
        if card.context:
            words = self.tr("{0} of {1} tokens").format(f"{count:,}", f"{card.context:,}")
        else:
            words = self.tr("1 token") if count == 1 else self.tr("{0} tokens").format(f"{count:,}")
        if state.request.chat:
            adds = any(turn.added and turn.role == "system" for turn in state.prompt_turns)
            with_template = (
                self.tr("{0}, chat template included (it adds a system turn)")
                if adds
                else self.tr("{0}, chat template included")
            )
            words = with_template.format(words)
        policy = "" if state.request.chat else card.bos_policy  # a template writes its own start
        if state.other_model:
            words = self.tr("{0} (tokenizer of {1})").format(words, card.name)
        return f"{words}. {policy}" if policy else words


def _message_of(state: State, tokens: tuple[Token, ...], place: int) -> tuple[Token, ...]:
    """Of a chat prompt's tokens those of one message itself; none where that is not known."""
    parts = state.prompt_parts
    if state.request.typed and parts is not None:
        return tokens[parts.message : parts.message_end]
    written = (turn.text for turn in state.prompt_turns if turn.message == place)
    return next((tokens[first:end] for first, end in filter(None, written)), ())


def _tokens_of(state: State) -> tuple[Token, ...]:
    """Live tokens of the prompt; without its model those of the trace, if its prompt is shown."""
    live = state.card is not None and not state.other_model
    if state.prompt_tokens or live or state.trace is None:
        return state.prompt_tokens
    made = state.trace.request
    if reading(made)[1:] != reading(state.request)[1:]:  # but for the model
        return ()
    return tuple(token for token in state.trace.prompt if token.origin != "padding")
