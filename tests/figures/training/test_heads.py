"""What heads do, against weights that are counted one by one."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.training import curves, heads
from explorer.trace.training.job import TrainingPoint
from explorer.trace.training.run import TrainingRun
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

IDS = (5, 6, 7, 5, 6, 7)  # "abcabc": after c comes a, which stood at 0


def one_hot(keys: list[int]) -> np.ndarray:
    """(T, T) each query on one key."""
    return np.eye(len(IDS), dtype=np.float32)[keys]


def point(*layers: list[np.ndarray]) -> TrainingPoint:
    return TrainingPoint.of(3, np.stack([np.stack(layer) for layer in layers]))


def test_each_habit_is_found_in_the_head_that_has_it() -> None:
    before = one_hot([0, 0, 1, 2, 3, 4])
    copies = one_hot([0, 0, 0, 1, 2, 0])  # queries 2, 3, 4: the token that comes next
    ahead = one_hot([1, 2, 3, 4, 5, 5])
    itself = one_hot([0, 1, 2, 3, 4, 5])
    found = heads.strongest(point([itself, before], [ahead, copies]), IDS)
    assert {one.habit: (one.layer, one.head) for one in found} == {
        "before": (0, 1), "answer": (1, 1), "next": (1, 0), "itself": (0, 0),
    }  # fmt: skip
    assert [one.share for one in found] == [1.0] * 4


def test_a_share_is_the_mean_over_the_queries_that_have_the_thing() -> None:
    rows = np.full((6, 6), 0.1, np.float32)
    rows[2, 0], rows[3, 1], rows[4, 2] = 0.9, 0.6, 0.3
    found = heads.shares(point([rows]).maps, IDS, "answer")
    assert found[0, 0] == pytest.approx((0.9 + 0.6 + 0.3) / 3)
    assert np.isnan(heads.shares(point([rows]).maps, (1, 2, 3, 4, 5, 6), "answer")).all()
    assert list(heads.targets(IDS, "answer")) == [-1, -1, 0, 1, 2, -1]
    assert list(heads.targets((1, 1, 1), "answer")) == [0, 1, -1]


def test_the_atlas_has_every_weight_and_what_the_mask_hides() -> None:
    rows = np.tril(np.full((6, 6), 0.25, np.float32))
    rows[3, 3] = np.nan
    drawn = heads.atlas(point([rows, rows]), ())
    assert drawn.levels.shape == (1, 2, 6, 6)
    assert drawn.levels[0, 0, 0, 0] == READ + round(0.25 * 65533)
    assert drawn.levels[0, 0, 0, 1] == MASKED
    assert drawn.levels[0, 0, 3, 3] == 0
    assert heads.atlas(point([rows]), ("mask",)).levels[0, 0, 0, 1] == READ
    turned = heads.atlas(point([rows]), ("transposed",)).levels[0, 0]
    assert (turned[0, 1], turned[1, 0]) == (READ, MASKED)


def test_curves_have_gaps_where_there_is_no_number() -> None:
    steps = tuple(
        TrainedStep(
            step=step, loss=loss, gradient_norm=1.0, tokens_per_second=1.0, seconds=1.0,
            held_out_loss=held_out, copy_accuracy=accuracy,
        )
        for step, loss, held_out, accuracy in (
            (1, 4.0, 4.1, 0.0), (2, float("inf"), None, None), (3, 3.0, float("nan"), 0.5),
        )
    )  # fmt: skip
    found = curves.of(TrainingRun(settings=TrainingSettings(), steps=steps))
    assert found.steps.tolist() == [1, 2, 3]
    assert np.isnan(found.loss).tolist() == [False, True, False]
    assert found.measured.tolist() == [1, 3]
    assert found.accuracy.tolist() == [0.0, 0.5]
    assert found.held_out[0] == 4.1
    assert np.isnan(found.held_out[1])
