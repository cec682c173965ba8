"""A walk through one layer at one token: what is asked, and the stages that were measured."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from explorer.trace.experiments import Bytes, Count, Experiment, Measure, Result
from explorer.trace.inside.arrays import FLOAT, unpacked

MOST_STAGES = 400
Words = Annotated[str, Meta(max_length=400)]
Sizes = Annotated[tuple[Count, ...], Meta(max_length=8)]

# Which entries of a head make a pair, before and after: i and i + pairs; 2i and 2i + 1; or these
# before and those after.
Pairing = Literal["halves", "neighbours", "neighbours to halves"]
PAIRINGS: tuple[Pairing, ...] = ("halves", "neighbours", "neighbours to halves")


def pair_places(pairing: Pairing, start: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """(2, pairs) each: the entries of a head that make the pairs, before and after."""
    index = np.arange(pairs)
    halves = start + np.stack([index, index + pairs])
    neighbours = start + np.stack([2 * index, 2 * index + 1])
    if pairing == "neighbours to halves":
        return neighbours, halves
    both = halves if pairing == "halves" else neighbours
    return both, both


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of entries turned by position (RoPE), by the same angles in every head."""

    pairing: Pairing
    start: Count  # the first entry of a head that takes part
    position: Count
    angles: Bytes  # (pairs,) radians, as measured: -π to π
    frequencies: Bytes = b""  # (pairs,) radians a position, of the model; empty where not known
    factor: Measure  # that the lengths are multiplied by
    gap: Measure  # how far turning the vectors before is from those after, by the largest entry

    def __post_init__(self) -> None:
        if not self.angles or len(self.frequencies) not in (0, len(self.angles)):
            raise ValueError("not a frequency for each angle")
        self.measured, self.by_position  # numbers  # noqa: B018

    @property
    def pairs(self) -> int:
        """How many there are."""
        return len(self.angles) // 4

    @property
    def measured(self) -> np.ndarray:
        """(pairs,) radians."""
        return unpacked(self.angles, FLOAT, self.pairs)

    @property
    def by_position(self) -> np.ndarray | None:
        """(pairs,) radians that a pair turns with each position; None = not known."""
        return unpacked(self.frequencies, FLOAT, self.pairs) if self.frequencies else None


class LayerStage(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the computation, with the numbers that the model itself produced there."""

    name: Words
    formula: Words  # with this model's sizes
    shape: Sizes  # (d,), (heads, d), (heads, keys), …
    norm: Measure
    module: Words = ""  # inside the layer; empty where no module gives it
    data: Bytes = b""  # its numbers; empty where there are too many
    # How far it is from the formula on the stage before, by its largest entry; None: not computed.
    gap: Measure | None = None
    source: Words = ""  # the stage whose numbers were turned
    turn: Turn | None = None  # what RoPE did to them
    first_key: Count | None = None  # slot of the first column, where a column is a key

    def __post_init__(self) -> None:
        if self.data and len(self.data) != 4 * math.prod(self.shape):
            raise ValueError("not the numbers of its shape")
        if self.turn is not None:
            width = self.shape[-1] if self.shape else 0
            if self.turn.start + 2 * self.turn.pairs > width:
                raise ValueError("more pairs than there are numbers")

    @property
    def numbers(self) -> np.ndarray | None:
        """The numbers in their shape, float32; infinite where a mask hides."""
        if not self.data:
            return None
        return unpacked(self.data, FLOAT, *self.shape, finite=False)


class LayerWrite(msgspec.Struct, frozen=True, kw_only=True):
    """What one part added to the stream."""

    name: Words
    norm: Measure


class ExpertChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The experts that one token was sent to."""

    slot: Count
    ids: Annotated[tuple[Count, ...], Meta(max_length=4096)]
    weights: Annotated[tuple[float, ...], Meta(max_length=4096)]


class LayerWalk(Result, frozen=True, kw_only=True):
    """One layer at one token, stage by stage in the order in which it computed."""

    layer: Count
    slot: Count
    kind: Words  # attention, mixer (recurrent or convolutional), mlp, other
    stages: Annotated[tuple[LayerStage, ...], Meta(min_length=1, max_length=MOST_STAGES)]
    writes: Annotated[tuple[LayerWrite, ...], Meta(max_length=MOST_STAGES)]
    residual_gap: Measure | None  # None and a reason where no writes add up
    residual_reason: Words = ""
    experts: Annotated[tuple[ExpertChoice, ...], Meta(max_length=1 << 20)] = ()


class WalkLayer(Experiment, frozen=True, kw_only=True):
    """Everything one layer computes for one token."""

    RESULT = LayerWalk
    RUNNING = "Walking through the layer…"
    CANCELLED = "Cancelled: the layer was not read."

    chosen: tuple[int, ...] = ()
    layer: int = 0
    slot: int | None = None  # None = the last token of the run
