"""What the heads of a training run do on its fixed prompt, measured on their maps.

Each figure is a mean weight over the queries that have the thing asked for:

before   weight on the token just before
answer   weight on the latest earlier place of the token that comes next: what is to be copied
next     weight on the token that comes next itself, which no causal model can see
itself   weight on the query's own token
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from explorer.figures.attention.atlas import LEVELS, Atlas
from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.trace.training.job import TrainingPoint
from explorer.trace.training.settings import Mistake

Habit = Literal["before", "answer", "next", "itself"]
HABITS: tuple[Habit, ...] = get_args(Habit)


@dataclass(frozen=True, slots=True)
class HeadHabit:
    """The head that does one thing most."""

    habit: Habit
    layer: int
    head: int
    share: float  # mean weight


def targets(ids: Sequence[int], habit: Habit) -> np.ndarray:
    """(T,) the key that each query is asked about; -1 = this query has none.

    A query has an answer only where the token that comes next was there before.
    """
    count = len(ids)
    places = np.arange(count)
    if habit == "itself":
        return places
    if habit == "before":
        return places - 1
    following = np.where(places + 1 < count, places + 1, -1)
    if habit == "next":
        return following
    found = np.full(count, -1)
    last: dict[int, int] = {}
    for place in range(count - 1):
        last[ids[place]] = place
        found[place] = last.get(ids[place + 1], -1)
    return found


def shares(maps: np.ndarray, ids: Sequence[int], habit: Habit) -> np.ndarray:
    """(L, H) float64 mean weights of maps (L, H, T, T); NaN if no query has the thing asked for."""
    keys = targets(ids, habit)
    queries = np.flatnonzero(keys >= 0)
    if not len(queries):
        return np.full(maps.shape[:2], np.nan)
    return np.asarray(maps[:, :, queries, keys[queries]].mean(axis=2, dtype=np.float64))


def strongest(point: TrainingPoint, ids: Sequence[int]) -> tuple[HeadHabit, ...]:
    """For each habit the head that has it most; none where that is not known."""
    found = []
    for habit in HABITS:
        each = shares(point.maps, ids, habit)
        if len(ids) == point.tokens and np.isfinite(each).any():
            layer, head = np.unravel_index(int(np.nanargmax(each)), each.shape)
            share = float(each[layer, head])
            found.append(HeadHabit(habit, int(layer), int(head), share))
    return tuple(found)


def visible(tokens: int, wrong: Collection[Mistake]) -> np.ndarray:
    """(T, T) True where a query may attend to a key in training."""
    both = np.ones((tokens, tokens), bool)
    if "mask" in wrong:
        return both
    return np.asarray(np.triu(both) if "transposed" in wrong else np.tril(both))


def atlas(point: TrainingPoint, wrong: Collection[Mistake]) -> Atlas:
    """Thumbnails of every head, a cell for each weight; what is no number is absent."""
    maps = point.maps
    known = np.isfinite(maps)
    weights = np.rint(np.clip(np.where(known, maps, 0), 0, 1) * np.float32(LEVELS))
    levels = weights.astype(np.uint16) + np.uint16(READ)
    levels[~known] = 0
    levels[:, :, ~visible(point.tokens, wrong)] = MASKED
    levels.flags.writeable = False
    return Atlas(
        levels=levels,
        heads=(point.heads,) * point.layers,
        reasons=("",) * point.layers,
        slots=point.tokens,
        stride=1,
        passes=(),
        complete=True,
    )
