"""Surprisal over a text under two context policies, ready to draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.trace.experiments import PolicyComparison

MEAN_OVER = 32  # tokens: single ones jump too much for two curves to be compared
_BEGIN = 200  # usual first position of the mean: from there on the policies differ


def smoothed(nats: Sequence[float]) -> np.ndarray:
    """(N,) float64: at each token the mean of it and those before it, MEAN_OVER at most."""
    values = np.nan_to_num(np.array(nats, np.float64), posinf=0.0)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    begins = np.maximum(0, ends - MEAN_OVER)
    return np.asarray((sums[ends] - sums[begins]) / (ends - begins))


def begin(found: PolicyComparison) -> int:
    """The position from which means are taken: where both policies have something to forget."""
    kept = max(side.policy.kept(found.tokens) * side.policy.keeps_last for side in found.sides)
    if found.tokens > _BEGIN * 2 and kept <= _BEGIN:
        return _BEGIN
    return kept if kept < found.tokens - 1 else 0
