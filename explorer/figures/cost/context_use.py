"""How much of the context a run has taken, and what is left of it under its policy."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest

NEAR = 0.9  # of the limit: from here on it is said


@dataclass(frozen=True, slots=True)
class ContextUse:
    """Tokens of a text against what a run may read."""

    used: int
    limit: int  # 0 = not known
    kept: int | None = None  # tokens in reach under a window; None = all of them

    @property
    def share(self) -> float:
        """0..1 of the limit; 0 where none is known."""
        return min(1.0, self.used / self.limit) if self.limit else 0.0

    @property
    def near(self) -> bool:
        """True from a share on that is worth a warning."""
        return self.share >= NEAR


def context_use(request: RunRequest, card: ModelCard, tokens: int) -> ContextUse:
    """Of a text of so many tokens, padding included, as this request reads it."""
    policy = request.context
    limit = policy.limit(max(0, card.context - request.position_offset) if card.context else 0)
    return ContextUse(tokens, limit, policy.kept(tokens) if policy.keeps_last else None)
