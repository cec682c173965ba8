"""The keys of many cached passes, put together bit by bit, are those of the passes themselves."""

from __future__ import annotations

import gc
from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from explorer.trace import joined_keys
from explorer.trace.joined_keys import joined
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from tests.figures.runs import Run


def _plainly(steps: tuple[Step, ...], begin: int, end: int, layer: int) -> np.ndarray:
    keys = [step.layers[layer].keys for step in steps[begin : end + 1]]
    return np.concatenate([part for part in keys if part is not None])


def _run(steps: int, seed: int = 0) -> Trace:
    run = Run(layers=2, seed=seed)
    return run.decode(run.prefill(5), steps)


@pytest.mark.parametrize("order", [range(9), reversed(range(9)), (8, 2, 5, 8, 0, 1)])
def test_at_any_pass_they_are_those_of_the_passes(order: range) -> None:
    trace = _run(8)
    for end in order:
        for layer in range(2):
            found = joined(trace.steps, 0, end, layer)
            assert np.array_equal(found, _plainly(trace.steps, 0, end, layer))


def _bare(step: Step) -> Step:
    return replace(step, layers=tuple(replace(record, keys=None) for record in step.layers))


def test_branches_do_not_write_over_each_other() -> None:
    """Without keys in the first pass the shared array itself is handed out."""
    run = Run(layers=1)
    stem = run.decode(run.prefill(5), 3)
    stem = replace(stem, steps=(_bare(stem.steps[0]), *stem.steps[1:]))
    one, other = run.decode(stem, 4), run.decode(stem, 4)
    given = joined(one.steps, 0, 7, 0)
    before = given.copy()
    for trace in (other, one, other):
        found = joined(trace.steps, 0, 7, 0)
        assert np.array_equal(found, _plainly(trace.steps, 0, 7, 0))
    assert np.array_equal(given, before)
    with pytest.raises(ValueError, match="read-only"):
        given[:1] = 0


def test_passes_without_keys_add_nothing() -> None:
    trace = _run(4)
    steps = (*trace.steps[:2], _bare(trace.steps[2]), *trace.steps[3:])
    assert np.array_equal(joined(steps, 0, 4, 0), _plainly(steps, 0, 4, 0))


def test_nothing_is_kept_of_a_run_that_is_gone() -> None:
    trace = _run(6)
    gc.collect()
    before = len(joined_keys._runs)
    joined(trace.steps, 0, 6, 0)
    joined(trace.steps, 0, 1, 1)
    assert len(joined_keys._runs) == before + 2
    del trace
    gc.collect()
    assert len(joined_keys._runs) == before


def test_one_more_pass_costs_the_same_after_a_hundred_and_after_two_thousand() -> None:
    def cost(steps: int) -> float:
        run = Run(layers=1)
        trace = run.decode(run.prefill(2), steps)
        joined(trace.steps, 1, steps - 20, 0)
        began = process_time()
        for end in range(steps - 19, steps):
            joined(trace.steps, 1, end, 0)
        return process_time() - began

    assert min(cost(2000) for _ in range(3)) < 5 * min(cost(100) for _ in range(3)) + 1e-3
