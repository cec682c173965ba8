"""What was read of single tokens at any time, for as long as it is true of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from explorer.trace.trace import Trace


class ReadColumn(Protocol):
    """All rows of one token."""

    @property
    def chosen(self) -> tuple[int, ...]:
        """Tokens that had been generated when it was read."""


C = TypeVar("C", bound=ReadColumn)


def true_of(known: Mapping[int, C], trace: Trace, step: int) -> tuple[C | None, ...]:
    """One entry for each slot that step `step` has read: its column, if that still holds.

    Under the causal mask a column depends on nothing after its token; without it on every token.
    """
    chosen, prompt = trace.chosen_ids[:step], len(trace.prompt)
    causal = trace.request.causal_mask
    same: dict[int, int] = {}  # how many generated tokens two runs share, by what was read
    found: list[C | None] = []
    for slot in range(trace.read_slots(step)):
        column = known.get(slot)
        if column is not None:
            key = id(column.chosen)
            if key not in same:
                same[key] = _shared(column.chosen, chosen)
            enough = same[key] >= max(0, slot - prompt + 1)
            if not (enough if causal else column.chosen == chosen):
                column = None
        found.append(column)
    return tuple(found)


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many entries they begin with alike."""
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
