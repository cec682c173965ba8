"""Which pass each row of a whole attention map comes from, and what it takes to work it out.

After a prefill of P tokens and n cached decode steps, row i of the map belongs to the prefill if
i < P and to the decode step that read slot i otherwise.  A pass that recomputes everything owns
all its rows.  Decode rows are put together, so that many cost one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.joined_keys import joined
from explorer.trace.trace import Trace
from explorer.trace.wire.away import is_away

# In this order a maximum over kinds keeps what matters: anything read, else masked.
ABSENT, MASKED, READ = 0, 1, 2
NOT_RECORDED = "this pass was not recorded"
REUSED = "a part of its prompt was in the cache of the run before, so its rows are not recorded"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive query rows that one record and one set of keys give."""

    record: LayerRecord
    keys: np.ndarray  # (K, H_kv, d_h), storage dtype; empty for a recorded map
    rows: slice  # of the record
    first_query: int  # slot of the first of these rows
    first_key: int  # slot of column 0
    seen: np.ndarray | None = None  # (rows, 2) columns from..to that existed; None = all
    evicted: np.ndarray | None = None  # (rows, 2) slots from..to; None = as the record has it

    @property
    def count(self) -> int:
        """How many rows."""
        return int(self.rows.stop - self.rows.start)

    @property
    def columns(self) -> int:
        """How many keys the record's rows run over."""
        if self.record.weights is not None:
            return int(self.record.weights.shape[2])
        return len(self.keys)


def kinds(block: Block, rows: slice, head: int = 0) -> np.ndarray:
    """(rows, K) uint8: READ, MASKED or ABSENT, for rows of the block's record."""
    count = rows.stop - rows.start
    mask = block.record.mask
    if mask is None:
        result = np.full((count, block.columns), READ, np.uint8)
    else:
        result = mask.allowed(rows, head) + np.uint8(MASKED)
    if block.seen is not None:
        column = np.arange(block.columns)
        begin, end = block.seen[rows].T[:, :, None]
        result[(column < begin) | (column >= end)] = ABSENT
    gone = np.array([block.record.evicted]) if block.evicted is None else block.evicted[rows]
    if gone.any():
        column = np.arange(block.columns) + block.first_key
        begin, end = gone.T[:, :, None]
        there = (column < begin) | (column >= end)
        result = np.where(there, result, np.uint8(ABSENT))
    return np.asarray(result)


def layer_count(trace: Trace, step: int) -> int:
    """L, layers without attention included."""
    return max(trace.card.layers, len(trace.steps[step].layers))


def record_of(trace: Trace, step: int, layer: int) -> LayerRecord:
    """The layer's record in one pass; an absent one with the reason if the pass kept none."""
    layers = trace.steps[step].layers
    if layer < len(layers):
        return layers[layer]
    return LayerRecord(layer=layer, kind="absent", reason=NOT_RECORDED)


def reason(trace: Trace, step: int, layer: int) -> str:
    """Why this layer has no map in this pass, without a full stop; empty if it has one."""
    record = record_of(trace, step, layer)
    return (record.reason or NOT_RECORDED).rstrip(".") if record.kind == "absent" else ""


def any_away(trace: Trace, step: int) -> bool:
    """True if the engine keeps records that a map of this step needs."""
    return any(is_away(one) for one in trace.steps[: step + 1])


def owner_of(trace: Trace, step: int, query: int) -> int:
    """The pass, up to this one, that read a query."""
    for index in range(step, -1, -1):
        this = trace.steps[index]
        if this.first_slot <= query < this.first_slot + this.positions_processed:
            return index
    return step


def row_block(trace: Trace, owner: int, layer: int, query: int) -> Block | None:
    """One query's row in the pass that read it; None if that layer kept nothing there.

    Nor is there one of a slot that no pass of the run read: it was in the cache before.
    """
    record, this = record_of(trace, owner, layer), trace.steps[owner]
    read = this.first_slot <= query < this.first_slot + this.positions_processed
    if record.kind == "absent" or not read:
        return None
    keys = np.empty((0, 1, 1)) if record.kind == "map" else trace.keys(owner, layer)
    at = query - this.first_slot
    return Block(record, keys, slice(at, at + 1), query, record.first_key)


