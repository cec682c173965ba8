"""A walk through a block, ready to draw: strips, boards of numbers, pairs, products, experts.

Axes: H heads, K keys, d numbers of a vector or of a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from explorer.figures.attention import map_blocks
from explorer.trace import attention
from explorer.trace.attention import LayerRecord, as_float32
from explorer.trace.inside.walk import LayerStage, LayerWalk, pair_places
from explorer.trace.trace import Trace

Form = Literal["vector", "heads", "keys", "matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class StageGrid:
    """A stage as rows of numbers; a vector is wrapped, a state is that of one head."""

    form: Form
    numbers: np.ndarray  # (rows, columns); NaN beyond the end of a vector, -inf where hidden
    top: float  # the largest finite number, without its sign
    row: int | None  # that belongs to the head looked at
    head: int | None = None  # whose matrix it is, where each has one


def form_of(stage: LayerStage) -> Form:
    """How a stage is laid out."""
    if stage.first_key is not None:
        return "keys"
    if len(stage.shape) < 2:
        return "vector"
    return "heads" if len(stage.shape) == 2 and not is_state(stage) else "matrix"


def is_state(stage: LayerStage) -> bool:
    """True for what a layer keeps from token to token, and how that changes."""
    return stage.name.partition(":")[0] in ("state", "decay", "write") and ":" in stage.name


def row_of_head(rows: int, head: int, heads: int) -> int | None:
    """The row of a query head where several may share one; None if rows are no heads."""
    if rows == heads:
        return head if head < heads else None
    if rows and heads % rows == 0 and head < heads:
        return head // (heads // rows)
    return None


def grid(stage: LayerStage, head: int, heads: int, wrap: int = 8) -> StageGrid | None:
    """The numbers of a stage as a board has them; None where there were too many to send.

    `wrap`: numbers of a vector in one row.
    """
    numbers, form = stage.numbers, form_of(stage)
    if numbers is None or not numbers.size:
        return None
    finite = numbers[np.isfinite(numbers)]
    top = float(np.abs(finite).max(initial=0.0))
    if form == "vector":
        flat = numbers.reshape(-1)
        short = -len(flat) % wrap
        rows = np.append(flat, np.full(short, np.nan, np.float32)).reshape(-1, wrap)
        return StageGrid(form, rows, top, None)
    if form == "matrix" and numbers.ndim > 2:
        of = row_of_head(len(numbers), head, heads)
        part = numbers[of or 0].reshape(-1, numbers.shape[-1])
        return StageGrid(form, part, top, None, of or 0)
    rows = numbers.reshape(-1, numbers.shape[-1])
    marked = None if form == "matrix" else row_of_head(len(rows), head, heads)
    return StageGrid(form, rows, top, marked)


def strip(stage: LayerStage, head: int, heads: int, most: int = 512) -> np.ndarray:
    """(n,) float32, at most `most`: the vector, that of the head looked at, or a state's first row.

    Of neighbours that share a place, the one farthest from 0 stays.
    """
    found = stage.numbers
    if found is None or not found.size:
        return np.zeros(0, np.float32)
    if found.ndim > 1:
        of = row_of_head(len(found), head, heads)
        found = found[of or 0]
    flat = found.reshape(-1)
    if len(flat) <= most:
        return np.asarray(flat)
    starts = np.linspace(0, len(flat), most, endpoint=False).astype(int)
    high, low = np.maximum.reduceat(flat, starts), np.minimum.reduceat(flat, starts)
    return np.asarray(np.where(high >= -low, high, low), np.float32)


def is_share(stage: LayerStage) -> bool:
    """True for attention weights, which lie between 0 and 1."""
    return stage.name == "softmax"


# -- pairs turned by position


@dataclass(frozen=True, slots=True)
class TurnedPair:
    """One pair of a head's entries, before and after RoPE."""

    places: tuple[int, int]  # of the entries before
    before: tuple[float, float]
    after: tuple[float, float]
    angle: float  # radians, as measured: -π to π
    frequency: float | None  # radians a position; None = not known


def turned_pairs(walk: LayerWalk, stage: LayerStage, head: int, heads: int) -> list[TurnedPair]:
    """Every pair of the head looked at; none where nothing was turned."""
    turn, after = stage.turn, stage.numbers
    before = next((one.numbers for one in walk.stages if one.name == stage.source), None)
    if turn is None or after is None or before is None or before.size != after.size:
        return []
    row = row_of_head(len(after), head, heads) or 0
    old, new = before.reshape(after.shape)[row], after[row]
    was, now = pair_places(turn.pairing, turn.start, turn.pairs)
    angles, table = turn.measured, turn.by_position
    return [
        TurnedPair(
            places=(int(was[0, i]), int(was[1, i])),
            before=(float(old[was[0, i]]), float(old[was[1, i]])),
            after=(float(new[now[0, i]]), float(new[now[1, i]])),
            angle=float(angles[i]),
            frequency=None if table is None else float(table[i]),
        )
        for i in range(turn.pairs)
    ]


