"""What a run does about a text that is longer than what it may read at once.

refuse      nothing is read that does not fit, and the run ends where the limit is
drop-turns  the oldest turns of a conversation are left out; system messages and the last turn stay
window      each token attends to the last N tokens alone
sinks       each token attends to the first S tokens and to the last N - S

While an answer is written, turns are dropped up to the next system message alone.

Under the last two the cache keeps no other tokens.  Positions stay those of the text: a run still
ends where the model's context does.  Under sinks, distances may be counted in the cache instead, as
StreamingLLM does: the first tokens move along, and no distance exceeds what is kept.  Windows that
a model has of its own stay.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from explorer.trace.interventions.kinds import MOST, Cells

PolicyName = Literal["refuse", "drop-turns", "window", "sinks"]
SINKS = 4  # usual number of first tokens that are kept
_Tokens = Annotated[int, Meta(ge=0, le=MOST)]


class ContextPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """One policy; ValueError for one that leaves no room for a last token."""

    name: PolicyName = "refuse"
    # That are kept, sinks included; without a window the most of a run, 0 = the model's context.
    tokens: _Tokens = 0
    sinks: _Tokens = 0  # of the first tokens
    # How far away they are: "cache", by what is kept between; then a run may go on for ever.
    distances: Literal["text", "cache"] = "text"

    def __post_init__(self) -> None:
        if self.keeps_last and self.tokens <= self.sinks:
            least = f"more than its {self.sinks:,} sinks" if self.sinks else "1 or more"
            raise ValueError(f"the policy “{self.name}” needs “tokens”: {least}")

    @property
    def keeps_last(self) -> bool:
        """True if each token attends to a number of the last ones."""
        return self.name in ("window", "sinks")

    @property
    def moves_sinks(self) -> bool:
        """True if distances to the first tokens are counted among what is kept."""
        return self.name == "sinks" and self.sinks > 0 and self.distances == "cache"

    @property
    def last(self) -> int:
        """How many of the last tokens are kept: one at least, the newest."""
        return self.tokens - self.sinks

    @property
    def cells(self) -> tuple[Cells, ...]:
        """The cells of attention that it cuts."""
        if not self.keeps_last:
            return ()
        keys = (self.sinks, MOST) if self.sinks else None
        return (Cells(keys=keys, back=(self.last, MOST)),)

    def limit(self, context: int) -> int:
        """Tokens that a run may read, on a model with this context; 0 = not known."""
        if self.moves_sinks:
            return 0
        if self.keeps_last or not self.tokens:
            return context
        return min(self.tokens, context) if context else self.tokens

    def kept(self, slots: int) -> int:
        """How many of so many slots that were read the cache holds."""
        return min(slots, self.sinks + self.last) if self.keeps_last else slots

    def forgotten(self, slots: int) -> range:
        """The slots that no token attends to any more once so many were read."""
        if not self.keeps_last or self.kept(slots) == slots:
            return range(0)
        return range(self.sinks, slots - self.last)


USUAL = ContextPolicy()
"""Nothing is evicted or left out: a run ends where the model's context does."""
