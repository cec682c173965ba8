"""Where tokens stand: slots, padding, attention mask, positions and readout, made in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.engine.errors import BadInput
from explorer.trace.request import RunRequest


@dataclass(frozen=True, slots=True)
class Layout:
    """One sequence as it is fed, T slots long."""

    ids: tuple[int, ...]
    attention_mask: tuple[int, ...]  # 1 = a real token, 0 = padding
    position_ids: tuple[int, ...]  # cumsum(mask) - 1; 0 at padding

    @property
    def readout(self) -> int:
        """The last slot that holds a real token: where the next token is read off."""
        return max(slot for slot, real in enumerate(self.attention_mask) if real)

    def first(self, slots: int) -> Layout:
        """The first `slots` slots alone."""
        return Layout(self.ids[:slots], self.attention_mask[:slots], self.position_ids[:slots])

    @property
    def padded(self) -> bool:
        """True if any slot is padding."""
        return not all(self.attention_mask)


def lay_out(
    prompt_ids: Sequence[int], chosen: Sequence[int], request: RunRequest, pad_id: int | None
) -> Layout:
    """The prompt with its padding, then the tokens chosen so far.

    BadInput if there is no real token, or padding is asked for and no pad token is known.
    """
    if not prompt_ids:
        raise BadInput("The prompt is empty: type at least one character, then run again.")
    pads = request.pad if request.padding else 0
    if pads and pad_id is None:
        raise BadInput("This model names no padding token; run it without padding.")
    filler = [pad_id or 0] * pads
    zeros, ones = [0] * pads, [1] * len(prompt_ids)
    if request.padding == "right":
        ids, mask = [*prompt_ids, *filler], ones + zeros
    else:
        ids, mask = [*filler, *prompt_ids], zeros + ones
    mask = mask + [1] * len(chosen)
    return Layout((*ids, *chosen), tuple(mask), positions(mask))


def positions(mask: Sequence[int]) -> tuple[int, ...]:
    """cumsum(mask) - 1 for real tokens; a legal 0 at padding."""
    result, seen = [], 0
    for real in mask:
        seen += real
        result.append(seen - 1 if real else 0)
    return tuple(result)