# -- one score, term by term


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTerms:
    """How one query of one head scores one key: every product, their sum, and what it becomes."""

    head: int
    key_head: int
    key: int  # slot
    q: np.ndarray  # (d,) float32
    k: np.ndarray  # (d,)
    scaling: float
    added: float  # to the score: a position bias, or what a sink gains by being moved
    hidden: bool  # by the mask
    weight: float  # in the map

    @property
    def products(self) -> np.ndarray:
        """(d,) q · k, entry by entry."""
        return np.asarray(self.q * self.k)

    @property
    def total(self) -> float:
        """Their sum."""
        return float(self.products.sum(dtype=np.float64))

    @property
    def score(self) -> float:
        """The sum × the scale."""
        return self.total * self.scaling


def score_terms(
    trace: Trace, step: int, layer: int, head: int, query: int, key: int
) -> ScoreTerms | None:
    """From the recorded query and key; None where this layer kept none of them."""
    owner = map_blocks.owner_of(trace, step, query)
    block = map_blocks.row_block(trace, owner, layer, query)
    if block is None or block.record.queries is None:
        return None
    record, column = block.record, key - block.first_key
    if not (0 <= head < record.heads and 0 <= column < block.columns):
        return None
    key_head = head // (record.heads // block.keys.shape[1])
    weights = attention.weights(record, block.keys, head, block.rows)
    mask = record.mask
    return ScoreTerms(
        head=head,
        key_head=key_head,
        key=key,
        q=as_float32(np.asarray(record.queries)[block.rows.start, head], record.dtype),
        k=as_float32(block.keys[column, key_head], record.dtype),
        scaling=record.scaling,
        added=_added(record, head, block.rows.start, column),
        hidden=mask is not None and not bool(mask.allowed(block.rows, head)[0, column]),
        weight=float(weights[0, column]),
    )


def _added(record: LayerRecord, head: int, row: int, column: int) -> float:
    bias = record.bias
    if bias is None or column >= bias.shape[2]:
        return 0.0
    return float(bias[head if len(bias) > 1 else 0, row, column])


# -- experts


@dataclass(frozen=True, slots=True, eq=False)
class Experts:
    """What a mixture chose for one token, and how many tokens each of its experts had."""

    ids: tuple[int, ...]  # for the token looked at
    weights: tuple[float, ...]
    load: np.ndarray  # (experts,) tokens
    tokens: int  # that were counted
    router: np.ndarray | None  # (experts,) what the router gave for the token


def experts(walk: LayerWalk) -> Experts | None:
    """None for a layer without experts."""
    if not walk.experts:
        return None
    own = next((one for one in walk.experts if one.slot == walk.slot), None)
    router = next((one.numbers for one in walk.stages if one.name == "router"), None)
    most = max((max(one.ids, default=-1) for one in walk.experts), default=-1) + 1
    if router is not None and (router.ndim != 1 or len(router) < most):
        router = None
    count = most if router is None else len(router)
    chosen = np.array([i for one in walk.experts for i in one.ids], int)
    return Experts(
        ids=() if own is None else own.ids,
        weights=() if own is None else own.weights,
        load=np.bincount(chosen, minlength=count),
        tokens=len(walk.experts),
        router=router,
    )


# -- tables


def stage_table(walk: LayerWalk) -> Iterator[Sequence[object]]:
    """Every stage, as the command `layer` has it."""
    yield "stage", "formula", "shape", "norm", "module", "gap"
    for one in walk.stages:
        shape, gap = "x".join(map(str, one.shape)), "" if one.gap is None else one.gap
        yield one.name, one.formula, shape, one.norm, one.module, gap


def number_table(stage: LayerStage) -> Iterator[Sequence[object]]:
    """The numbers of one stage: a row each head, or each number of a vector."""
    numbers = stage.numbers
    if numbers is None:
        return
    if numbers.ndim < 2:
        yield "index", stage.name
        yield from enumerate(numbers.reshape(-1).tolist())
        return
    rows = numbers.reshape(-1, numbers.shape[-1])
    first = stage.first_key or 0
    yield ("key" if stage.first_key is not None else "row",
           *range(first, first + rows.shape[1]))  # fmt: skip
    for number, row in enumerate(rows):
        yield number, *row.tolist()


def term_table(terms: ScoreTerms) -> Iterator[Sequence[object]]:
    """The products of one score, their sum, and the sum × the scale."""
    yield "index", "q", "k", "q_times_k"
    for i, row in enumerate(zip(terms.q, terms.k, terms.products, strict=True)):
        yield i, *map(float, row)
    yield "sum", "", "", terms.total
    yield "score", "", "", terms.score
    if terms.added:
        yield "added", "", "", terms.added
