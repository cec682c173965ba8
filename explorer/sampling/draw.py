"""One token from a distribution: by a uniform number, as the best one, or by the user's hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.sampling.chain import (
    SamplingError,
    check,
    distribution,
    entropy_bits,
)
from explorer.sampling.ranked import require_finite
from explorer.trace.request import Sampling
from explorer.trace.step import Draw

_BLOCK = 1 << 13  # logits at a time: their exponentials stay in the processor's cache


def uniform(seed: int, step: int, repeat: int = 0) -> float:
    """The number in [0, 1) that decides step `step`: Philox, keyed by seed, counted by step.

    `repeat` numbers independent runs over the same steps; 0 is the run on screen.
    """
    counter = step + (repeat << 64)
    return float(np.random.Generator(np.random.Philox(key=seed, counter=counter)).random())


def landing(p: np.ndarray, u: float) -> int:
    """The place in a sorted distribution (kept,) whose stretch of the CDF holds `u`."""
    cdf = np.cumsum(p)
    place = min(int(np.searchsorted(cdf, u * cdf[-1], side="right")), len(cdf) - 1)
    while p[place] == 0:  # u at the very end of a CDF that rounds short of 1
        place -= 1
    return place


def pick(
    logits: np.ndarray, sampling: Sampling, step: int, previous_ids: Sequence[int] = ()
) -> Draw:
    """The token of this step: the best one, or the one `u` falls on in the final CDF."""
    if sampling.takes_best and sampling.repetition_penalty == 1:  # nothing to sort
        check(sampling)
        return _best(logits)
    dist = distribution(logits, sampling, previous_ids)
    if sampling.takes_best:
        return describe(dist.raw, 1.0, int(dist.ids[0]), "greedy", None)
    u = uniform(sampling.seed, step)
    place = landing(dist.p, u)
    return describe(dist.raw, float(dist.p[place]), int(dist.ids[place]), "drawn", u)


def _best(logits: np.ndarray) -> Draw:
    """The most probable token, without its distribution: this is in every greedy decode step."""
    best = int(np.argmax(logits))  # NaN, if any is
    if not np.isfinite(logits[best]):
        require_finite(logits)
    total, weighted = _exponentials(logits, best, -np.inf)
    if np.isnan(weighted):  # -inf times a share of 0 is no number, and adds nothing
        total, weighted = _exponentials(logits, best, -1e300)
    nats = np.log(total) - weighted / total
    return Draw(
        token_id=best,
        how="greedy",
        probability=1.0,
        raw_probability=1 / total,
        rank=0,
        entropy_bits=float(max(0.0, nats / np.log(2))),
    )


def _exponentials(logits: np.ndarray, best: int, least: float) -> tuple[float, float]:
    """Sum of exp(logit - best), and of these times their exponents, which are `least` or more."""
    total = weighted = 0.0
    exponents, shares = np.empty((2, min(_BLOCK, len(logits))))
    for start in range(0, len(logits), _BLOCK):
        part = logits[start : start + _BLOCK]
        below, share = exponents[: len(part)], shares[: len(part)]
        np.subtract(part, logits[best], out=below, dtype=np.float64)
        if least > -np.inf:
            np.maximum(below, least, out=below)
        np.exp(below, out=share)
        total += float(share.sum())
        # einsum, not dot: BLAS threads would take the cores that the model runs on.
        weighted += float(np.einsum("i,i", share, below))
    return total, weighted


def force(
    logits: np.ndarray, sampling: Sampling, token_id: int, previous_ids: Sequence[int] = ()
) -> Draw:
    """The user's own choice, with the model's probabilities; SamplingError if no such id."""
    if not 0 <= token_id < len(logits):
        raise SamplingError(f"There is no token {token_id}. Ids go from 0 to {len(logits) - 1}.")
    dist = distribution(logits, sampling, previous_ids)
    return describe(dist.raw, float(dist.final[token_id]), token_id, "forced", None)


def describe(raw: np.ndarray, probability: float, token_id: int, how: str, u: float | None) -> Draw:
    """The record of one pick from the raw distribution (V,)."""
    better = int(np.count_nonzero(raw > raw[token_id]))
    tied_before = int(np.count_nonzero(raw[:token_id] == raw[token_id]))
    return Draw(
        token_id=token_id,
        how=how,  # type: ignore[arg-type]
        probability=probability,
        raw_probability=float(raw[token_id]),
        rank=better + tied_before,
        entropy_bits=entropy_bits(raw),
        u=u,
    )
