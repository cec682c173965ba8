"""A logit's parts as a map, as sums by layer and as a ranking."""

from __future__ import annotations

import numpy as np

from explorer.figures.inside import attribution as figures
from tests.figures.inside.sums import found


def test_heads_stand_before_what_else_a_layer_adds() -> None:
    map_ = figures.parts_map(found(), 2)
    assert map_.columns == (("head", 0), ("head", 1), ("mlp", None))
    np.testing.assert_array_equal(map_.values, [[1.0, -4.0, 2.0], [3.0, np.nan, 1.5]])
    assert map_.top == 4


def test_a_layer_is_the_sum_of_its_parts() -> None:
    mixing, rest = figures.by_layer(found(), 2)
    np.testing.assert_array_equal(mixing, [-3.0, 3.0])
    np.testing.assert_array_equal(rest, [2.0, 1.5])
    outside = sum(part.value for part in figures.outside(found()))
    assert mixing.sum() + rest.sum() + outside == found().sum


def test_what_matters_most_comes_first_whatever_its_sign() -> None:
    ranks = [part.value for part in figures.ranked(found())]
    assert ranks[:2] == [-4.0, 3.0]


def test_a_model_without_heads_has_a_map_all_the_same() -> None:
    assert figures.parts_map(found(), 0).columns == ()
    assert figures.parts_map(found(), 0).top == 1
