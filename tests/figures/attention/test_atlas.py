"""Thumbnails keep every maximum, and growing them gives what building them anew gives."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest

from explorer.figures.attention import atlas as figures
from explorer.figures.attention.head_weights import weights_of_heads
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ, blocks
from explorer.figures.attention.maps import full_map
from explorer.trace.trace import Trace
from tests.figures.runs import Run

VARIANTS = {
    "plain": Run(),
    "grouped heads": Run(heads=8, kv_heads=2),
    "sinks": Run(sinks=True),
    "softcap": Run(softcap=5.0),
    "window": Run(window=5),
    "left padding": Run(padding=3),
}


def _built(trace: Trace, step: int, known: figures.Atlas | None = None) -> figures.Atlas:
    *_, last = figures.build(trace, step, known, cell=8)
    assert last.complete
    return last


def _expected(trace: Trace, step: int, layer: int, head: int, stride: int) -> np.ndarray:
    """By the plain way: the full map, every cell by itself."""
    whole = full_map(trace, step, layer, head)
    level = np.where(
        whole.kinds == READ, READ + np.rint(whole.weights * figures.LEVELS), whole.kinds
    )
    size = -(-len(level) // stride)
    result = np.zeros((size, size))
    for q in range(len(level)):
        for k in range(len(level)):
            result[q // stride, k // stride] = max(result[q // stride, k // stride], level[q, k])
    return result


def _assert_same(found: figures.Atlas, trace: Trace, step: int) -> None:
    for layer, heads in enumerate(found.heads):
        for head in range(heads):
            wanted = _expected(trace, step, layer, head, found.stride)
            got = found.levels[layer, head].astype(float)
            np.testing.assert_array_equal(np.minimum(got, READ), np.minimum(wanted, READ))
            np.testing.assert_allclose(got, wanted, atol=1)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("length", [1, 8, 9, 21])
def test_thumbnails_are_the_maps_pooled_by_maximum(name: str, length: int) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(length), 3)
    _assert_same(_built(trace, 3), trace, 3)


@pytest.mark.parametrize("name", VARIANTS)
def test_all_heads_at_once_is_the_same_arithmetic(name: str) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(9), 4)
    for block in blocks(trace, 4, 1):
        every = weights_of_heads([block], block.rows, slice(0, block.columns))[0]
        whole = np.stack([full_map(trace, 4, 1, h).weights for h in range(run.heads)])
        rows = slice(block.first_query, block.first_query + block.count)
        columns = slice(block.first_key, block.first_key + block.columns)
        np.testing.assert_allclose(every, whole[:, rows, columns], atol=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_growing_step_by_step_is_building_anew(name: str) -> None:
    """Through two changes of stride: 8 -> 16 -> 32 slots."""
    run = VARIANTS[name]
    trace = run.decode(run.prefill(5), 15)
    known = _built(trace, 0)
    for step in range(1, 16):
        known = _built(trace, step, known)
        fresh = _built(trace, step)
        assert known.stride == fresh.stride
        np.testing.assert_allclose(known.levels.astype(int), fresh.levels.astype(int), atol=1)


@pytest.mark.parametrize("known_step", range(0, 13, 3))
@pytest.mark.parametrize("step", range(0, 13, 2))
def test_jumping_between_steps_is_building_anew(known_step: int, step: int) -> None:
    run = VARIANTS["plain"]
    trace = run.decode(run.prefill(6), 12)
    found = _built(trace, step, _built(trace, known_step))
    fresh = _built(trace, step)
    np.testing.assert_allclose(found.levels.astype(int), fresh.levels.astype(int), atol=1)


def test_a_branch_left_behind_leaves_no_trace() -> None:
    run = Run()
    trunk = run.decode(run.prefill(9), 2)
    left, right = run.decode(trunk, 4), run.decode(trunk, 4)
    found = _built(right, 6, _built(left, 6))
    fresh = _built(right, 6)
    np.testing.assert_allclose(found.levels.astype(int), fresh.levels.astype(int), atol=1)


def test_a_recomputing_run_is_never_taken_over() -> None:
    run = Run(causal=False)
    trace = run.recompute(run.prefill(6), 2)
    _assert_same(_built(trace, 2, _built(trace, 1)), trace, 2)


def test_one_hot_cell_in_two_thousand_is_never_lost() -> None:
    run = Run(layers=1, heads=1, kv_heads=1, sharpness=0.0)
    trace = run.prefill(2000)
    record = trace.steps[0].layers[0]
    assert record.queries is not None
    assert record.keys is not None
    record.queries[1500], record.keys[77] = 30.0, 3.0
    *_, found = figures.build(trace, 0)
    assert found.stride == 32
    hot = found.levels[0, 0, 1500 // 32, 77 // 32]
    assert hot == READ + figures.LEVELS
    assert found.tops[0, 0] == 1.0


def test_layers_without_attention_keep_their_place_and_reason() -> None:
    trace = Run(layers=3, absent=(1,)).prefill(4)
    found = _built(trace, 0)
    assert found.heads == (4, 0, 4)
    assert found.reasons == ("", "a recurrent layer", "")
    assert (found.levels[1] == ABSENT).all()
    assert found.levels[2].max() > MASKED


def test_a_long_build_answers_on_the_way_beginning_where_one_looks() -> None:
    trace = Run(layers=4, heads=4).prefill(900)
    answers = list(figures.build(trace, 0, first_layer=2))
    assert len(answers) > 2
    assert [a.complete for a in answers] == [False] * (len(answers) - 1) + [True]
    first = answers[0].levels.max(axis=(1, 2, 3))
    assert first[2] > MASKED
    assert (first[[0, 3]] == 0).all()


def test_a_half_finished_answer_is_not_built_upon() -> None:
    trace = Run(layers=4, heads=4).prefill(900)
    half = next(figures.build(trace, 0))
    assert not half.complete
    *_, found = figures.build(trace, 0, half)
    *_, fresh = figures.build(trace, 0)
    np.testing.assert_array_equal(found.levels, fresh.levels)


def test_strides_are_powers_of_two() -> None:
    assert [figures.stride_for(n, 270) for n in (1, 64, 65, 128, 129, 2048, 2049)] == [
        *(1, 1, 2, 2, 4, 32, 64)
    ]


def test_thousands_of_heads_are_there_soon_and_in_few_cells() -> None:
    trace = Run(layers=48, heads=64, kv_heads=8, head_dim=8).prefill(128)
    began = process_time()
    answers = figures.build(trace, 0)
    first = next(answers)
    assert process_time() - began < 0.5  # measured: 0.06
    *_, whole = answers
    assert process_time() - began < 2.5  # measured: 0.7
    assert not first.complete
    assert whole.levels.shape == (48, 64, 32, 32)
    assert (whole.levels[:, :, -1, 0] > MASKED).all()
