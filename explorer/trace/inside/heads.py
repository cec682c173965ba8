"""Which head matters here: each one silenced in turn, and what that does to one token."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from explorer.trace.experiments import Count, Experiment, Result, Share

MOST_HEADS = 1 << 20
Logit = Annotated[float, Meta(ge=-1e39, le=1e39)]


class HeadSweep(Result, frozen=True, kw_only=True):
    """The token's logit and probability with each head silenced; the first heads, if cut short."""

    token: Count
    logit: Logit  # with every head
    probability: Share
    heads: Annotated[tuple[Count, ...], Meta(max_length=MOST_HEADS)]  # per layer; 0 = no attention
    logits: Annotated[tuple[Logit, ...], Meta(max_length=MOST_HEADS)]  # without each, in order
    probabilities: Annotated[tuple[Share, ...], Meta(max_length=MOST_HEADS)]

    def __post_init__(self) -> None:
        if len(self.logits) != len(self.probabilities):
            raise ValueError("not one probability a logit")
        if len(self.logits) > sum(self.heads):
            raise ValueError("more results than heads")

    @property
    def complete(self) -> bool:
        """True once every head was silenced."""
        return len(self.logits) == sum(self.heads)

    @property
    def changes(self) -> dict[tuple[int, int], tuple[float, float]]:
        """By (layer, head): how the logit and the probability change without it."""
        places = ((layer, head) for layer, count in enumerate(self.heads) for head in range(count))
        values = zip(self.logits, self.probabilities, strict=True)
        return {
            at: (logit - self.logit, probability - self.probability)
            for at, (logit, probability) in zip(places, values, strict=False)
        }


class SweepHeads(Experiment, frozen=True, kw_only=True):
    """Silence each head in turn; what does that do to the token chosen at this step?"""

    RESULT = HeadSweep
    RUNNING = "Silencing one head after the other…"
    CANCELLED = "Cancelled. The heads so far are kept."
    IN_PARTS = True

    chosen: tuple[int, ...] = ()
    token: int | None = None  # None = the most probable one
