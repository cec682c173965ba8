"""The same list of prompts on two models: which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from explorer.trace.experiments import ScoredPrompt


class RowPair(NamedTuple):
    """One prompt on the model of before, and on the model of now; None where it was not run."""

    before: ScoredPrompt | None
    now: ScoredPrompt | None

    @property
    def either(self) -> ScoredPrompt:
        """The one of now, else the one of before."""
        found = self.now or self.before
        assert found is not None
        return found


def pairs(
    before: Sequence[ScoredPrompt], now: Sequence[ScoredPrompt] | None
) -> tuple[RowPair, ...]:
    """A row for each prompt of `now`, in its order; of `before`, as long as `now` is None.

    A prompt is matched by its text; one that stands in the list several times in its order.
    """
    if now is None:
        return tuple(RowPair(row, None) for row in before)
    left: dict[str, list[ScoredPrompt]] = {}
    for row in reversed(before):
        left.setdefault(row.prompt, []).append(row)
    found = []
    for row in now:
        same = left.get(row.prompt)
        found.append(RowPair(same.pop() if same else None, row))
    return tuple(found)
