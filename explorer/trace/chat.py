"""Conversations, and where their parts lie among the tokens that a chat template makes of them."""

from __future__ import annotations

from typing import Literal

import msgspec

Part = Literal["template", "message", "opening"]


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation, as the chat template is given it."""

    role: str
    content: str


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The slots of a prompt that hold one turn, its role marks included; both ends belong to it.

    `message`: which of the messages it is, counted from 0; None for what the template adds by
    itself: a system message, a start token (role "template"), the opening of the answer.
    `text`: the first slot that holds some of the message's own text, and the first behind it; None
    where it is not written as it was given.
    """

    role: str
    first_slot: int
    last_slot: int
    message: int | None = None
    text: tuple[int, int] | None = None

    @property
    def added(self) -> bool:
        """True for what the template adds by itself."""
        return self.message is None

    def moved(self, slots: int) -> ChatTurn:
        """The same turn so many slots further on; what would begin before slot 0 begins there."""
        first, last = max(0, self.first_slot + slots), self.last_slot + slots
        text = self.text and (max(0, self.text[0] + slots), max(0, self.text[1] + slots))
        return msgspec.structs.replace(self, first_slot=first, last_slot=last, text=text)


class ChatParts(msgspec.Struct, frozen=True, kw_only=True):
    """Slots of a prompt without padding, rendered by a chat template for one user message."""

    message: int  # first slot that holds some of the message
    message_end: int  # first slot behind it
    answer: int  # first slot of what the template opens the answer with; the length if nothing

    def part(self, slot: int) -> Part:
        """What the token at this slot is for."""
        if self.message <= slot < self.message_end:
            return "message"
        return "opening" if slot >= self.answer else "template"

    def role(self, slot: int) -> str:
        """Not told here."""
        return ""


class TurnParts(msgspec.Struct, frozen=True, kw_only=True):
    """The same of a prompt of several turns, all of them known; slots as the turns have them."""

    turns: tuple[ChatTurn, ...]
    slots: int  # of the prompt

    @property
    def answer(self) -> int:
        """First slot of what the template opens the answer with; the length if nothing."""
        last = self.turns[-1]
        return last.first_slot if self._opens(last) else self.slots

    def part(self, slot: int) -> Part:
        """What the token at this slot is for."""
        turn = self._turn(slot)
        if turn is None:
            return "template"
        if turn.text is not None and turn.text[0] <= slot < turn.text[1]:
            return "message"
        return "opening" if self._opens(turn) else "template"

    def role(self, slot: int) -> str:
        """Whose turn it is; "" where none is known."""
        turn = self._turn(slot)
        return "" if turn is None else turn.role

    def _turn(self, slot: int) -> ChatTurn | None:
        """The innermost: a message may be written inside another's turn."""
        around = [one for one in self.turns if one.first_slot <= slot <= one.last_slot]
        return min(around, key=lambda one: one.last_slot - one.first_slot, default=None)

    def _opens(self, turn: ChatTurn) -> bool:
        return turn is self.turns[-1] and turn.added and turn.last_slot == self.slots - 1


PromptParts = ChatParts | TurnParts
"""What is known of the tokens of a chat prompt."""
