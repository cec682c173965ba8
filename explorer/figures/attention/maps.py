"""Attention maps and rows, ready to draw: exact weights, and for each cell what kind it is.

A cell is READ (it has a weight, however small), MASKED (the kernel saw this key and was not
allowed to read it) or ABSENT (the kernel never saw this key: it did not exist yet, or had left a
sliding window).  Zero weight, masked and absent are three different things on screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.figures.attention.arrived_head import has_arrived, of_head
from explorer.figures.attention.map_blocks import (
    READ,
    Block,
    blocks,
    owner_of,
    reason,
    record_of,
    row_block,
)
from explorer.figures.attention.map_blocks import kinds as kinds_of
from explorer.figures.drawing.colour_scale import Scale, row_tops, scaled
from explorer.trace import attention
from explorer.trace.attention import Mask
from explorer.trace.step import Step
from explorer.trace.trace import Trace

LEVELS = 253  # colour steps of a READ cell: levels 2..255, so 0 and 1 say absent and masked
ROWS_AT_ONCE = 128  # keeps a block of rows in the processor's cache, and cancelling quick


@dataclass(frozen=True, slots=True, eq=False)
class Map:
    """One head's attention: row = query, column = key; read-only.

    `weights` (R, K) float32, 0 where a cell is not READ; `kinds` (R, K) uint8.
    """

    weights: np.ndarray
    kinds: np.ndarray
    first_query: int  # slot of row 0
    first_key: int  # slot of column 0
    layer: int
    head: int
    passes: tuple[Step, ...]  # what it was worked out from

    @property
    def top(self) -> float:
        """The largest weight; 1 if nothing is read."""
        return float(self.weights.max(initial=0)) or 1.0


@dataclass(frozen=True, slots=True, eq=False)
class QueryRow:
    """What one query reads."""

    query: int
    weights: np.ndarray  # (T,) float32, by slot; 0 where not READ
    kinds: np.ndarray  # (T,) uint8
    step: int  # the pass that read this query
    sink: float  # mass that an attention sink took; 0 for models without sinks

    def top_keys(self, count: int = 5) -> list[tuple[int, float]]:
        """(slot, weight) of the most-read keys, largest first, ties by slot."""
        order = np.argsort(-self.weights, kind="stable")[:count]
        return [(int(k), float(self.weights[k])) for k in order if self.weights[k] > 0]


def pass_map(trace: Trace, step: int, layer: int, head: int) -> Map:
    """The (Q, K) map of one pass alone.  ValueError with the reason if the layer keeps none."""
    record = _record(trace, step, layer, head)
    this = trace.steps[step]
    keys = np.empty((0, 1, 1)) if record.kind == "map" else trace.keys(step, layer)
    rows = slice(0, this.positions_processed)
    block = Block(record, keys, rows, this.first_slot, record.first_key)
    weights = np.zeros((block.count, block.columns), np.float32)
    kinds = np.zeros(weights.shape, np.uint8)
    _fill(block, head, weights, kinds)
    return _finished(weights, kinds, this.first_slot, record.first_key, layer, head, (this,))


def full_map(trace: Trace, step: int, layer: int, head: int, known: Map | None = None) -> Map:
    """The (T, T) map of everything read up to this pass, each row from the pass that made it.

    `known` is an earlier answer for the same head; rows that it shares are taken over.
    ValueError with the reason if the layer keeps no map.
    """
    passes = trace.steps[: step + 1]
    trace, place = _arrived(trace, step, layer, head)
    slots = trace.read_slots(step)
    done = shared_rows(known.passes, passes) if known and (layer, head) == _head(known) else 0
    if known is not None and done == slots <= len(known.weights):
        part = slice(0, slots)
        return _finished(
            known.weights[part, part], known.kinds[part, part], 0, 0, layer, head, passes
        )
    weights = np.zeros((slots, slots), np.float32)
    kinds = np.zeros((slots, slots), np.uint8)
    if known is not None and done:
        weights[:done, :done] = known.weights[:done, :done]
        kinds[:done, :done] = known.kinds[:done, :done]
    for block in blocks(trace, step, layer, done):
        first = block.first_query
        rows = slice(first, first + block.count)
        columns = slice(block.first_key, block.first_key + block.columns)
        _fill(block, place, weights[rows, columns], kinds[rows, columns])
    return _finished(weights, kinds, 0, 0, layer, head, passes)


def shared_rows(known: Sequence[Step], passes: Sequence[Step]) -> int:
    """Rows of a whole map that two runs of passes have in common.

    Only a pass that reads on from the cache leaves earlier rows alone.
    """
    same = 0
    rows = 0
    for a, b in zip(known, passes, strict=False):
        if a.layers is not b.layers or not a.layers:
            break
        same += 1
        rows = b.first_slot + b.positions_processed
    # A later pass of either run that starts further up made those rows again.
    return min([rows, *(p.first_slot for p in (*known[same:], *passes[same:]))])


def _head(known: Map) -> tuple[int, int]:
    return known.layer, known.head


def _arrived(trace: Trace, step: int, layer: int, head: int) -> tuple[Trace, int]:
    """What the map of one head is worked out from, and the head's place in it.

    ValueError with the reason if the layer keeps no map, or the head has not come yet.
    """
    if has_arrived(trace, step, layer, head):
        trace, head = of_head(trace, step, layer, head)
    _record(trace, step, layer, head)
    return trace, head


def _record(trace: Trace, step: int, layer: int, head: int) -> attention.LayerRecord:
    why = reason(trace, step, layer)
    if why:
        raise ValueError(f"Layer {layer} has no attention map: {why}.")
    record = record_of(trace, step, layer)
    if not 0 <= head < record.heads:
        raise ValueError(f"Layer {layer} has heads 0 to {record.heads - 1}, no head {head}.")
    return record


def _fill(block: Block, head: int, weights: np.ndarray, kinds: np.ndarray) -> None:
    """Work a block out into views of the result, some rows at a time."""
    record = block.record
    triangle = record.mask is not None and record.mask.kind == "causal" and record.bias is None
    for first in range(0, block.count, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, block.count)
        rows = slice(block.rows.start + first, block.rows.start + last)
        kinds[first:last] = kinds_of(block, rows, head)
        if triangle and record.kind == "qk":
            columns = min(rows.stop, block.columns)  # beyond, all is masked
            mask = Mask("causal", rows.stop, columns)
            part = replace(record, mask=mask)
            found = attention.weights(part, block.keys[:columns], head, rows)
            weights[first:last, :columns] = found
        else:
            hidden = bool((kinds[first:last] != READ).any())
            weights[first:last] = attention.weights(
                record, block.keys, head, rows, masked=hidden or _valued(record)
            )


def _valued(record: attention.LayerRecord) -> bool:
    """True if the mask does more than allow or forbid."""
    return record.mask is not None and record.mask.kind == "values"


def _finished(
    weights: np.ndarray,
    kinds: np.ndarray,
    first_query: int,
    first_key: int,
    layer: int,
    head: int,
    passes: tuple[Step, ...],
) -> Map:
    for array in (weights, kinds):
        array.flags.writeable = False
    return Map(weights, kinds, first_query, first_key, layer, head, passes)


def levels(
    weights: np.ndarray, kinds: np.ndarray, top: float = 1.0, scale: Scale = "fixed"
) -> np.ndarray:
    """uint8 colour levels of the same shape: 0 absent, 1 masked, 2 for no weight to 255 for `top`.

    Weights above `top` get the brightest level; where a cell is not READ its weight must be 0.
    """
    result = np.empty(weights.shape, np.uint8)
    for first in range(0, len(weights), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        tops = row_tops(weights[part]) if scale == "row" else top
        share = scaled(weights[part], scale, tops)
        share *= np.float32(LEVELS)
        np.rint(share, out=share)
        np.add(share.astype(np.uint8), kinds[part], out=result[part])  # READ is 2: no weight
    return result


def row(trace: Trace, step: int, layer: int, head: int, query: int) -> QueryRow:
    """What the query at one slot reads, by slot up to this pass.

    ValueError with the reason if the layer keeps no map; IndexError if that slot was not read.
    """
    trace, head = _arrived(trace, step, layer, head)
    slots = trace.read_slots(step)
    if not 0 <= query < slots:
        raise IndexError(f"slot {query} has not been read yet")
    weights = np.zeros((1, slots), np.float32)
    kinds = np.zeros((1, slots), np.uint8)
    sinks = False
    owner = owner_of(trace, step, query)
    block = row_block(trace, owner, layer, query)
    if block is not None:
        columns = slice(block.first_key, block.first_key + block.columns)
        _fill(block, head, weights[:, columns], kinds[:, columns])
        sinks = block.record.sinks is not None
    sink = max(0.0, 1.0 - float(weights.sum(dtype=np.float64))) if sinks else 0.0
    return QueryRow(query, weights[0], kinds[0], owner, sink)
