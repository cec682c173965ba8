"""What one update did."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class TrainedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One update.  Losses are in nats per token."""

    step: Annotated[int, Meta(ge=1)]  # updates made so far, this one included
    loss: float  # of this update's batch, before the update
    gradient_norm: float  # over all weights, before it is clipped
    tokens_per_second: float  # of this update, evaluation left out
    seconds: float  # spent in all updates so far, evaluation included
    held_out_loss: float | None = None  # on data never trained on; None: not measured at this step
    copy_accuracy: float | None = None  # share of tokens right in generation; likewise
