"""Where the parts of a chat prompt lie: the template's own tokens, the message, the answer."""

from __future__ import annotations

from typing import Literal

import msgspec

Part = Literal["template", "message", "opening"]


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
