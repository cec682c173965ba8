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
    """

    role: str
    first_slot: int
    last_slot: int
    message: int | None = None

    @property
    def added(self) -> bool:
        """True for what the template adds by itself."""
        return self.message is None

    def moved(self, slots: int) -> ChatTurn:
        """The same turn so many slots further on."""
        first, last = self.first_slot + slots, self.last_slot + slots
        return msgspec.structs.replace(self, first_slot=first, last_slot=last)


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
