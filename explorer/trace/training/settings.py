"""What is trained, and how."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

Build = Literal["encoder", "primitives", "modern"]
"""Which decoder of `explorer.reference` is trained."""
Task = Literal["copy", "previous", "reverse"]
"""The tasks with generated data; any other text is the path of a text file, read as bytes."""
Mistake = Literal[
    "mask", "transposed", "shift", "padding", "positions", "residual", "warm-up", "untied"
]
"""What can be done wrong on purpose.

mask: no causal mask while training.  transposed: each token sees itself and later ones only.
shift: the target of a position is its own token.  padding: padding counts in the loss.
positions: the model gets no positions.  residual: no residual connections.  warm-up: the full
learning rate from the first update.  untied: the output head is a matrix of its own.
"""
BUILDS: tuple[Build, ...] = get_args(Build)
TASKS: tuple[Task, ...] = get_args(Task)
MISTAKES: tuple[Mistake, ...] = get_args(Mistake)
MOST_STEPS = 100_000


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides a training run; the same settings give the same run on one machine.

    The defaults are the preset of the lab.
    """

    build: Build = "modern"
    task: str = "copy"  # one of TASKS, or the path of a text file
    layers: Annotated[int, Meta(ge=1, le=12)] = 2
    width: Annotated[int, Meta(ge=8, le=1024)] = 64  # of the residual stream
    heads: Annotated[int, Meta(ge=1, le=64)] = 4  # divides `width` into an even width per head
    steps: Annotated[int, Meta(ge=1, le=MOST_STEPS)] = 1000  # updates
    rate: Annotated[float, Meta(gt=0, le=10)] = 3e-3  # the highest learning rate
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0
    wrong: tuple[Mistake, ...] = ()
