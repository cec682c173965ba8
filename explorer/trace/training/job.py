"""Training as a job of the engine: what is asked of it, and what it tells while it goes on.

A training's points (maps, and all that is needed to go on from there) are kept on the engine's
disk, in a folder of the data folder that `name` names.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from explorer.trace.engine_request import Request
from explorer.trace.experiments import AtLeastOne, Bytes, Count, Result, Share
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

Act = Literal["pause", "go on", "one update"]
Phase = Literal["training", "paused", "done"]
_MANY = Meta(max_length=1 << 20)
_Text = Annotated[str, Meta(max_length=4096)]


class Train(Request, frozen=True, kw_only=True):
    """Train a model; answered by PartFacts with the fields of `TrainingNews`, until it is ended.

    It stays after its last update, to be rewound or saved.  `resume`: the name of a kept training
    to go on with, which begins paused.  `group`: the same for runs that are shown beside each
    other.
    """

    settings: TrainingSettings = TrainingSettings()
    resume: _Text = ""
    group: _Text = ""
    share: AtLeastOne = 1  # of how many trainings at once: each has as large a part of the cores


class SteerTraining(Request, frozen=True, kw_only=True):
    """What the training with this run number is to do; a `rate` holds from the next update on.

    `rewind`: first go back to the point after so many updates; what came after it is dropped.
    """

    act: Act
    rate: Annotated[float, Meta(gt=0, le=10)] | None = None
    rewind: Count | None = None


class SaveTrained(Request, frozen=True, kw_only=True):
    """Write the model of a training as a folder; answered by Facts: path.

    `step`: the kept point after so many updates, or where the training stands; for that `name` may
    be empty.  `folder`: a new or empty one; "" is one of the data
    folder's models, named after the training.
    """

    name: _Text
    step: Count
    folder: _Text = ""


class FindTrainings(Request, frozen=True, kw_only=True):
    """The trainings that are kept; answered by Facts with the fields of `KeptTrainings`."""


class TrainingPoint(Result, frozen=True, kw_only=True):
    """A point of a training: attention on the fixed prompt after `step` updates."""

    step: Count
    layers: AtLeastOne
    heads: AtLeastOne
    tokens: AtLeastOne
    numbers: Bytes  # (layers, heads, tokens, tokens) little-endian float32, query before key

    def __post_init__(self) -> None:
        if len(self.numbers) != 4 * self.layers * self.heads * self.tokens**2:
            raise ValueError("not the numbers of its shape")

    @classmethod
    def of(cls, step: int, maps: np.ndarray) -> TrainingPoint:
        """From maps (L, H, T, T)."""
        layers, heads, tokens, _ = maps.shape
        numbers = np.ascontiguousarray(maps, "<f4").tobytes()
        return cls(step=step, layers=layers, heads=heads, tokens=tokens, numbers=numbers)

    @property
    def maps(self) -> np.ndarray:
        """(L, H, T, T) float32, read-only."""
        shape = self.layers, self.heads, self.tokens, self.tokens
        return np.frombuffer(self.numbers, "<f4").reshape(shape)


class AccuracyByPosition(Result, frozen=True, kw_only=True):
    """Share of tokens right at each place of what is to be copied, on held-out data.

    `own`: the model reads what it wrote itself; `forced`: it reads the right tokens.
    """

    step: Count
    own: Annotated[tuple[Share, ...], _MANY]
    forced: Annotated[tuple[Share, ...], _MANY]

    def __post_init__(self) -> None:
        if len(self.own) != len(self.forced):
            raise ValueError("not one figure for each place")


class TrainingNews(Result, frozen=True, kw_only=True):
    """What is new of a training since the last time: updates and points, in their order.

    `rewound`: what was told of later updates holds no longer.
    """

    name: _Text  # of its folder; empty: nothing of it is kept
    phase: Phase
    settings: TrainingSettings
    rate: float  # the highest learning rate, as it is now
    parameters: Count
    labels: Annotated[tuple[_Text, ...], _MANY]  # of the tokens of the fixed prompt
    ids: Annotated[tuple[Count, ...], _MANY]  # of the same tokens
    kept: Annotated[tuple[Count, ...], _MANY]  # points that it can go on from, rising
    steps: Annotated[tuple[TrainedStep, ...], _MANY] = ()
    points: Annotated[tuple[TrainingPoint, ...], _MANY] = ()
    positions: Annotated[tuple[AccuracyByPosition, ...], _MANY] = ()
    lowest_loss: float | None = None  # no causal model gets below; None: not known
    rewound: Count | None = None
    problem: _Text = ""  # one sentence: why points are not kept


class KeptTraining(msgspec.Struct, frozen=True, kw_only=True):
    """A training on the engine's disk, as far as its points go."""

    name: _Text
    group: _Text
    settings: TrainingSettings
    step: Count  # updates at its last point
    at: float  # when that was written, in seconds since 1970


class KeptTrainings(Result, frozen=True, kw_only=True):
    """The newest first."""

    trainings: Annotated[tuple[KeptTraining, ...], Meta(max_length=1000)]
