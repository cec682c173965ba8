"""Pooling never loses a maximum, and never invents one."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.drawing.pooling import maxima, pool_columns, pool_rows


@pytest.mark.parametrize("pixels", [1, 2, 3, 7, 16, 50, 99, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_every_span_gives_its_own_maximum(pixels: int, axis: int) -> None:
    values = np.random.default_rng(pixels).integers(0, 255, (100, 100)).astype(np.uint8)
    starts = np.arange(pixels) * 100 // pixels
    wanted = np.maximum.reduceat(values, starts, axis=axis)
    np.testing.assert_array_equal(maxima(values, starts, axis), wanted)


def test_uneven_spans() -> None:
    values = np.arange(20)[:, None]
    starts = np.array([3, 4, 11, 19])
    assert maxima(values, starts, 0).ravel().tolist() == [3, 10, 18, 19]


@pytest.mark.parametrize("first", range(5))
@pytest.mark.parametrize("by", [1, 2, 4, 8])
def test_rows_and_columns_pool_by_their_own_numbers(first: int, by: int) -> None:
    values = np.random.default_rng(first).integers(1, 99, (2, 13, 13))
    low, high = first // by, (first + 12) // by
    groups = [
        [n - first for n in range(first, first + 13) if n // by == g] for g in range(low, high + 1)
    ]
    rows = np.stack([values[:, g].max(axis=1) for g in groups], axis=1)
    np.testing.assert_array_equal(pool_rows(values, first, by), rows)
    columns = np.stack([values[:, :, g].max(axis=2) for g in groups], axis=2)
    np.testing.assert_array_equal(pool_columns(values, first, by), columns)
