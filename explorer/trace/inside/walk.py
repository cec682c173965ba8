"""A walk through one layer at one token: what is asked, and the stages that were measured."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from explorer.trace.experiments import Bytes, Count, Experiment, Measure, Result
from explorer.trace.inside.arrays import FLOAT, unpacked

MOST_STAGES = 400
Words = Annotated[str, Meta(max_length=400)]
Sizes = Annotated[tuple[Count, ...], Meta(max_length=8)]


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

    def __post_init__(self) -> None:
        if self.data and len(self.data) != 4 * math.prod(self.shape):
            raise ValueError("not the numbers of its shape")

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
