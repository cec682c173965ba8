"""Many continuations of one prefix, drawn independently, each distinct prefix run once.

Draw number r of step s uses the uniform number Philox(seed, s, r), so draw 0 is the run that
stepping on would give, and no result depends on the order in which prefixes are visited: the
first n draws, told while the rest are still to come, are what n draws alone would have been.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer import sampling as chain
from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.passes.model_passes import ModelPasses, logits_after
from explorer.trace.experiments import Continuation, DrawMany, DrawnToken, Draws

MOST_DRAWS = 100_000
MOST_TOKENS = 64
MOST_LISTED = 1_000  # continuations that travel whole; the counts of the next token always do
_PART_S = 0.25  # seconds between two tellings of what there is so far


@dataclass(slots=True)
class _Drawing:
    """What has been drawn so far."""

    ids: list[list[int]]  # per draw
    first: list[tuple[int, float, float]] = field(default_factory=list)  # id, exact, raw
    passes: int = 0
    done: int = 0  # tokens drawn or never to be drawn, over all draws


def draw_many(
    passes: ModelPasses,
    asked: DrawMany,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[Draws], None] = lambda draws: None,
) -> Draws:
    """Counts of the next token beside its exact distribution, and the continuations themselves.

    `part` gets the same figures of the first draws as soon as these are finished.  BadInput for
    numbers out of range or greedy settings; Cancelled between and within passes.
    """
    _refuse(asked)
    drawing = _Drawing([[] for _ in range(asked.count)])
    context = passes.layout(asked.request, asked.chosen).real_ids()
    ends = set(passes.card.eos_ids)
    # The prefix of the lowest unfinished draw goes first: what is finished is a fair sample.
    waiting: list[tuple[int, tuple[int, ...], Sequence[int]]] = [(0, (), range(asked.count))]
    told, told_at = 0, 0.0
    while waiting:
        if cancelled():
            raise Cancelled
        _, path, draws = heapq.heappop(waiting)
        groups = _draw(passes, asked, context, path, draws, drawing, cancelled)
        drawing.done += len(draws)
        for token_id, those in groups.items():
            longer = (*path, token_id)
            if token_id in ends:
                drawing.done += len(those) * (asked.length - len(longer))
            elif len(longer) < asked.length:
                heapq.heappush(waiting, (those[0], longer, those))
        share = drawing.done / (asked.count * asked.length)
        finished = waiting[0][0] if waiting else asked.count
        progress(f"Sampling: {finished:,} of {asked.count:,}", share)
        if told < finished < asked.count and time.monotonic() - told_at >= _PART_S:
            part(_counted(passes, asked, drawing, finished))
            told, told_at = finished, time.monotonic()
    return _counted(passes, asked, drawing, asked.count)


def _draw(
    passes: ModelPasses,
    asked: DrawMany,
    context: list[int],
    path: tuple[int, ...],
    draws: Sequence[int],
    drawing: _Drawing,
    cancelled: Stop,
) -> dict[int, list[int]]:
    """One pass after `path`; which of the draws that came here go on with which token."""
    logits = logits_after(passes, asked.request, (*asked.chosen, *path), cancelled)
    drawing.passes += 1
    try:
        dist = chain.distribution(logits, asked.sampling, [*context, *path])
    except chain.SamplingError as error:
        raise BadInput(str(error)) from error
    cdf = np.cumsum(dist.p)
    possible = int(np.count_nonzero(dist.p))
    step = len(asked.chosen) + len(path)
    u = np.array([chain.uniform(asked.sampling.seed, step, r) for r in draws])
    places = np.minimum(np.searchsorted(cdf, u * cdf[-1], side="right"), possible - 1)
    groups: dict[int, list[int]] = {}
    for r, place in zip(draws, places.tolist(), strict=True):
        token_id = int(dist.ids[place])
        drawing.ids[r].append(token_id)
        groups.setdefault(token_id, []).append(r)
    if not path:
        shown = dict.fromkeys([*dist.ids[:200].tolist(), *groups])
        drawing.first = [(i, float(dist.final[i]), float(dist.raw[i])) for i in shown]
    return groups


def _counted(passes: ModelPasses, asked: DrawMany, drawing: _Drawing, finished: int) -> Draws:
    """Of the first `finished` draws."""
    drawn_ids = drawing.ids[:finished]
    counts = Counter(ids[0] for ids in drawn_ids)
    token = passes.token
    continuations = Counter(map(tuple, drawn_ids))
    return Draws(
        count=finished,
        asked=asked.count,
        length=asked.length,
        passes=drawing.passes,
        distinct=len(continuations),
        first=tuple(
            DrawnToken(id=i, raw=token(i).raw, exact=exact, raw_probability=raw, drawn=counts[i])
            for i, exact, raw in drawing.first
        ),
        continuations=tuple(
            Continuation(ids=ids, raw=b"".join(token(i).raw for i in ids), drawn=drawn)
            for ids, drawn in continuations.most_common(MOST_LISTED)
        ),
    )


def _refuse(asked: DrawMany) -> None:
    if asked.sampling.takes_best:
        raise BadInput("Greedy always gives the same tokens. Switch it off to sample.")
    if not 1 <= asked.count <= MOST_DRAWS:
        raise BadInput(f"The number of samples must be from 1 to {MOST_DRAWS:,}.")
    if not 1 <= asked.length <= MOST_TOKENS:
        raise BadInput(f"The tokens per sample must be from 1 to {MOST_TOKENS}.")
