"""The chain: each link reshapes or cuts the distribution over all V tokens.

Tokens stay sorted throughout, so that a cut is a prefix and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from explorer.sampling.ranked import (
    SamplingError,
    entropy_bits,
    leading,
    moved,
    ranked,
    ranking,
    require_finite,
)
from explorer.trace.request import MOST_SEED, ORDER, Link, Sampling

__all__ = [
    "Distribution",
    "SamplingError",
    "Stage",
    "check",
    "distribution",
    "entropy_bits",
    "leading",
    "ranking",
    "softmax",
    "stages",
]


def check(sampling: Sampling) -> None:
    """SamplingError with a next step if a setting is outside its range."""
    if not (np.isfinite(sampling.temperature) and sampling.temperature >= 0):
        raise SamplingError("Temperature must be 0 (always the most likely token) or more.")
    if sampling.top_k < 0:
        raise SamplingError("Top-k must be 0 (off) or a number of tokens to keep.")
    if not 0 <= sampling.top_p <= 1:
        raise SamplingError("Top-p must be between 0 (keep one token) and 1 (off).")
    if not 0 <= sampling.min_p <= 1:
        raise SamplingError("Min-p must be between 0 (off) and 1 (keep only the top token).")
    if not 0 < sampling.repetition_penalty < float("inf"):
        raise SamplingError("The repetition penalty must be above 0 (1: off).")
    if sorted(sampling.order) != sorted(ORDER):
        raise SamplingError(f"The order must name each of these once: {', '.join(ORDER)}.")
    if not 0 <= sampling.seed <= MOST_SEED:
        raise SamplingError("The seed must be a whole number from 0 to 2^63 - 1.")


def softmax(logits: np.ndarray) -> np.ndarray:
    """(V,) float64 probabilities of raw logits; SamplingError on NaN or +inf."""
    require_finite(logits)
    z = np.asarray(logits, np.float64)
    p = np.exp(z - z.max())
    return np.asarray(p / p.sum())


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """Half the sum of the differences of two (V,) distributions: 0 equal, 1 nothing in common."""
    return float(np.abs(p - q).sum() / 2)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The distribution once one link has done its work: the tokens still in, best first."""

    name: Literal["logits", "greedy"] | Link
    active: bool  # False: the link is off and changed nothing
    ids: np.ndarray  # (kept,) int64 by descending probability, ties by id
    p: np.ndarray  # (kept,) float64, sums to 1
    mass_kept: float  # of the distribution before this link
    entropy_bits: float

    @property
    def entropy_nats(self) -> float:
        """The same in the window's unit."""
        return self.entropy_bits * math.log(2)

    @property
    def kept(self) -> int:
        """Tokens still in."""
        return len(self.ids)


@dataclass(slots=True)
class _Chain:
    """What is left while the links work: sorted ids, their logits, the temperature so far.

    The penalty only multiplies or divides, so it may look at logits that are not yet divided by
    the temperature: a tiny one then overflows nothing.
    """

    ids: np.ndarray
    values: np.ndarray
    temperature: float
    p: np.ndarray

    def scaled(self) -> np.ndarray:
        """(kept,) distances to the best logit in units of the temperature."""
        with np.errstate(over="ignore"):
            return np.asarray((self.values - self.values[0]) / self.temperature)

    def renewed(self) -> None:
        p = np.exp(self.scaled())
        p /= p.sum()
        self.p = p

    def cut(self, kept: int) -> float:
        """Keep a prefix; returns the mass that it had."""
        self.ids, self.values, p = self.ids[:kept], self.values[:kept], self.p[:kept]
        mass = float(p.sum())
        self.p = p / mass
        return mass

    def entropy_bits(self) -> float:
        """Of `p`, by its logits: one multiplication a token instead of one logarithm."""
        possible = int(np.count_nonzero(self.p))  # sorted, so the impossible ones are last
        # einsum, not dot: BLAS threads would take the cores that the model runs on.
        mean = np.einsum("i,i", self.p[:possible], self.scaled()[:possible])
        nats = -np.log(self.p[0]) - mean
        return float(max(0.0, nats / np.log(2)))


