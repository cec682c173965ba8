"""The two sides of a comparison, each as a run that every other figure can read.

A side is a trace and the index of one of its steps.  The other side of a step is a real pass; the
same scores with the mask dropped are the masked side's own queries and keys under a mask that
lost its causal part only: sliding windows (they become symmetric), chunks and padding stay, and so
do the cells that the context policy and the user cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import is_

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.map_blocks import READ
from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.interventions.cells import ALLOWED, CUT, changes
from explorer.trace.interventions.kinds import Cells
from explorer.trace.request import RunRequest
from explorer.trace.step import Step
from explorer.trace.trace import Trace

_Mask = tuple[int, tuple[Cells, ...]]  # what a mask is made of: a window, and cells
_TURNS = "turns of this run were left out, so its passes read different tokens"
_CHUNKS = "in its chunks, cells that were cut cannot be separated from the causal part"
_HEADS = "cells are cut in single heads, and this view has one mask for all of them"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One step of one run."""

    trace: Trace
    step: int

    @property
    def slots(self) -> int:
        """Slots that had been read by then."""
        return self.trace.read_slots(self.step)

    @property
    def passes(self) -> tuple[Step, ...]:
        """Every pass up to this one."""
        return self.trace.steps[: self.step + 1]

    def same_passes(self, other: Side) -> bool:
        """True if every map of both is the same: a check or a later step changes none."""
        if self.trace.steps is other.trace.steps:
            return self.step == other.step
        mine, theirs = self.passes, other.passes
        return len(mine) == len(theirs) and all(map(is_, mine, theirs))


def of_pass(trace: Trace, index: int, request: RunRequest, step: Step) -> Side:
    """A pass of its own over all slots of step `index` of a run: the other side of it."""
    alone = replace(step, index=0, first_slot=0, keys_from=0)
    return Side(_one_step(trace, index, request, alone), 0)


def without_mask(side: Side) -> Side:
    """The same scores with the causal mask dropped, as one pass over every slot.

    Layers whose scores cannot be told from their mask are absent, with the reason.
    """
    trace, index = side.trace, side.step
    real = np.array([t.origin != "padding" for t in trace.tokens[: side.slots]])
    masks: dict[_Mask, Mask] = {}
    layers = tuple(
        _opened(side, layer, real, masks) for layer in range(parts.layer_count(trace, index))
    )
    step = replace(trace.steps[index], index=0, first_slot=0, keys_from=0, layers=layers)
    ids = tuple(token.id for token in trace.tokens[: side.slots])
    step = replace(step, token_ids=ids, position_ids=ids)
    return Side(_one_step(trace, index, trace.request, step), 0)


def windows(trace: Trace) -> tuple[int, ...]:
    """The sliding windows of this model's layers, each size once; empty if it has none."""
    sizes = {size for size in trace.card.windows if size}
    sizes |= {record.window for step in trace.steps[:1] for record in step.layers if record.window}
    return tuple(sorted(sizes))


def window_of(trace: Trace, layer: int) -> int:
    """The sliding window of one layer; 0 = it has none, or there is no such layer."""
    records = trace.steps[0].layers[layer : layer + 1] if trace.steps else ()
    known = trace.card.windows[layer : layer + 1]
    return max([0, *(record.window for record in records), *(size or 0 for size in known)])


def _one_step(trace: Trace, index: int, request: RunRequest, step: Step) -> Trace:
    """A run of one pass over what step `index` had read; the token it chose comes after."""
    return Trace(
        request=request,
        card=trace.card,
        prompt=trace.prompt,
        steps=(step,),
        chosen=trace.chosen[: index + 1],
    )


def _opened(side: Side, layer: int, real: np.ndarray, masks: dict[_Mask, Mask]) -> LayerRecord:
    """One layer's queries and keys of all passes, under a mask that looks both ways."""
    trace, index = side.trace, side.step
    sources = parts.sources(trace, index)
    records = [parts.record_of(trace, source, layer) for source, _, _ in sources]
    cells = tuple(
        one
        for one in trace.request.changes
        if isinstance(one, Cells) and one.layer in (None, layer)
    )
    kinds = trace.card.layer_kinds
    chunked = layer < len(kinds) and kinds[layer] == "chunked"
    why = parts.REUSED if trace.reused_tokens else _refusal(records)
    if any(trace.steps[source].left_out for source, _, _ in sources):
        why = _TURNS
    if why := why or _refusal_of_cells(cells, chunked):
        return LayerRecord(layer=layer, kind="absent", reason=why)
    owned = [(record, rows) for record, (_, _, rows) in zip(records, sources, strict=True)]
    queries = [record.queries[:rows] for record, rows in owned if record.queries is not None]
    keys = [record.keys[:rows] for record, rows in owned if record.keys is not None]
    last = records[-1]
    if chunked:
        mask = Mask.of_bits(_both_ways(side, layer) & real[None, :])
    else:
        if (last.window, cells) not in masks:
            masks[last.window, cells] = _open_mask(real, last.window, cells)
        mask = masks[last.window, cells]
    return replace(
        last,
        queries=queries[0] if len(queries) == 1 else np.concatenate(queries),
        keys=keys[0] if len(keys) == 1 else np.concatenate(keys),
        mask=mask,
        first_key=0,
        evicted=(0, 0),
    )


def _refusal(records: Sequence[LayerRecord]) -> str:
    """Why the scores of these passes cannot be looked at without their mask; empty if they can."""
    for record in records:
        if record.kind == "absent":
            return record.reason or parts.NOT_RECORDED
        if record.kind == "map":
            return "only the model's finished weights are recorded, not the scores behind them"
        if record.mask is not None and record.mask.kind == "values":
            return "its mask adds values that cannot be separated from the causal part"
        if record.bias is not None and len(records) > 1:
            return "its scores include a bias that is known only for the visible keys"
    return ""


def _refusal_of_cells(cells: Sequence[Cells], chunked: bool) -> str:
    """Why these cells cannot be cut in an open mask; empty if they can."""
    if any(one.head is not None for one in cells):
        return _HEADS
    return _CHUNKS if cells and chunked else ""


def _open_mask(real: np.ndarray, window: int, cells: Sequence[Cells]) -> Mask:
    """Every real key, within a symmetric window if there is one, but for the cells of all heads."""
    count = len(real)
    if not window and not cells and real.all():
        return Mask("none", count, count)
    allowed = np.empty((count, -(-count // 8)), np.uint8)
    slots = np.arange(count)
    for first in range(0, count, 256):
        rows = slots[first : first + 256, None]
        part = np.broadcast_to(real, (len(rows), count))
        if window:
            part = part & (np.abs(rows - slots) < window)
        if cells:
            changed = changes(cells, 1, (first, min(first + 256, count)), (0, count))[0]
            part = (part | (changed == ALLOWED)) & (changed != CUT)
        allowed[first : first + 256] = np.packbits(part, axis=1)
    return Mask("bits", count, count, allowed)


def _both_ways(side: Side, layer: int) -> np.ndarray:
    """(T, T) bool: what a layer reads, and the same seen from the other end."""
    whole = np.zeros((side.slots, side.slots), bool)
    for block in parts.blocks(side.trace, side.step, layer):
        rows = slice(block.first_query, block.first_query + block.count)
        columns = slice(block.first_key, block.first_key + block.columns)
        whole[rows, columns] = parts.kinds(block, block.rows) == READ
    return whole | whole.T
