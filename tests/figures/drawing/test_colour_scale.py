"""Scales of colours: where a weight comes to lie, of a map, of a difference, of a thumbnail."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from explorer.figures.attention import difference, maps
from explorer.figures.attention.atlas import LEVELS
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.drawing.colour_scale import FLOOR, Scale, row_tops, scaled
from explorer.ui.canvases.maps.thumbnails import sheet

WEIGHTS = np.array([[0.5, 0, 0], [0.001, 0.002, 0], [0, 0, 0]], np.float32)


def test_each_row_to_its_own_largest_weight() -> None:
    found = scaled(WEIGHTS, "row", row_tops(WEIGHTS))
    np.testing.assert_allclose(found, [[1, 0, 0], [0.5, 1, 0], [0, 0, 0]])


def test_a_factor_of_ten_is_a_fifth_of_the_logarithmic_scale() -> None:
    weights = np.array([1, 0.1, 1e-3, FLOOR, 1e-9, 0, -0.1], np.float32)
    np.testing.assert_allclose(scaled(weights, "log"), [1, 0.8, 0.4, 0, 0, 0, -0.8], atol=1e-6)


@pytest.mark.parametrize("scale", get_args(Scale))
def test_no_scale_mixes_weights_with_what_has_none(scale: Scale) -> None:
    kinds = np.array([[READ, MASKED, ABSENT], [READ, READ, MASKED], [READ] * 3], np.uint8)
    top = 0.5 if scale == "max" else 1.0
    plain = maps.levels(WEIGHTS, kinds, top, scale)
    assert (plain[kinds != READ] == kinds[kinds != READ]).all()
    assert (plain[kinds == READ] >= READ).all()
    signed = difference.levels(-WEIGHTS, kinds, top, scale)
    assert (signed[kinds != READ] == kinds[kinds != READ]).all()
    assert (signed[2] == difference.MIDDLE).all()
    assert signed[0, 0] < difference.MIDDLE


@pytest.mark.parametrize("scale", get_args(Scale))
def test_thumbnails_follow_the_same_scale(scale: Scale) -> None:
    levels = np.rint(WEIGHTS * LEVELS).astype(np.uint16)[None, None] + np.uint16(READ)
    found = sheet(levels, (3, 3), (3, 3), scale=scale)
    top = 0.5 if scale == "max" else 1.0
    same = maps.levels(WEIGHTS, np.full((3, 3), READ, np.uint8), top, scale)
    assert np.abs(found.astype(int) - same).max() <= 1
