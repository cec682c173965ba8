"""Means, maxima and rollout against the maps they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention import head_means as figures
from explorer.figures.attention.head_means import Figure
from explorer.figures.attention.map_blocks import ABSENT, READ
from explorer.figures.attention.maps import Map, full_map
from explorer.figures.attention.mask_pair import Side
from tests.figures.runs import Run


def _last(side: Side, layer: int, figure: Figure, head: int = 0) -> Map:
    *parts, found = figures.build(side, layer, head, figure)
    assert all(isinstance(part, float) and 0 < part <= 1 for part in parts)
    assert isinstance(found, Map)
    return found


@pytest.fixture(scope="module")
def side() -> Side:
    run = Run(layers=3)
    return Side(run.decode(run.prefill(9), 4), 4)


@pytest.mark.parametrize("figure", ["mean_heads", "max_heads", "mean_layers", "max_layers"])
def test_over_heads(side: Side, figure: Figure) -> None:
    layers = range(3) if figure.endswith("layers") else [1]
    each = [full_map(side.trace, 4, layer, h).weights for layer in layers for h in range(4)]
    wanted = np.mean(each, axis=0) if figure.startswith("mean") else np.max(each, axis=0)
    found = _last(side, 1, figure)
    np.testing.assert_allclose(found.weights, wanted, atol=1e-6)
    np.testing.assert_array_equal(found.kinds, full_map(side.trace, 4, 1, 0).kinds)


def test_rollout_multiplies_half_attention_half_residual(side: Side) -> None:
    whole = np.eye(side.slots)
    for layer in range(3):
        mean = np.mean([full_map(side.trace, 4, layer, h).weights for h in range(4)], axis=0)
        whole = (0.5 * mean + 0.5 * np.eye(side.slots)) @ whole
    found = _last(side, 2, "rollout")
    np.testing.assert_allclose(found.weights, whole, atol=1e-5)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, atol=1e-5)
    assert (found.kinds[np.triu_indices(side.slots, 1)] != READ).all()


def test_without_the_first_token_rows_sum_to_one_again() -> None:
    trace = Run(padding=2).prefill(8)
    side = Side(trace, 0)
    found = _last(side, 1, "sinkless", head=3)
    whole = full_map(trace, 0, 1, 3).weights
    assert figures.first_real(side) == 2
    assert (found.kinds[:, 2] == ABSENT).all()
    assert not found.weights[:, 2].any()
    wanted = whole[5] / (1 - whole[5, 2])
    wanted[2] = 0
    np.testing.assert_allclose(found.weights[5], wanted, atol=1e-6)
    assert not found.weights[2].any(), "it read nothing else"


def test_layers_without_a_map_are_left_out_and_a_lone_one_says_why() -> None:
    side = Side(Run(layers=3, absent=(1,)).prefill(5), 0)
    assert figures.layers_of(side, 2, "rollout") == [0, 2]
    assert figures.layers_of(side, 0, "mean_layers") == [0, 2]
    with pytest.raises(ValueError, match="a recurrent layer"):
        _last(side, 1, "mean_heads")


def test_a_long_build_answers_on_the_way() -> None:
    side = Side(Run(layers=2, heads=8).prefill(600), 0)
    assert len(list(figures.build(side, 1, 0, "mean_layers"))) > 3
