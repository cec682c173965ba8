"""Surprisal over a text under two context policies, ready to draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.trace.experiments import PolicyComparison

MEAN_OVER = 32  # tokens: single ones jump too much for two curves to be compared
_BEGIN = 200  # usual first position of the mean: from there on the policies differ


def smoothed(nats: Sequence[float]) -> np.ndarray:
    """(N,) float64: at each token the mean of it and those before it, MEAN_OVER at most.

    NaN where one of them is infinite: such a mean is no point of a curve.
    """
    values = np.array(nats, np.float64)
    known = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    unknown = np.concatenate([[0], np.cumsum(~known)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - MEAN_OVER)
    means = (sums[ends] - sums[begins]) / (ends - begins)
    return np.where(unknown[ends] > unknown[begins], np.nan, means)


def begin(found: PolicyComparison) -> int:
    """The position from which means are taken: where both policies have something to forget."""
    kept = max(side.policy.kept(found.tokens) * side.policy.keeps_last for side in found.sides)
    if found.tokens > _BEGIN * 2 and kept <= _BEGIN:
        return _BEGIN
    return kept if kept < found.tokens - 1 else 0
