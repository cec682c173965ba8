"""Figures over the updates of a training run, as they were measured: nothing is smoothed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.trace.training.run import TrainingRun


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """N updates; the figures of generation are measured after M of them."""

    steps: np.ndarray  # (N,) updates made
    loss: np.ndarray  # (N,) nats per token, of the update's batch
    measured: np.ndarray  # (M,) updates made
    held_out: np.ndarray  # (M,) nats per token
    accuracy: np.ndarray  # (M,) share of tokens right in generation


def of(run: TrainingRun) -> Curves:
    """Those of a run; what is no number is NaN, and a gap in the curve."""
    looked = [one for one in run.steps if one.copy_accuracy is not None]
    loss = _numbers([one.loss for one in run.steps])
    held_out = [np.nan if one.held_out_loss is None else one.held_out_loss for one in looked]
    return Curves(
        steps=_numbers([one.step for one in run.steps]),
        loss=loss,
        measured=_numbers([one.step for one in looked]),
        held_out=_numbers(held_out),
        accuracy=_numbers([one.copy_accuracy or 0.0 for one in looked]),
    )


def _numbers(values: list[float] | list[int]) -> np.ndarray:
    found = np.array(values, np.float64)
    return np.where(np.isfinite(found), found, np.nan)
