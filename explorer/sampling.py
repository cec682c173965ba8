"""From logits to a token: temperature, then top-k, then top-p, then one uniform number.

One small numpy module, used alike by the engine, the window and the command line.  Order and
rules are transformers': ties with the k-th logit are kept; top-p keeps the smallest set whose
mass reaches p, never fewer than one token; the survivors are renormalised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.trace.request import Sampling
from explorer.trace.step import Draw


class SamplingError(ValueError):
    """Settings or logits that give no distribution, in one sentence."""


def check(sampling: Sampling) -> None:
    """SamplingError with a next step if a setting is outside its range."""
    if not (np.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise SamplingError("Temperature must be 0 (always the most probable token) or more.")
    if sampling.top_k < 0:
        raise SamplingError("Top-k must be 0 (off) or a number of tokens to keep.")
    if not 0 <= sampling.top_p <= 1:
        raise SamplingError("Top-p must lie between 0 (keep one token) and 1 (off).")
    if not 0 <= sampling.seed < 2**63:
        raise SamplingError("The seed must be a whole number from 0 to 2^63 - 1.")


def softmax(logits: np.ndarray) -> np.ndarray:
    """(V,) float64 probabilities of raw logits; SamplingError on NaN or +inf."""
    z = np.asarray(logits, np.float64)
    if np.isnan(z).any() or np.isposinf(z).any():
        raise SamplingError(
            "The model's logits contain NaN or infinite values; try another dtype (float32)."
        )
    top = z.max()
    if not np.isfinite(top):
        raise SamplingError("The model gave every token probability 0; its weights may be broken.")
    p = np.exp(z - top)
    return np.asarray(p / p.sum())


def ranking(values: np.ndarray) -> np.ndarray:
    """(V,) ids by descending value, ties by id."""
    values = np.asarray(values)
    if values.dtype != np.float32:
        return np.argsort(-values, kind="stable")
    # One integer holds value and id, so that a plain (vectorised) sort does both: 20 times
    # faster than a stable argsort of 50,000 floats.
    bits = (values + np.float32(0)).view(np.uint32)  # -0 becomes 0
    descending = np.where(bits >> 31, bits, bits ^ np.uint32(0x7FFFFFFF))
    keys = (descending.astype(np.uint64) << np.uint64(32)) | np.arange(len(bits), dtype=np.uint64)
    keys.sort()
    return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Distribution:
    """One next-token distribution before and after the sampling chain."""

    raw: np.ndarray  # (V,) float64, softmax of the logits as they came
    final: np.ndarray  # (V,) float64, after the chain; one-hot if the best token is taken
    order: np.ndarray  # (V,) ids by descending logit, ties by id


def distribution(
    logits: np.ndarray, sampling: Sampling, previous_ids: Sequence[int] = ()
) -> Distribution:
    """The raw and the final distribution over all V tokens.

    `previous_ids` is what penalties look at; none of today's settings does.
    """
    check(sampling)
    raw = softmax(logits)
    order = ranking(logits)
    final = np.zeros_like(raw)
    if sampling.takes_best:
        final[order[0]] = 1.0
        return Distribution(raw, final, order)
    # Divide the distances to the best logit, so that a tiny temperature can't overflow.
    with np.errstate(over="ignore"):
        z = (np.asarray(logits, np.float64)[order] - float(logits[order[0]])) / sampling.temperature
    kept = len(z)
    if 0 < sampling.top_k < kept:
        kept = int(np.searchsorted(-z, -z[sampling.top_k - 1], side="right"))
    p = np.exp(z[:kept])
    p /= p.sum()
    if sampling.top_p < 1:
        kept = min(int(np.searchsorted(np.cumsum(p), sampling.top_p, side="left")) + 1, kept)
        p = p[:kept] / p[:kept].sum()
    final[order[:kept]] = p
    return Distribution(raw, final, order)


def uniform(seed: int, step: int) -> float:
    """The number in [0, 1) that decides step `step`: Philox, keyed by seed, counted by step."""
    return float(np.random.Generator(np.random.Philox(key=seed, counter=step)).random())


def pick(
    logits: np.ndarray, sampling: Sampling, step: int, previous_ids: Sequence[int] = ()
) -> Draw:
    """The token of this step: the best one, or the one `u` falls on in the final CDF."""
    if sampling.takes_best:
        check(sampling)
        return describe(softmax(logits), 1.0, int(np.argmax(logits)), "greedy", None)
    dist = distribution(logits, sampling, previous_ids)
    u = uniform(sampling.seed, step)
    cdf = np.cumsum(dist.final[dist.order])
    place = min(int(np.searchsorted(cdf, u * cdf[-1], side="right")), len(cdf) - 1)
    while dist.final[dist.order[place]] == 0:  # u at the very end of a CDF that rounds short of 1
        place -= 1
    token_id = int(dist.order[place])
    return describe(dist.raw, float(dist.final[token_id]), token_id, "drawn", u)


def force(logits: np.ndarray, sampling: Sampling, token_id: int) -> Draw:
    """The user's own choice, with the model's probabilities; SamplingError if no such id."""
    if not 0 <= token_id < len(logits):
        raise SamplingError(f"There is no token {token_id}: ids run from 0 to {len(logits) - 1}.")
    dist = distribution(logits, sampling)
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


def entropy_bits(p: np.ndarray) -> float:
    """Shannon entropy of one distribution, in bits."""
    kept = p[p > 0]
    return float(max(0.0, -(kept * np.log2(kept)).sum()))
