"""Rows of all heads of a layer, from whichever passes made them, by slot on both axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.head_weights import weights_of_heads
from explorer.figures.attention.mask_pair import Side

_WEIGHTS_AT_ONCE = 1 << 18  # two sides at a time: a new request need not wait long


class LayerRows:
    """Gives dense rows; the passes behind them are put together once."""

    def __init__(self, side: Side, layer: int) -> None:
        self.slots = side.slots
        self.heads = parts.record_of(side.trace, side.step, layer).heads
        self._blocks = parts.blocks(side.trace, side.step, layer)

    def take(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """(H, R, T) float32 weights, 0 where nothing is read, and (R, T) uint8 kinds."""
        weights = np.zeros((self.heads, last - first, self.slots), np.float32)
        kinds = np.zeros((last - first, self.slots), np.uint8)
        for block in self._blocks:
            begin = max(first, block.first_query)
            end = min(last, block.first_query + block.count)
            if begin >= end:
                continue
            shift = block.rows.start - block.first_query
            rows = slice(begin + shift, end + shift)
            mask = block.record.mask
            triangle = mask is not None and mask.kind == "causal"
            count = min(block.columns, rows.stop) if triangle else block.columns  # beyond: masked
            found = weights_of_heads([block], rows, slice(0, count))[0]
            columns = slice(block.first_key, block.first_key + count)
            weights[:, begin - first : end - first, columns] = found
            columns = slice(block.first_key, block.first_key + block.columns)
            kinds[begin - first : end - first, columns] = parts.kinds(block, rows)
        return weights, kinds

    def portions(self, multiple: int = 1) -> Iterator[tuple[int, int]]:
        """(first, last) rows that are worth one call, first being a multiple of `multiple`."""
        fits = max(1, _WEIGHTS_AT_ONCE // max(1, self.heads * self.slots))
        step = max(multiple, fits - fits % multiple)
        for first in range(0, self.slots, step):
            yield first, min(first + step, self.slots)
