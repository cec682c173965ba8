"""What a mask changes: weights without it minus weights with it, signed, zero in the middle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.atlas import (
    CELL,
    Atlas,
    nearest_first,
    stride_for,
    weights_per_answer,
)
from explorer.figures.attention.layer_rows import LayerRows
from explorer.figures.attention.map_blocks import ABSENT, READ
from explorer.figures.attention.maps import ROWS_AT_ONCE, Map
from explorer.figures.attention.mask_pair import Side
from explorer.figures.drawing.colour_scale import Scale, row_tops, scaled
from explorer.figures.drawing.pooling import farthest, pool_columns, pool_rows

MIDDLE = 128  # level of no difference: 2 is -top, 254 is +top
WIDE_MIDDLE = 1 << 15  # the same for the atlas' uint16 levels
_WIDE_STEPS = WIDE_MIDDLE - READ


def difference(masked: Map, unmasked: Map) -> Map:
    """Cell by cell, unmasked minus masked; READ where either side reads.

    A row that one side has not recorded is absent.

    ValueError if the two are not of the same slots.
    """
    if masked.weights.shape != unmasked.weights.shape:
        raise ValueError("The two runs have read different numbers of tokens. Press Step again.")
    weights = unmasked.weights - masked.weights
    kinds = np.maximum(masked.kinds, unmasked.kinds)
    alone = _alone(masked.kinds, unmasked.kinds)
    weights[alone], kinds[alone] = 0, ABSENT
    for array in (weights, kinds):
        array.flags.writeable = False
    passes = (*masked.passes, *unmasked.passes)
    return Map(weights, kinds, 0, 0, masked.layer, masked.head, passes)


def _alone(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(n,) True for rows of (n, K) kinds of which one side has nothing to compare."""
    found: np.ndarray = (one == ABSENT).all(axis=1) | (other == ABSENT).all(axis=1)
    return found


def farthest_weight(changed: Map) -> float:
    """The largest change of either sign; 1 if there is none."""
    most = max(float(changed.weights.max(initial=0)), -float(changed.weights.min(initial=0)))
    return most or 1.0


def levels(
    weights: np.ndarray, kinds: np.ndarray, top: float = 1.0, scale: Scale = "fixed"
) -> np.ndarray:
    """uint8 levels: 0 absent, 1 masked, 2 for -top over MIDDLE for 0 to 254 for +top."""
    result = np.empty(weights.shape, np.uint8)
    steps = MIDDLE - READ
    for first in range(0, len(weights), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        tops = row_tops(weights[part]) if scale == "row" else top
        share = scaled(weights[part], scale, tops)
        share *= np.float32(steps)
        np.rint(share, out=share)
        share += MIDDLE
        result[part] = np.where(kinds[part] == READ, share.astype(np.uint8), kinds[part])
    return result


def build_atlas(
    masked: Side, unmasked: Side, first_layer: int = 0, cell: int = CELL
) -> Iterator[Atlas]:
    """Thumbnails of the change of every head, ever more complete; the strongest change is kept.

    `levels` are uint16: 2 for -1, WIDE_MIDDLE for 0, 65534 for +1.
    """
    layers = parts.layer_count(masked.trace, masked.step)
    reasons = tuple(
        parts.reason(masked.trace, masked.step, layer)
        or parts.reason(unmasked.trace, unmasked.step, layer)
        for layer in range(layers)
    )
    heads = tuple(
        0 if reasons[layer] else parts.record_of(masked.trace, masked.step, layer).heads
        for layer in range(layers)
    )
    slots = masked.slots
    stride = stride_for(slots, layers * max(heads, default=0), cell)
    size = -(-slots // stride)
    drawn = np.zeros((layers, max(heads, default=0), size, size), np.uint16)
    passes = (*masked.passes, *unmasked.passes)

    def answer(complete: bool) -> Atlas:
        copy = drawn if complete else drawn.copy()
        copy.flags.writeable = False
        return Atlas(copy, heads, reasons, slots, stride, passes, complete, signed=True)

    worked = 0
    for layer in nearest_first(layers, first_layer):
        if not heads[layer]:
            continue
        sides = LayerRows(masked, layer), LayerRows(unmasked, layer)
        for first, last in sides[0].portions(stride):
            rows = slice(first // stride, -(-last // stride))
            drawn[layer, : heads[layer], rows] = _portion(*sides, first, last, stride)
            worked += heads[layer] * (last - first) * slots
            if worked >= weights_per_answer(drawn):
                worked = 0
                yield answer(complete=False)
    yield answer(complete=True)


def _portion(
    masked: LayerRows, unmasked: LayerRows, first: int, last: int, stride: int
) -> np.ndarray:
    """(H, rows, columns) uint16 pooled levels of some rows of all heads of a layer."""
    before, kinds = masked.take(first, last)
    after, other = unmasked.take(first, last)
    after -= before
    after *= np.float32(_WIDE_STEPS)
    np.clip(np.rint(after, out=after), -_WIDE_STEPS, _WIDE_STEPS, out=after)
    after += WIDE_MIDDLE
    alone = _alone(kinds, other)
    kinds = np.maximum(kinds, other)
    kinds[alone] = ABSENT
    whole = np.where(kinds == READ, after.astype(np.uint16), kinds.astype(np.uint16))
    return farthest(whole, lambda array: pool_columns(pool_rows(array, first, stride), 0, stride))
