"""Which few vectors of many add up to another: found by trying every small set of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

MOST_TERMS = 4
_MOST_SETS = 60_000
_NEAR_ONE = 2e-3


def find_sum(
    vectors: Sequence[np.ndarray], target: np.ndarray, rounding: np.ndarray, tolerance: float
) -> tuple[tuple[int, ...], np.ndarray, float] | None:
    """(places, factors, gap) with target = Σ factor · vector, the factors positive constants.

    The smallest such set; of several, the one whose factors are nearest to 1.  `gap` is that of
    `gap_of`; None if no set comes within `tolerance`.
    """
    if not vectors or not target.any():
        return None
    flat = np.array([vector.ravel() for vector in vectors], np.float64)
    wanted = target.ravel().astype(np.float64)
    products, onto = flat @ flat.T, flat @ wanted
    squared = float(wanted @ wanted)
    for count in range(1, min(MOST_TERMS, len(vectors)) + 1):
        best = None
        far = max(2e-4, 10 * tolerance**2) * squared + float(np.square(rounding).sum())
        for places in _near(products, onto, squared, count, far):
            factors = np.linalg.lstsq(flat[list(places)].T, wanted, rcond=None)[0]
            if (np.abs(factors - 1) < _NEAR_ONE).all():
                factors = np.ones(count)
            left = wanted - factors @ flat[list(places)]
            gap = gap_of(left.reshape(target.shape), target, rounding)
            if gap > tolerance or (factors <= 0).any():
                continue
            off = float(np.abs(np.log(factors)).sum())
            if best is None or off < best[0]:
                best = (off, places, factors, gap)
        if best is not None:
            return best[1:]
    return None


def _near(
    products: np.ndarray, onto: np.ndarray, squared: float, count: int, far: float
) -> list[tuple[int, ...]]:
    """Sets of `count` whose best combination comes near the target, by their products alone."""
    sets = list(combinations(range(len(onto)), count))
    if len(sets) > _MOST_SETS:
        return []
    places = np.array(sets)
    small = products[places[:, :, None], places[:, None, :]]
    floor = 1e-13 * np.trace(small, axis1=1, axis2=2)[:, None, None] * np.eye(count)
    aims = onto[places]
    factors = np.linalg.solve(small + floor, aims[..., None])[..., 0]
    with_cross = np.einsum("ni,nij,nj->n", factors, small, factors)
    left = squared - 2 * (factors * aims).sum(1) + with_cross
    return [sets[i] for i in np.flatnonzero(left <= far)]


def gap_of(left: np.ndarray, target: np.ndarray, rounding: np.ndarray) -> float:
    """The largest entry that a sum leaves of `target`, relative to the largest entry of that.

    `rounding`: how much of each entry the sum itself may have lost.
    """
    beyond = np.maximum(np.abs(left) - rounding, 0)
    return float(beyond.max() / max(1e-30, float(np.abs(target).max())))
