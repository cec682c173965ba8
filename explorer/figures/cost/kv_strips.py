"""Keys and values of one position as small multiples: a strip of columns for each layer.

A column is a head, top to bottom its numbers; layers stand side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.figures.attention.difference import MIDDLE
from explorer.trace.attention import LayerRecord, as_float32
from explorer.trace.experiments import EVICTED, GONE, LEFT_OUT, PositionRead
from explorer.trace.trace import Trace

NOT_NUMBERS = "these values are not all numbers (NaN or infinity)"


@dataclass(frozen=True, slots=True, eq=False)
class Strips:
    """One number of each head of each layer; None where a layer keeps none."""

    layers: tuple[np.ndarray | None, ...]  # (H, d) float32 each
    reasons: tuple[str, ...]  # why there is none

    @property
    def top(self) -> float:
        """The largest magnitude."""
        sizes = [float(np.abs(part).max(initial=0.0)) for part in self.layers if part is not None]
        return max(sizes, default=0.0)


def keys_at(trace: Trace, index: int, slot: int) -> Strips:
    """The keys of a position as the kernels of the pass that read it saw them."""
    if any(first <= slot < end for first, end in trace.steps[index].left_out):
        layers = len(trace.steps[index].layers)
        return Strips((None,) * layers, (LEFT_OUT,) * layers)
    steps = trace.steps[trace.steps[index].keys_from : index + 1]
    # Slots before the first pass were read by another run, whose keys it has.
    step = next(s for s in steps if slot < s.first_slot + s.positions_processed)
    found: list[np.ndarray | None] = []
    reasons: list[str] = []
    for record in step.layers:
        end = step.first_slot + step.positions_processed
        kept = 0 if record.keys is None else len(record.keys)
        gone = record.keys is not None and end - slot > kept
        row = None if record.keys is None or gone else record.keys[slot - end]
        evicted = slot < step.first_slot and _evicted(trace, record, slot)
        found.append(None if row is None or evicted else as_float32(row, record.dtype))
        reasons.append(EVICTED if evicted else GONE if gone else record.reason)
    return Strips(tuple(found), tuple(reasons))


def _evicted(trace: Trace, record: LayerRecord, slot: int) -> bool:
    """True if a slot that was read before the pass had been evicted by then."""
    first, end = record.evicted
    before_all = record.kind == "qk" and slot < record.first_key
    return first <= slot < end or (before_all and trace.request.context.keeps_last)


def values_of(read: PositionRead) -> Strips:
    """The values that the engine read off its cache."""
    found: list[np.ndarray | None] = []
    reasons: list[str] = []
    for layer in read.layers:
        part, reason = None, layer.reason
        if layer.value is not None:
            numbers = np.frombuffer(layer.value.numbers, "<f4")
            part = numbers.reshape(layer.value.heads, layer.value.width)
            if not np.isfinite(part).all():
                part, reason = None, NOT_NUMBERS
        found.append(part)
        reasons.append(reason)
    return Strips(tuple(found), tuple(reasons))


def picture(strips: Strips) -> tuple[np.ndarray, tuple[int, ...]]:
    """(widest d, columns) uint8 levels, 0 where nothing is; and the first column of each layer.

    Levels run from 2 for the negative top over the middle for 0 to 254; one column parts layers.
    """
    shapes = [(1, 1) if part is None else part.shape for part in strips.layers]
    starts = np.cumsum([0, *(heads + 1 for heads, _ in shapes)])
    levels = np.zeros((max(d for _, d in shapes), int(starts[-1]) - 1), np.uint8)
    scale = (MIDDLE - 2) / (strips.top or 1.0)
    for start, part in zip(starts.tolist(), strips.layers, strict=False):
        if part is not None:
            heads, width = part.shape
            levels[:width, start : start + heads] = np.rint(part.T * scale) + MIDDLE
    return levels, tuple(starts[:-1].tolist())


def at(strips: Strips, starts: Sequence[int], column: int) -> tuple[int, int] | None:
    """(layer, head) under a column of the picture; None on the gap between layers."""
    layer = max(i for i, start in enumerate(starts) if start <= column)
    part = strips.layers[layer]
    head = column - starts[layer]
    heads = 1 if part is None else len(part)
    return (layer, head) if head < heads else None