def _works(link: Link, sampling: Sampling) -> bool:
    """True if this link changes anything at all with these settings."""
    return {
        "penalty": sampling.repetition_penalty != 1,
        "temperature": sampling.temperature != 1,
        "top_k": sampling.top_k > 0,
        "top_p": sampling.top_p < 1,
        "min_p": sampling.min_p > 0,
    }[link]


def _apply(link: Link, chain: _Chain, sampling: Sampling, previous_ids: Sequence[int]) -> float:
    """Let one link work on the chain; returns the mass that it kept."""
    kept = len(chain.ids)
    if link == "penalty":
        penalty = sampling.repetition_penalty
        chain.ids, chain.values = moved(chain.ids, chain.values, previous_ids, penalty)
        if not np.isfinite(chain.values[0]):
            raise SamplingError("The repetition penalty is so small that logits overflow.")
        chain.renewed()
        return 1.0
    if link == "temperature":
        chain.temperature = sampling.temperature
        chain.renewed()
        return 1.0
    if link == "top_k":
        if sampling.top_k >= kept:
            return 1.0
        rest = chain.scaled()[sampling.top_k - 1 :]
        kept = sampling.top_k - 1 + int(np.count_nonzero(rest == rest[0]))
    elif link == "top_p":
        reached = int(np.searchsorted(np.cumsum(chain.p), sampling.top_p, side="left"))
        kept = min(reached + 1, kept)
    else:
        kept = int(np.count_nonzero(chain.p >= sampling.min_p * chain.p[0]))
    return chain.cut(max(kept, 1))


def stages(
    logits: np.ndarray, sampling: Sampling, previous_ids: Sequence[int] = ()
) -> tuple[Stage, ...]:
    """The distribution as it came, then after each link, in the order of the settings.

    With greedy the penalty is followed by one last stage, the best token alone.  SamplingError as
    in `distribution`.
    """
    check(sampling)
    base = ranked(logits)
    chain = _Chain(base.ids, base.values, 1.0, base.raw)
    found = [Stage("logits", True, base.ids, base.raw, 1.0, base.entropy_bits)]
    for link in ("penalty",) if sampling.takes_best else sampling.order:
        if _works(link, sampling):
            mass = _apply(link, chain, sampling, previous_ids)
            found.append(Stage(link, True, chain.ids, chain.p, mass, chain.entropy_bits()))
        else:
            found.append(replace(found[-1], name=link, active=False, mass_kept=1.0))
    if sampling.takes_best:
        best = float(chain.p[0])
        found.append(Stage("greedy", True, chain.ids[:1], np.ones(1), best, 0.0))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """One next-token distribution before and after the sampling chain."""

    raw: np.ndarray  # (V,) float64, softmax of the logits as they came
    final: np.ndarray  # (V,) float64, after the chain; one-hot if the best token is taken
    order: np.ndarray  # (V,) ids by descending logit, ties by id
    ids: np.ndarray  # (kept,) ids the chain leaves, by descending final probability
    p: np.ndarray  # (kept,) float64 their final probabilities


def distribution(
    logits: np.ndarray, sampling: Sampling, previous_ids: Sequence[int] = ()
) -> Distribution:
    """The raw and the final distribution over all V tokens.

    `previous_ids` is what the repetition penalty looks at: the context without padding.
    """
    check(sampling)
    base = ranked(logits)
    chain = _Chain(base.ids, base.values, 1.0, base.raw)
    for link in ("penalty",) if sampling.takes_best else sampling.order:
        if _works(link, sampling):
            _apply(link, chain, sampling, previous_ids)
    ids, p = (chain.ids[:1], np.ones(1)) if sampling.takes_best else (chain.ids, chain.p)
    raw, final = np.empty(len(base.ids)), np.zeros(len(base.ids))
    raw[base.ids] = base.raw
    final[ids] = p
    return Distribution(raw, final, base.ids, ids, p)
