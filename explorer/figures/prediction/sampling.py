"""The sampling chain of one step, stage by stage, and where each token stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from explorer.sampling import Stage, landing, stages, uniform
from explorer.trace.request import ORDER, Link, Sampling
from explorer.trace.step import Step
from explorer.trace.trace import Trace

CUTS: tuple[Link, ...] = ("top_k", "top_p", "min_p")
POINTS = 240  # of a curve: one for each pixel or two that a panel has


@dataclass(frozen=True, slots=True)
class Chain:
    """One step's logits on their way to a token, under one set of settings."""

    step: Step
    sampling: Sampling
    stages: tuple[Stage, ...]
    chosen: int  # the token picked in the run
    u: float | None  # the number that decides with these settings; None if none is drawn
    landed: int | None  # place in the last stage that `u` falls on

    @property
    def preview(self) -> bool:
        """True if these are not the settings that the token was picked with."""
        return self.sampling != self.step.sampling

    @property
    def picked(self) -> int:
        """The token these settings give."""
        return int(self.stages[-1].ids[self.landed or 0])


def chain(trace: Trace, index: int, sampling: Sampling) -> Chain:
    """Every stage after step `index`.  SamplingError with a sentence if there is no distribution.

    The number drawn is the one of that step and seed, whether or not the run drew it.
    """
    step = trace.steps[index]
    found = stages(step.logits, sampling, trace.context_ids(index))
    u = None if sampling.takes_best else uniform(sampling.seed, index)
    landed = None if u is None else landing(found[-1].p, u)
    return Chain(step, sampling, found, trace.chosen[index].id, u, landed)


def beyond_k(stage: Stage, sampling: Sampling) -> int:
    """Tokens that top-k leaves beyond k: they are exactly as likely as the k-th."""
    cuts = stage.name == "top_k" and stage.active
    return max(stage.kept - sampling.top_k, 0) if cuts else 0


def tied_out(before: Stage, stage: Stage) -> int:
    """Tokens that a stage cuts though they are exactly as likely as the last that it leaves."""
    if stage.name not in CUTS or not stage.active:
        return 0
    return int(np.count_nonzero(before.p[stage.kept :] == before.p[stage.kept - 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A sorted distribution, thinned out evenly over the logarithm of the rank."""

    rank: np.ndarray  # (N,) from 1
    p: np.ndarray  # (N,)
    cumulative: np.ndarray  # (N,) mass of this rank and all better ones


def curve(p: np.ndarray, points: int = POINTS) -> Curve:
    """The curve of a sorted distribution (kept,)."""
    rank = np.geomspace(1, len(p), min(points, len(p))).round().astype(np.int64)
    rank = rank[np.diff(rank, prepend=0) > 0]  # np.unique first imports all of numpy.ma: a stall
    return Curve(rank, p[rank - 1], np.cumsum(p)[rank - 1])


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one token stands at one stage."""

    name: str
    rank: int | None  # 0 = best; None = cut
    p: float


def standings(stages_: Sequence[Stage], token_id: int) -> tuple[Standing, ...]:
    """Rank and probability of one token at every stage.  IndexError if there is no such id."""
    if not 0 <= token_id < len(stages_[0].ids):
        raise IndexError(token_id)
    found = []
    for stage in stages_:
        place = np.flatnonzero(stage.ids == token_id)
        rank = int(place[0]) if len(place) else None
        found.append(Standing(stage.name, rank, 0.0 if rank is None else float(stage.p[rank])))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """All V tokens, indexed by id."""

    raw: np.ndarray  # (V,) float64
    final: np.ndarray  # (V,) float64, 0 if cut
    rank: np.ndarray  # (V,) int64, 0 = the model's favourite


def listing(chain_: Chain) -> Listing:
    """Raw and final probability and rank of every token."""
    first, last = chain_.stages[0], chain_.stages[-1]
    size = len(first.ids)
    raw, final, rank = np.empty(size), np.zeros(size), np.empty(size, np.int64)
    raw[first.ids] = first.p
    rank[first.ids] = np.arange(size)
    final[last.ids] = last.p
    return Listing(raw, final, rank)


@dataclass(frozen=True, slots=True)
class Orders:
    """The same settings with the temperature before and after the cuts."""

    first: tuple[Stage, ...]  # temperature, then the cuts
    last: tuple[Stage, ...]  # the cuts, then temperature

    @property
    def cut(self) -> tuple[Stage, Stage] | None:
        """The first cut that keeps another number of tokens in the two orders."""
        for one in self.first:
            other = next(s for s in self.last if s.name == one.name)
            if one.name in CUTS and one.kept != other.kept:
                return one, other
        return None

    @property
    def differ(self) -> bool:
        """True if the final distributions differ."""
        one, other = self.first[-1], self.last[-1]
        return one.kept != other.kept or not np.allclose(one.p, other.p, rtol=0, atol=1e-12)


def orders(trace: Trace, index: int, known: Chain) -> Orders | None:
    """Both orders of a chain side by side, or None where there is nothing to put in order."""
    sampling = known.sampling
    cuts = sampling.top_p < 1 or sampling.min_p > 0
    if sampling.takes_best or sampling.temperature == 1 or not cuts:
        return None
    rest = tuple(link for link in sampling.order if link not in ("penalty", "temperature"))
    first: tuple[Link, ...] = ("penalty", "temperature", *rest)
    last: tuple[Link, ...] = ("penalty", *rest, "temperature")
    logits, context = trace.steps[index].logits, trace.context_ids(index)
    both = [
        known.stages
        if order == sampling.order
        else stages(logits, msgspec.structs.replace(sampling, order=order), context)
        for order in (first, last)
    ]
    return Orders(both[0], both[1])


def moved(order: Sequence[Link], link: Link, by: int) -> tuple[Link, ...]:
    """The order with one link moved up (-1) or down (+1); at the ends nothing changes."""
    at = order.index(link)
    to = min(max(at + by, 0), len(order) - 1)
    rest = [one for one in order if one != link]
    return (*rest[:to], link, *rest[to:])


def is_default(order: Sequence[Link]) -> bool:
    """True if this is transformers' order."""
    return tuple(order) == ORDER
