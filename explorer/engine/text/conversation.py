"""Finds the turns of a conversation in the text that a chat template makes of it.

Nothing is guessed: the template is rendered again with one message changed, with fewer messages,
or with one more, and what differs tells where a message begins and ends.  Where the template
refuses such a rendering, a turn is the message's own text alone, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from explorer.engine.errors import BadInput
from explorer.engine.text import chat_parts
from explorer.trace.chat import Message

Render = Callable[[Sequence[Message], bool], str]
"""Messages as the template writes them; True: ready for an answer.  BadInput if it refuses."""

ASSISTANT, TEMPLATE = "assistant", "template"
_SHOWN = 60  # characters of a message in a sentence


@dataclass(frozen=True, slots=True)
class TurnText:
    """The characters `first` to `end` of the rendered text are one turn."""

    role: str
    first: int
    end: int
    message: int | None = None  # None: the template adds it
    text: tuple[int, int] | None = None  # characters of the message's own text, if it is there


@dataclass(slots=True)
class Conversation:
    """Messages as the model reads them."""

    text: str
    turns: list[TurnText] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def once(render: Render) -> Render:
    """The same, but no messages are rendered twice; for one text, as it keeps what it rendered."""
    known: dict[tuple[tuple[Message, ...], bool], str] = {}

    def remembered(messages: Sequence[Message], opened: bool) -> str:
        asked = tuple(messages), opened
        if asked not in known:
            known[asked] = render(messages, opened)
        return known[asked]

    return remembered


def rendered(messages: Sequence[Message], render: Render, start: str) -> Conversation:
    """The text of `messages` and its turns.  `start`: the text of the start token, if there is one.

    It ends ready for an answer, or within the last message if that is the assistant's: then the
    model goes on with it.  BadInput if the template refuses the messages.
    """
    goes_on = messages[-1].role == ASSISTANT
    text = render(messages, not goes_on)
    search = _TurnFinder(messages, render, text, not goes_on)
    if goes_on:
        last = search.contents[-1]
        if last is None:
            raise BadInput(
                "This model's chat template rewrites the assistant's last message, so the model "
                "can't go on with it. Leave that message out, or end with another role."
            )
        text = text[: last[1]]
    found = Conversation(text)
    found.turns = search.turns(len(text), start, found.notes)
    found.notes += search.changed_messages()
    return found


class _TurnFinder:
    """One rendered conversation, compared with others."""

    def __init__(
        self, messages: Sequence[Message], render: Render, text: str, opened: bool
    ) -> None:
        self.messages, self.render, self.text, self.opened = messages, render, text, opened
        said = "".join(message.content for message in messages) + text
        self.marks = [mark for mark in chat_parts.OTHERS if mark not in said][:3]
        self.contents = [self._content(messages, text, i, opened) for i in range(len(messages))]

    # -- one message

    def _content(
        self, messages: Sequence[Message], text: str, index: int, opened: bool
    ) -> tuple[int, int] | None:
        """Where the content of a message is in `text`; None if it is not there as it is."""
        return chat_parts.place_of(
            text,
            messages[index].content,
            lambda other, _: self.render(_with(messages, index, other), opened),
        )

    def _end(self, index: int) -> int | None:
        """Where the turn of a message ends; None if that can't be told."""
        if index == len(self.messages) - 1 and not self.opened:
            content = self.contents[index]
            return None if content is None else content[1]
        upto = self.messages[: index + 1]
        closed = self._tried(upto)
        content = self.contents[index]
        if closed is None:
            return None
        if content is None:
            before = self._tried(self.messages[:index]) if index else ""
            grew = before is not None and len(closed) > len(before)
            return len(closed) if grew and self.text.startswith(closed) else None
        if self.text.startswith(closed) and len(closed) >= content[1]:
            return len(closed)
        marked = self._tried(_with(upto, index, self.marks[0])) or ""
        _, mark, tail = marked.partition(self.marks[0])
        fits = mark and self.marks[0] not in tail and self.text.startswith(tail, content[1])
        return content[1] + len(tail) if fits else None

    def _tried(self, messages: Sequence[Message], opened: bool = False) -> str | None:
        try:
            return self.render(messages, opened)
        except BadInput:
            return None

    def _inside(self, index: int) -> tuple[int, int] | None:
        """What a message adds to the turn of the one after it; None if it stands by itself."""
        content = self.contents[index]
        if content is None or index + 1 >= len(self.messages):
            return None
        marked = [Message(m.role, self.marks[i % 3]) for i, m in enumerate(self.messages)]
        with_it = self._tried(marked, self.opened)
        without = self._tried([*marked[:index], *marked[index + 1 :]], self.opened)
        if with_it is None or without is None:
            return None
        first = chat_parts.shared(with_it, without)
        last = len(with_it) - chat_parts.shared(with_it[::-1], without[::-1])
        place = with_it.find(self.marks[index % 3], first, last)
        more = len(with_it) - len(without)
        if place == first:  # new from the content on: nothing of the message is before it
            last = first + more
        if last - first != more or not first <= place < last:
            return None  # it takes the place of something, or could be one of several places
        before, after = with_it[first:place], with_it[place + 1 : last]
        fits = self.text[: content[0]].endswith(before) and self.text.startswith(after, content[1])
        return (content[0] - len(before), content[1] + len(after)) if fits else None

    # -- all of them

    def turns(self, length: int, start: str, notes: list[str]) -> list[TurnText]:
        """Every turn in order; what can't be told is added to `notes`."""
        found: list[TurnText] = []
        begin: int | None = self._first(start, found)
        for index, message in enumerate(self.messages):
            content, end = self.contents[index], self._end(index)
            if content is None and end is None:
                continue  # not there, or rewritten beyond recognition: `changed_messages` says so
            if end is None and (inside := self._inside(index)) is not None:
                found.append(TurnText(message.role, *inside, index, content))
                outer = self._named(index + 1)
                notes.append(f"The chat template writes {self._named(index)} inside {outer}.")
                continue
            first = begin if begin is not None or content is None else content[0]
            last = end if end is not None or content is None else content[1]
            begin = end
            if first is None or last is None:
                continue
            if end is None:
                notes.append(
                    f"Where the template ends {self._named(index)} can't be told: the turn is the "
                    "message's own text."
                )
            found.append(TurnText(message.role, min(first, last), last, index, content))
        if self.opened and begin is not None and begin < length:
            found.append(TurnText(ASSISTANT, begin, length))
        return found

    def _first(self, start: str, found: list[TurnText]) -> int:
        """Where the first message's turn begins; what the template adds before goes to `found`."""
        begin = self._own_beginning()
        if begin is None:
            begin = len(start) if start and self.text.startswith(start) else 0
        if begin:
            role = "system" if self._is_system_message(begin) else TEMPLATE
            found.append(TurnText(role, 0, begin))
        return begin

    def _own_beginning(self) -> int | None:
        """Where the first message begins: as it would if another were before it."""
        content = self.contents[0]
        if content is None:
            return None
        role = self.messages[0].role
        first, second = Message(role, self.marks[0]), Message(role, self.marks[1])
        between = Message("user" if role == ASSISTANT else ASSISTANT, self.marks[2])
        for before in ([first, between], [first]):
            closed, whole = self._tried(before), self._tried([*before, second])
            if closed is None or whole is None or not whole.startswith(closed):
                continue
            opening, mark, _ = whole[len(closed) :].partition(self.marks[1])
            if mark and self.text[: content[0]].endswith(opening):
                return content[0] - len(opening)
        return None

    def _is_system_message(self, begin: int) -> bool:
        """True if what stands before `begin` is written as a system message is."""
        if self.messages[0].role == "system":
            return False
        stated = self._tried([Message("system", self.marks[0]), *self.messages], self.opened)
        if stated is None or not stated.endswith(self.text[begin:]):
            return False
        added = self.text[:begin]
        opening, mark, closing = stated[: len(stated) - len(self.text[begin:])].partition(
            self.marks[0]
        )
        long_enough = len(added) > len(opening) + len(closing)
        return bool(mark and long_enough and added.startswith(opening) and added.endswith(closing))

    def changed_messages(self) -> list[str]:
        """What the template does not write as it was given."""
        found = []
        for index, message in enumerate(self.messages):
            place, content = self.contents[index], message.content
            if place is None:
                other = self._tried(_with(self.messages, index, self.marks[0]), self.opened)
                gone = other == self.text or (other is not None and self.marks[0] not in other)
                words = "leaves out" if gone else "rewrites"
                found.append(f"The chat template {words} {self._named(index)}.")
                continue
            written = self.text[slice(*place)]
            if written.strip() == content.strip():
                continue
            if written.strip() in content:
                left = " ".join(content.replace(written.strip(), " … ", 1).split())
                short = left if len(left) <= _SHOWN else f"{left[:_SHOWN]}…"
                found.append(
                    f"The chat template leaves out a part of {self._named(index)}: {short}"
                )
            else:
                found.append(f"The chat template changes the text of {self._named(index)}.")
        return found

    def _named(self, index: int) -> str:
        return f"message {index + 1} ({self.messages[index].role})"


def _with(messages: Sequence[Message], index: int, content: str) -> list[Message]:
    """The same messages, one with another content."""
    changed = Message(messages[index].role, content)
    return [*messages[:index], changed, *messages[index + 1 :]]
