"""The turns of a chat as a list: add, delete, move, change the role; go on from the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QListWidget, QPushButton, QSizePolicy, QToolButton, QWidget

from explorer.figures.text import turns
from explorer.figures.text.characters import elide, printable
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.chat import Message
from explorer.ui.kit import boxes
from explorer.ui.kit.translation import QT_TRANSLATE_NOOP
from explorer.ui.kit.wheel_guard import ComboBox

_ROWS = 4  # in view at most
_LONGEST = 200  # characters of a row
_ROLES = {
    "system": QT_TRANSLATE_NOOP("TurnList", "System"),
    turns.USER: QT_TRANSLATE_NOOP("TurnList", "User"),
    turns.ASSISTANT: QT_TRANSLATE_NOOP("TurnList", "Assistant"),
    "tool": QT_TRANSLATE_NOOP("TurnList", "Tool"),
}


class TurnList(QWidget):
    """Which turn is edited is chosen here; its text is typed elsewhere."""

    chosen = Signal()  # another turn is edited
    wanted = Signal()  # its text is to be typed now

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._messages: tuple[Message, ...] = ()
        self._left_out: frozenset[int] = frozenset()  # messages that do not fit
        self.list = QListWidget()
        self.list.setAccessibleName(self.tr("Turns of the conversation"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setUniformItemSizes(True)
        # As wide as there is room for; Qt's own wish would widen the whole column.
        self.list.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.list.currentRowChanged.connect(lambda _: self._on_chosen())
        self.list.itemActivated.connect(lambda _: self.wanted.emit())
        self.role = ComboBox()
        self.role.setAccessibleName(self.tr("Role of this turn"))
        self.role.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        for name in turns.ROLES:
            self.role.addItem(self.tr(_ROLES[name]), name)
        self.role.activated.connect(lambda _: self._set_role(self.role.currentData()))
        self.add = self._tool("+", self.tr("Add a turn below"), self._add)
        self.earlier = self._tool("↑", self.tr("Move this turn up"), lambda: self._move(-1))
        self.later = self._tool("↓", self.tr("Move this turn down"), lambda: self._move(1))
        self.delete = self._tool("✕", self.tr("Delete this turn"), self._delete)
        self.reply = self._button(
            self.tr("Reply"),
            self.tr("Keep the answer as a turn, and write the next message"),
            self._reply,
        )
        self.keep = self._button(
            self.tr("Edit"),
            self.tr("Keep the answer as the last turn, and edit it. The model continues it."),
            self._keep,
        )
        self.keep.setAccessibleName(self.tr("Edit the answer"))
        self.again = self._button(self.tr("Regenerate"), "", session.answer_again)
        tools = boxes.line(
            None, (self.role, 1), self.add, self.earlier, self.later, self.delete, gap=2
        )
        self.answers = QWidget()
        boxes.line(self.answers, self.reply, self.keep, self.again, gap=4)
        boxes.column(self, self.list, tools, self.answers, gap=4)
        self.answers.hide()
        self.hide()

    def _tool(self, text: str, name: str, act: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        return button

    def _button(self, text: str, tip: str, act: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setToolTip(tip)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        return button

    # -- state

    @property
    def place(self) -> int:
        """Which turn is edited, counted from 0."""
        return max(0, self.list.currentRow())

    @property
    def message(self) -> Message | None:
        """The turn that is edited; None in raw text."""
        return self._messages[self.place] if self.place < len(self._messages) else None

    def show_state(self, old: State | None, new: State) -> None:
        if changed(old, new, "request", "prompt_turns"):
            self._left_out = turns.left_out(new.request, new.prompt_turns)
            self._show_messages(turns.messages_of(new.request))
        if changed(old, new, "request", "trace", "sampling", "status"):
            self._show_answers(new)

    def _show_messages(self, messages: Sequence[Message]) -> None:
        """Rows; the turn that is edited stays the same one, unless it is gone."""
        before, self._messages = self._messages, tuple(messages)
        self.setVisible(bool(messages))
        if self._messages == before:
            for row, message in enumerate(messages):
                self.list.item(row).setText(self._row(row, message))
            return
        place = self.place
        grew = len(messages) - len(before)
        blocked = self.list.blockSignals(True)
        while self.list.count() > len(messages):
            self.list.takeItem(self.list.count() - 1)
        while self.list.count() < len(messages):
            self.list.addItem("")
        for row, message in enumerate(messages):
            self.list.item(row).setText(self._row(row, message))
        same = bool(before) and place < min(len(before), len(messages)) and grew == 0
        self.list.setCurrentRow(place if same else len(messages) - 1)
        self.list.blockSignals(blocked)
        self._fit()
        self._on_chosen()

    def _row(self, place: int, message: Message) -> str:
        role = self.tr(_ROLES[message.role]) if message.role in _ROLES else printable(message.role)
        said = elide(" ".join(printable(message.content).split()), _LONGEST)
        words = self.tr("{0}: {1}").format(role, said or self.tr("(empty)"))
        return self.tr("(left out) {0}").format(words) if place in self._left_out else words

    def _fit(self) -> None:
        """As high as its rows, up to some."""
        rows = min(_ROWS, max(1, self.list.count()))
        frame = 2 * self.list.frameWidth()
        self.list.setFixedHeight(rows * max(1, self.list.sizeHintForRow(0)) + frame + 4)

    def _on_chosen(self) -> None:
        message = self.message
        if message is None:
            return
        known = self.role.findData(message.role)
        if known < 0:  # of a file
            self.role.addItem(printable(message.role), message.role)
            known = self.role.count() - 1
        self.role.setCurrentIndex(known)
        self.earlier.setEnabled(self.place > 0)
        self.later.setEnabled(self.place < len(self._messages) - 1)
        self.delete.setEnabled(len(self._messages) > 1)
        self.chosen.emit()

    def _show_answers(self, state: State) -> None:
        answered = turns.answer_of(state.request, state.trace) is not None
        self.answers.setVisible(answered)
        self.again.setEnabled(not state.sampling.takes_best)
        self.again.setToolTip(
            self.tr("Switch Greedy off first: the most likely tokens are always the same.")
            if state.sampling.takes_best
            else self.tr("Generate another answer, with the next seed. This one becomes a branch.")
        )

    # -- wishes

    def _set(self, messages: Sequence[Message], place: int) -> None:
        self._session.set_messages(messages)
        self.list.setCurrentRow(min(place, self.list.count() - 1))

    def _set_role(self, role: str) -> None:
        self._set(turns.replaced(self._messages, self.place, role=role), self.place)

    def _add(self) -> None:
        self._set(turns.added(self._messages, self.place), self.place + 1)
        self.wanted.emit()

    def _delete(self) -> None:
        self._set(turns.removed(self._messages, self.place), max(0, self.place - 1))

    def _move(self, by: int) -> None:
        self._set(turns.moved(self._messages, self.place, by), self.place + by)

    def _answered(self) -> tuple[Message, ...]:
        state = self._session.state
        return turns.with_answer(state.request, state.trace)

    def _keep(self) -> None:
        answered = self._answered()
        self._set(answered, len(answered) - 1)
        self.wanted.emit()

    def _reply(self) -> None:
        answered = self._answered()
        self._set(turns.added(answered, len(answered) - 1), len(answered))
        self.wanted.emit()
