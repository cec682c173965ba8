"""Signed levels: zero in the middle, and no change lost by making a picture smaller."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention import difference as figures
from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.attention.maps import full_map
from explorer.figures.attention.mask_pair import Side, without_mask
from explorer.figures.drawing.pooling import farthest, pool_columns, pool_rows
from tests.figures.runs import Run


def _atlas(masked: Side, unmasked: Side, cell: int) -> Atlas:
    *_, found = figures.build_atlas(masked, unmasked, cell=cell)
    assert found.complete
    return found


def test_levels_have_zero_in_the_middle() -> None:
    weights = np.array([[-1.0, -0.5, 0.0, 0.5, 1.0, 0.3, 0.0]], np.float32)
    kinds = np.array([[READ] * 5 + [MASKED, ABSENT]], np.uint8)
    assert figures.levels(weights, kinds).tolist() == [[2, 65, 128, 191, 254, 1, 0]]
    assert figures.levels(weights, kinds, 0.5)[0, 1] == 2


def test_making_signed_levels_smaller_keeps_the_strongest_change() -> None:
    levels = np.array(
        [[128, 100, 128, 150], [1, 128, 140, 2], [0, 0, 1, 1], [0, 0, 1, 0]], np.uint8
    )
    small = farthest(levels, lambda a: pool_columns(pool_rows(a, 0, 2), 0, 2))
    assert small.tolist() == [[100, 2], [0, 1]]


@pytest.mark.parametrize("cell", [64, 4])
def test_the_atlas_of_differences_is_that_of_the_maps(cell: int) -> None:
    run = Run(layers=3, absent=(1,), window=5)
    trace = run.decode(run.prefill(9), 3)
    masked = Side(trace, 3)
    unmasked = without_mask(masked)
    found = _atlas(masked, unmasked, cell)
    assert found.heads == (4, 0, 4)
    assert found.reasons[1] == "a recurrent layer"
    assert found.signed
    for layer in (0, 2):
        for head in range(4):
            change = figures.difference(
                full_map(trace, 3, layer, head), full_map(unmasked.trace, 0, layer, head)
            )
            for row in range(found.levels.shape[2]):
                for column in range(found.levels.shape[3]):
                    part = np.s_[
                        row * found.stride : (row + 1) * found.stride,
                        column * found.stride : (column + 1) * found.stride,
                    ]
                    level = int(found.levels[layer, head, row, column])
                    read = change.kinds[part] == READ
                    if not read.any():
                        assert level == change.kinds[part].max()
                        continue
                    weights = change.weights[part][read]
                    shown = (level - figures.WIDE_MIDDLE) / (figures.WIDE_MIDDLE - 2)
                    assert abs(shown) == pytest.approx(float(np.abs(weights).max()), abs=5e-5)


def test_a_difference_of_unlike_runs_is_refused_in_words() -> None:
    a, b = (full_map(Run().prefill(n), 0, 0, 0) for n in (4, 5))
    with pytest.raises(ValueError, match="Press Step"):
        figures.difference(a, b)
