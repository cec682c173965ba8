"""All heads of all layers at once: small pictures that keep every map's maxima.

A thumbnail pools `stride` × `stride` cells into one and keeps the strongest, so that one hot cell
in thousands stays visible.  Strides are powers of two: a growing map is pooled once more from what
is there, and a decode step costs one new row per head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.head_weights import groups, row_slices, weights_of_heads
from explorer.figures.attention.map_blocks import MASKED, READ, Block
from explorer.figures.attention.maps import shared_rows
from explorer.figures.drawing.pooling import pool_columns, pool_rows
from explorer.trace.step import Step
from explorer.trace.trace import Trace

LEVELS = 65533  # of a cell that is read: levels 2..65535; 0 says absent, 1 masked
CELL = 64  # a thumbnail has at most this many cells a side
_MOST_CELLS = 1 << 22  # of all thumbnails: a thousand heads have the whole CELL
_WEIGHTS_PER_ANSWER = 1 << 18  # between two answers of a long build: others get their turn


@dataclass(frozen=True, slots=True, eq=False)
class Atlas:
    """Thumbnails of every head; read-only.

    `levels` (L, H, n, n) uint16: 0 absent, 1 masked, 2 for weight 0 to 65535 for weight 1; heads
    that a layer lacks are absent throughout.
    """

    levels: np.ndarray
    heads: tuple[int, ...]  # per layer; 0 where there is no map
    reasons: tuple[str, ...]  # per layer: why there is no map; empty = there is one
    slots: int  # T
    stride: int
    passes: tuple[Step, ...]
    complete: bool
    signed: bool = False  # a difference: see figures.difference

    @property
    def tops(self) -> np.ndarray:
        """(L, H) float32: the largest weight of each head, of a difference the largest change."""
        if self.signed:
            middle = 1 << 15  # figures.difference.WIDE_MIDDLE
            change = np.where(self.levels < READ, 0, self.levels.astype(np.float32) - middle)
            return np.asarray(np.abs(change).max(axis=(2, 3), initial=0) / (middle - READ))
        found = self.levels.max(axis=(2, 3), initial=0).astype(np.float32)
        return np.asarray(np.maximum(found - READ, 0) / LEVELS)


def stride_for(slots: int, heads: int, cell: int = CELL) -> int:
    """Cells pooled into one so that a map of `slots` fits in `cell`: a power of two.

    Of thousands of `heads` each has fewer cells, for none could be seen any larger.
    """
    while cell > 8 and heads * cell**2 > _MOST_CELLS:
        cell //= 2
    stride = 1
    while slots > cell * stride:
        stride *= 2
    return stride


def build(
    trace: Trace, step: int, known: Atlas | None = None, first_layer: int = 0, cell: int = CELL
) -> Iterator[Atlas]:
    """Answers that get ever more complete; the last one has `complete` set.

    `known` is an earlier answer: if it was complete, rows that it shares are taken over.
    `first_layer` is filled in first.
    """
    slots = trace.read_slots(step)
    layers = parts.layer_count(trace, step)
    records = [parts.record_of(trace, step, layer) for layer in range(layers)]
    heads = tuple(record.heads for record in records)
    reasons = tuple(parts.reason(trace, step, layer) for layer in range(layers))
    stride = stride_for(slots, layers * max(heads, default=0), cell)
    size = -(-slots // stride)
    levels = np.zeros((layers, max(heads, default=0), size, size), np.uint16)
    passes = trace.steps[: step + 1]
    start = _take_over(levels, known, heads, passes, stride) if known else 0

    def answer(complete: bool) -> Atlas:
        copy = levels if complete else levels.copy()
        copy.flags.writeable = False
        return Atlas(copy, heads, reasons, slots, stride, passes, complete)

    worked = 0
    for members, group in groups(trace, step, nearest_first(layers, first_layer), start):
        for rows in row_slices(group[0], len(group) * heads[members[0]], stride):
            worked += _draw(group, rows, levels, members, stride)
            if worked >= weights_per_answer(levels):
                worked = 0
                yield answer(complete=False)
    yield answer(complete=True)


def weights_per_answer(levels: np.ndarray) -> int:
    """After how many weights an answer is worth its copy of the levels."""
    return max(_WEIGHTS_PER_ANSWER, levels.size // 4)


def nearest_first(layers: int, first: int) -> Sequence[int]:
    """The layer that is looked at, then its neighbours, nearest first."""
    return sorted(range(layers), key=lambda layer: abs(layer - first))


def _take_over(
    levels: np.ndarray, known: Atlas, heads: tuple[int, ...], passes: tuple[Step, ...], stride: int
) -> int:
    """Copy what an earlier atlas has in common; returns the slot from which rows are missing."""
    if not known.complete or known.heads != heads or stride % known.stride:
        return 0
    start = shared_rows(known.passes, passes)
    if start < known.slots:
        start -= start % stride  # a pooled row that mixes old and new rows is made again
    old = _pooled(known.levels, stride // known.stride)
    rows = -(-start // stride)
    size = min(rows, levels.shape[2], old.shape[2])
    levels[:, :, :size, :size] = old[:, :, :size, :size]
    return start


def _pooled(levels: np.ndarray, by: int) -> np.ndarray:
    if by == 1:
        return levels
    return pool_columns(pool_rows(levels, 0, by), 0, by)


def _draw(
    group: Sequence[Block], rows: slice, levels: np.ndarray, layers: list[int], stride: int
) -> int:
    """Put some rows of all heads of some layers into the levels; returns weights made."""
    block = group[0]
    first = block.first_query + rows.start - block.rows.start
    kinds = _kinds(block, rows)
    read = np.flatnonzero((kinds == READ).any(axis=(0, 1)))
    pooled = pool_columns(pool_rows(kinds, first, stride), block.first_key, stride)
    heads = slice(0, block.record.heads)
    row = slice(first // stride, first // stride + pooled.shape[1])
    offset = block.first_key // stride
    cells = (layers, heads, row, slice(offset, offset + pooled.shape[2]))
    levels[cells] = np.maximum(levels[cells], np.minimum(pooled, MASKED))
    if len(read) == 0:
        return 0
    columns = slice(int(read[0]), int(read[-1]) + 1)
    weights = weights_of_heads(group, rows, columns)
    tall = pool_rows(weights, first, stride)
    tall *= np.float32(LEVELS)
    np.minimum(np.rint(tall, out=tall), LEVELS, out=tall)
    drawn = tall.astype(np.uint16)
    drawn += np.uint16(READ)
    drawn = pool_columns(drawn, block.first_key + columns.start, stride)
    begin = (block.first_key + columns.start) // stride
    end = begin + drawn.shape[-1]
    drawn *= pooled[:, :, begin - offset : end - offset] == READ
    cells = (layers, heads, row, slice(begin, end))
    levels[cells] = np.maximum(levels[cells], drawn)
    return int(weights.size)


def _kinds(block: Block, rows: slice) -> np.ndarray:
    """(1 or H, rows, K) uint8 kinds: one for all heads unless the mask differs by head."""
    mask = block.record.mask
    differ = mask is not None and mask.kind == "values" and mask.data is not None
    heads = len(mask.data) if differ and mask is not None and mask.data is not None else 1
    return np.stack([parts.kinds(block, rows, head) for head in range(heads)])
