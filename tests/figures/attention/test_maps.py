"""Maps equal the trace's own weights, cell by cell, whatever passes they are put together from."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention import maps as figures
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.trace.trace import Trace
from tests.figures.runs import Run

VARIANTS = {
    "plain": Run(),
    "grouped heads": Run(heads=8, kv_heads=1),
    "sinks": Run(sinks=True),
    "softcap": Run(softcap=5.0),
    "window": Run(window=5),
    "left padding": Run(padding=3, bits=True),
    "tensor mask": Run(bits=True),
}


def _assert_rows(found: figures.Map, trace: Trace, step: int, layer: int, head: int) -> None:
    """Rows of one pass in a whole map equal that pass's own weights."""
    this = trace.steps[step]
    own = trace.weights(step, layer, head)
    first_key = this.layers[layer].first_key
    rows = slice(this.first_slot, this.first_slot + this.positions_processed)
    inside = found.weights[rows, first_key : first_key + own.shape[1]]
    np.testing.assert_allclose(inside, own, atol=1e-6)
    outside = np.ones(found.weights.shape[1], bool)
    outside[first_key : first_key + own.shape[1]] = False
    assert (found.kinds[rows][:, outside] == ABSENT).all()
    assert (found.weights[rows][:, outside] == 0).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_whole_map_is_the_prefill_and_one_row_per_decode_step(name: str) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(9), 6)
    for layer in range(2):
        for head in range(run.heads):
            found = figures.full_map(trace, 6, layer, head)
            assert found.weights.shape == found.kinds.shape == (15, 15)
            for step in range(7):
                _assert_rows(found, trace, step, layer, head)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_pass_map_is_exactly_the_traces_weights(name: str) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(9), 2)
    for step in range(3):
        found = figures.pass_map(trace, step, 1, 2)
        np.testing.assert_allclose(found.weights, trace.weights(step, 1, 2), atol=1e-6)
        assert found.first_query == trace.steps[step].first_slot


def test_a_recomputed_pass_owns_every_row() -> None:
    run = Run(causal=False)
    trace = run.recompute(run.prefill(5), 2)
    found = figures.full_map(trace, 2, 0, 3)
    np.testing.assert_array_equal(found.weights, trace.weights(2, 0, 3))
    assert (found.kinds == READ).all()
    assert found.weights[0, 1:].min() > 0


def test_masked_absent_and_zero_are_three_things() -> None:
    run = Run()
    trace = run.decode(run.prefill(4), 2)
    kinds = figures.full_map(trace, 2, 0, 0).kinds
    assert (kinds[0] == [READ, MASKED, MASKED, MASKED, ABSENT, ABSENT]).all()
    assert (kinds[3] == [READ, READ, READ, READ, ABSENT, ABSENT]).all()
    assert (kinds[4] == [READ, READ, READ, READ, READ, ABSENT]).all()


def test_keys_outside_a_window_are_masked_in_the_prefill_and_absent_in_a_decode_row() -> None:
    run = Run(window=3)
    trace = run.decode(run.prefill(6), 1)
    kinds = figures.full_map(trace, 1, 0, 0).kinds
    assert (kinds[5] == [MASKED, MASKED, MASKED, READ, READ, READ, ABSENT]).all()
    assert (kinds[6] == [ABSENT, ABSENT, ABSENT, ABSENT, READ, READ, READ]).all()


def test_padding_keys_are_masked() -> None:
    run = Run(padding=2)
    trace = run.prefill(5)
    kinds = figures.full_map(trace, 0, 0, 0).kinds
    assert (kinds[4] == [MASKED, MASKED, READ, READ, READ]).all()
    assert (figures.full_map(trace, 0, 0, 0).weights[0] == 0).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_known_map_is_extended_and_shortened_without_a_difference(name: str) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(7), 5)
    fresh = {step: figures.full_map(trace, step, 1, 1) for step in range(6)}
    for known in fresh.values():
        for step, wanted in fresh.items():
            found = figures.full_map(trace, step, 1, 1, known)
            np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-6)
            np.testing.assert_array_equal(found.kinds, wanted.kinds)


