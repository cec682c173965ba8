"""The same model on the processor: what a GPU that calculates wrongly is found out by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import TooLarge
from explorer.engine.loading.loading import load
from explorer.engine.machine.free_memory import BYTES_OF
from explorer.engine.passes.generate import inputs
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest

MOST_BYTES = 8 << 30  # of weights: more would take minutes to read


def comparable(runner: Runner, request: RunRequest) -> bool:
    """Whether the run is on another device, and plain transformers on the processor can repeat it.

    That knows of no interventions, and no mask but the model's own.
    """
    card = runner.loaded.card
    weights = card.parameters * BYTES_OF.get(card.dtype, 4)
    plain = request.causal_mask and not request.changes
    whole = card.device != "cpu" and not card.device.startswith("auto")
    return whole and plain and weights <= MOST_BYTES


def logits(
    runner: Runner, layout: Layout, at: Sequence[int], stop: Stop = never
) -> np.ndarray | None:
    """(len(at), V) float32 raw logits of the slots `at`, without a cache.

    The weights are read from the model's files once more: what went wrong on their way to the
    device is found, too.  None where the memory does not hold them.  Cancelled if told to stop.
    """
    card = runner.loaded.card
    arguments = inputs(runner, layout, 0, None, at)
    here = {k: v.cpu() if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    try:  # code of its own was allowed when it was opened
        model = load(card.path, card.dtype, cancelled=stop, allow_code=True).model
    except TooLarge:
        return None
    with torch.inference_mode():
        found = model(**here).logits[0]
    if len(found) != len(at):  # a model without logits_to_keep gives every slot
        found = found[list(at)]
    return np.asarray(found.float().numpy())