def sources(trace: Trace, step: int, start: int = 0) -> list[tuple[int, int, int]]:
    """(step, first slot, rows) from the first slot up: the newest pass that read each slot.

    Passes that read nothing from slot `start` on are left out.
    """
    found = []
    upto = trace.read_slots(step)
    for index in range(step, -1, -1):
        first = trace.steps[index].first_slot
        if first < upto:
            found.append((index, first, upto - first))
            upto = first
        if upto <= start:
            break
    return found[::-1]


def blocks(trace: Trace, step: int, layer: int, start: int = 0) -> list[Block]:
    """The rows from slot `start` on as few blocks as possible; passes without a record left out."""
    result: list[Block] = []
    waiting: list[int] = []
    for index, first, rows in sources(trace, step, start):
        skipped = max(0, start - first)
        if skipped >= rows:
            continue
        record = record_of(trace, index, layer)
        if record.kind == "absent":
            continue
        if (
            rows == 1
            and _can_join(record)
            and (not waiting or _alike(trace, waiting, index, layer))
        ):
            waiting.append(index)
            continue
        result += _joined(trace, waiting, layer)
        waiting = []
        keys = np.empty((0, 1, 1)) if record.kind == "map" else trace.keys(index, layer)
        rows_of = slice(skipped, rows)
        result.append(Block(record, keys, rows_of, first + skipped, record.first_key))
    return result + _joined(trace, waiting, layer)


def _can_join(record: LayerRecord) -> bool:
    plain_mask = record.mask is None or record.mask.kind != "values"
    return record.kind == "qk" and record.bias is None and plain_mask


def _alike(trace: Trace, waiting: Sequence[int], index: int, layer: int) -> bool:
    """True if the pass can share a call with those waiting: same cache, same arithmetic."""
    last, this = trace.steps[waiting[-1]], trace.steps[index]
    a, b = last.layers[layer], this.layers[layer]
    return (
        last.keys_from == this.keys_from
        and last.first_slot + 1 == this.first_slot
        and (a.dtype, a.scaling, a.softcap) == (b.dtype, b.scaling, b.softcap)
        and _same_sinks(a.sinks, b.sinks)
    )


def _same_sinks(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _joined(trace: Trace, steps: Sequence[int], layer: int) -> list[Block]:
    """One block out of single-row passes, their masks laid side by side."""
    if not steps:
        return []
    records = [trace.steps[index].layers[layer] for index in steps]
    first_key = min(record.first_key for record in records)
    keys = _keys_from(trace, steps[-1], layer, first_key)
    first_slot = trace.steps[steps[0]].first_slot
    if len(steps) == 1:
        return [Block(records[0], keys, slice(0, 1), first_slot, first_key)]
    allowed = np.zeros((len(steps), len(keys)), bool)
    seen = np.zeros((len(steps), 2), np.intp)
    evicted = np.array([record.evicted for record in records], np.intp)
    for row, record in enumerate(records):
        begin = record.first_key - first_key
        end = first_slot + row + 1 - first_key
        seen[row] = begin, end
        if record.mask is None:
            allowed[row, begin:end] = True
        else:
            allowed[row, begin:end] = record.mask.allowed()[0]
    queries = np.concatenate([record.queries for record in records if record.queries is not None])
    record = replace(records[-1], queries=queries, mask=Mask.of_bits(allowed), first_key=first_key)
    return [Block(record, keys, slice(0, len(steps)), first_slot, first_key, seen, evicted)]


def _keys_from(trace: Trace, step: int, layer: int, first_key: int) -> np.ndarray:
    """(K, H_kv, d_h): the cached keys of the pass from slot `first_key` on."""
    begin = trace.steps[step].keys_from
    whole = joined(trace.steps, begin, step, layer)
    return whole[max(0, first_key - trace.first_kept(step, layer)) :]