def test_a_known_map_of_a_branch_left_behind_is_not_trusted() -> None:
    run = Run()
    trunk = run.decode(run.prefill(5), 2)
    left = run.decode(trunk, 3)
    right = run.decode(trunk, 3)
    known = figures.full_map(left, 5, 0, 0)
    found = figures.full_map(right, 5, 0, 0, known)
    wanted = figures.full_map(right, 5, 0, 0)
    np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-6)
    assert figures.shared_rows(left.steps, right.steps) == 7


def test_a_known_map_of_a_recomputing_run_shares_nothing_with_the_next_pass() -> None:
    run = Run(causal=False)
    trace = run.recompute(run.prefill(5), 3)
    assert figures.shared_rows(trace.steps[:2], trace.steps[:3]) == 0
    known = figures.full_map(trace, 1, 0, 0)
    found = figures.full_map(trace, 2, 0, 0, known)
    np.testing.assert_array_equal(found.weights, trace.weights(2, 0, 0))


def test_a_known_map_of_another_head_is_not_used() -> None:
    run = Run()
    trace = run.decode(run.prefill(5), 1)
    known = figures.full_map(trace, 0, 0, 0)
    found = figures.full_map(trace, 1, 0, 1, known)
    np.testing.assert_allclose(found.weights[:5, :5], trace.weights(0, 0, 1), atol=1e-6)


def test_only_the_new_row_is_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    trace = run.decode(run.prefill(60), 3)
    known = figures.full_map(trace, 2, 0, 0)
    rows = []
    real = figures.attention.weights

    def counted(record, keys, head, part, **options):  # type: ignore[no-untyped-def]
        rows.append(part.stop - part.start)
        return real(record, keys, head, part, **options)

    monkeypatch.setattr(figures.attention, "weights", counted)
    figures.full_map(trace, 3, 0, 0, known)
    assert sum(rows) == 1


def test_maps_are_read_only() -> None:
    found = figures.full_map(Run().prefill(4), 0, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        found.weights[0, 0] = 1


@pytest.mark.parametrize("name", VARIANTS)
def test_a_row_is_what_that_query_reads(name: str) -> None:
    run = VARIANTS[name]
    trace = run.decode(run.prefill(9), 4)
    whole = figures.full_map(trace, 4, 1, 3)
    for query in range(13):
        found = figures.row(trace, 4, 1, 3, query)
        np.testing.assert_allclose(found.weights, whole.weights[query], atol=1e-6)
        np.testing.assert_array_equal(found.kinds, whole.kinds[query])
        assert found.step == max(0, query - 8)


def test_a_sink_takes_what_the_row_lacks() -> None:
    run = Run(sinks=True)
    found = figures.row(run.prefill(6), 0, 0, 2, 5)
    assert 0 < found.sink < 1
    assert found.weights.sum() + found.sink == pytest.approx(1, abs=1e-6)
    assert figures.row(Run().prefill(6), 0, 0, 2, 5).sink == 0


def test_top_keys_are_the_largest_and_ties_go_by_slot() -> None:
    found = figures.QueryRow(3, np.float32([0.25, 0.25, 0.0, 0.5]), np.full(4, READ), 0, 0.0)
    assert found.top_keys(9) == [(3, 0.5), (0, 0.25), (1, 0.25)]


def test_layers_without_attention_say_why() -> None:
    trace = Run(absent=(1,)).prefill(4)
    with pytest.raises(ValueError, match="Layer 1 has no attention map: a recurrent layer"):
        figures.full_map(trace, 0, 1, 0)
    with pytest.raises(ValueError, match="no head 9"):
        figures.full_map(trace, 0, 0, 9)
    with pytest.raises(IndexError, match="slot 7"):
        figures.row(trace, 0, 0, 0, 7)


def test_one_token_prompt() -> None:
    found = figures.full_map(Run().prefill(1), 0, 0, 0)
    assert found.weights.tolist() == [[1.0]]
    assert found.top == 1


def test_levels_tell_the_kinds_apart_and_keep_the_scale() -> None:
    weights = np.float32([[0, 0, 0, 1e-6, 0.5, 1.0]])
    kinds = np.uint8([[ABSENT, MASKED, READ, READ, READ, READ]])
    assert figures.levels(weights, kinds).tolist() == [[0, 1, 2, 2, 128, 255]]
    assert figures.levels(weights, kinds, 0.5).tolist() == [[0, 1, 2, 2, 255, 255]]
