"""Arcs are the largest weights, all of them, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention.arcs import strongest
from explorer.figures.attention.maps import Map, full_map
from tests.figures.runs import Run


def _map(weights: np.ndarray) -> Map:
    return Map(weights, np.full(weights.shape, 2, np.uint8), 0, 0, 0, 0, ())


def test_a_small_map_has_an_arc_for_every_weight() -> None:
    found = strongest(full_map(Run().prefill(5), 0, 0, 0))
    assert len(found.weights) == 15
    assert found.left_out == 0
    assert (np.diff(found.weights) >= 0).all()


@pytest.mark.parametrize("signed", [False, True])
def test_of_a_large_map_the_strongest_are_kept(signed: bool) -> None:
    rng = np.random.default_rng(1)
    weights = rng.random((300, 300)).astype(np.float32) - np.float32(0.5 if signed else 0)
    found = strongest(_map(weights), most=500)
    wanted = np.sort(np.abs(weights).reshape(-1))[-500:]
    np.testing.assert_array_equal(np.sort(np.abs(found.weights)), wanted)
    np.testing.assert_array_equal(weights[found.queries, found.keys], found.weights)
    assert found.left_out == 300 * 300 - 500


def test_equal_weights_are_no_trouble() -> None:
    found = strongest(_map(np.full((200, 200), 0.005, np.float32)), most=100)
    assert len(found.weights) == 100


def test_one_token_alone() -> None:
    whole = full_map(Run().prefill(40), 0, 0, 0)
    found = strongest(whole, token=7)
    assert ((found.queries == 7) | (found.keys == 7)).all()
    assert len(found.weights) == 8 + 32
