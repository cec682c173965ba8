"""The two sides of a comparison: real passes of a real model, and the same scores unmasked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from explorer.figures.attention.difference import difference
from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.attention.maps import full_map
from explorer.figures.attention.mask_pair import Side, of_pass, windows, without_mask
from explorer.trace.comparison import other_side
from explorer.trace.interventions.kinds import Cells
from explorer.trace.trace import Trace
from tests.engine import folders
from tests.figures.runs import Run


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, Side]:
    """A run of four cached steps on a tiny Llama, and the last step's pass without the mask."""
    from tests.session.jobs.test_comparison import Owner

    folder = folders.write_folder(
        Path(str(tmp_path_factory.mktemp("m"))) / "tiny", folders.model(eos_token_id=None)
    )
    owner = Owner(str(folder))
    try:
        owner.step(4)
        owner.session.compare(True)
        state = owner.compared()
    finally:
        owner.session.close()
    assert state.trace is not None
    assert state.comparison is not None
    other = of_pass(state.trace, 3, other_side(state.trace.request), state.comparison.step)
    return state.trace, other


def test_in_the_first_layer_dropping_the_mask_is_the_real_run_and_later_not(
    compared: tuple[Trace, Side],
) -> None:
    trace, real = compared
    dropped = without_mask(Side(trace, 3))
    for layer in range(trace.card.layers):
        apart = []
        for head in range(trace.card.heads):
            a = full_map(real.trace, real.step, layer, head)
            b = full_map(dropped.trace, dropped.step, layer, head)
            assert (a.kinds == READ).all()
            np.testing.assert_array_equal(a.kinds, b.kinds)
            apart.append(float(np.abs(a.weights - b.weights).max()))
        if layer == 0:
            assert max(apart) <= 1e-5
        else:
            assert max(apart) > 1e-4


def test_a_side_stands_on_its_own_tokens(compared: tuple[Trace, Side]) -> None:
    trace, real = compared
    assert real.slots == trace.read_slots(3)
    assert real.trace.tokens[: real.slots] == trace.tokens[: real.slots]
    assert len(real.passes) == 1


def test_the_difference_holds_both_and_is_signed(compared: tuple[Trace, Side]) -> None:
    trace, real = compared
    masked = full_map(trace, 3, 0, 0)
    unmasked = full_map(real.trace, 0, 0, 0)
    change = difference(masked, unmasked)
    np.testing.assert_allclose(change.weights.sum(axis=1), 0, atol=1e-5)
    assert (change.weights[np.triu_indices(real.slots, 1)] > 0).all()
    assert (change.kinds == READ).all()


def test_a_window_stays_on_both_sides_and_padding_is_never_read() -> None:
    run = Run(window=3, padding=2, layers=1)
    trace = run.decode(run.prefill(7), 2)
    dropped = without_mask(Side(trace, 2))
    kinds = full_map(dropped.trace, 0, 0, 0).kinds
    query, key = np.indices(kinds.shape)
    wanted = (np.abs(query - key) < 3) & (key >= 2)
    np.testing.assert_array_equal(kinds == READ, wanted)
    assert (kinds[~wanted] == MASKED).all()
    assert windows(trace) == (3,)
    assert windows(Run().prefill(3)) == ()


def test_decoded_rows_take_part_with_the_keys_that_came_later() -> None:
    run = Run(layers=1)
    trace = run.decode(run.prefill(3), 3)
    dropped = without_mask(Side(trace, 3))
    weights = full_map(dropped.trace, 0, 0, 1).weights
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert (weights[np.triu_indices(6, 1)] > 0).all()
    # What a row could read before keeps its shares among itself.
    before = full_map(trace, 3, 0, 1).weights
    for row in range(6):
        part = weights[row, : row + 1]
        np.testing.assert_allclose(part / part.sum(), before[row, : row + 1], atol=1e-5)


def test_turns_that_were_left_out_and_cells_of_single_heads_are_refused() -> None:
    run = Run(layers=2)
    trace = run.decode(run.prefill(6), 2)
    first, last = trace.steps[0], replace(trace.steps[2], left_out=((1, 3),))
    left_out = replace(trace, steps=(first, trace.steps[1], last))
    assert "turns of this run were left out" in reason(left_out, 2)
    assert reason(left_out, 1) == "", "they came later"
    cut = msgspec.structs.replace(trace.request, interventions=(Cells(layer=0, head=1),))
    assert "single heads" in reason(replace(trace, request=cut), 2)
    assert reason(replace(trace, request=cut), 2, layer=1) == ""


def reason(trace: Trace, step: int, layer: int = 0) -> str:
    return without_mask(Side(trace, step)).trace.steps[0].layers[layer].reason


def test_layers_without_scores_of_their_own_say_why() -> None:
    trace = Run(layers=3, absent=(1,)).prefill(4)
    dropped = without_mask(Side(trace, 0))
    assert dropped.trace.steps[0].layers[1].reason == "a recurrent layer"
    with pytest.raises(ValueError, match="a recurrent layer"):
        full_map(dropped.trace, 0, 1, 0)
