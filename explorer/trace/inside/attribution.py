"""Which part of the model made a logit what it is: what is asked, and the sum that is found."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from explorer.trace.experiments import Bytes, Count, Experiment, Measure, Result
from explorer.trace.inside.lens import MOST_LISTED

# embedding, bias and rounding belong to no head; attention: where heads can't be told apart.
PartKind = Literal["embedding", "head", "attention", "mixer", "mlp", "other", "bias", "rounding"]
Number = Annotated[float, Meta(ge=-1e39, le=1e39)]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A token and its logit, as the model gave it."""

    id: Count
    raw: Bytes
    logit: Number


class LogitPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one part of the model adds to the logit, or to the difference of two."""

    kind: PartKind
    value: Number
    layer: Count | None = None
    head: Count | None = None


class Attribution(Result, frozen=True, kw_only=True):
    """A logit, or the difference of two, as a sum of parts, the final norm's scale held."""

    slot: Count
    target: Target
    against: Target | None
    parts: Annotated[tuple[LogitPart, ...], Meta(min_length=1, max_length=MOST_LISTED)]
    gap: Measure  # |sum - what it should be|

    @property
    def sum(self) -> float:
        """Of all parts."""
        return sum(part.value for part in self.parts)

    @property
    def wanted(self) -> float:
        """What they should add up to."""
        return self.target.logit - (0.0 if self.against is None else self.against.logit)


class Attribute(Experiment, frozen=True, kw_only=True):
    """Take the logit of a token apart into what each head and MLP adds to it."""

    RESULT = Attribution
    RUNNING = "Taking the logit apart…"
    CANCELLED = "Cancelled: the logit was not taken apart."

    chosen: tuple[int, ...] = ()
    slot: int | None = None  # None = the last token of the run
    token: int | None = None  # None = the model's favourite there
    against: int | None = None  # take apart by how much `token` is ahead of this one
