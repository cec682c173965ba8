"""A thousand decode steps: the same memory for each, nothing that grows beside the trace."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from explorer.engine.passes.generate import generate
from explorer.engine.selftest import selftest
from explorer.session.capture_budget import layer_bytes
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from tests.engine.tiny import runner_on, tiny_model

STEPS = 1000


@pytest.mark.timeout(240)
def test_a_thousand_steps_take_the_same_memory_each_and_leave_nothing_else() -> None:
    model = tiny_model("llama", num_hidden_layers=1, max_position_embeddings=1100)
    runner = runner_on(model, context=1100)
    selftest.run(runner)
    sizes: set[int] = set()
    objects: list[int] = []
    spent: list[float] = []
    last = time.thread_time()

    def see(step: Step, token: Token) -> None:
        nonlocal last
        if step.phase == "decode":
            sizes.add(layer_bytes(step) + step.logits.nbytes)
            assert step.cache_bytes == step.cache_tokens * 2 * 2 * 8 * 4
            for record in step.layers:  # a view would keep the whole cache alive
                assert record.queries is not None
                assert record.keys is not None
                assert _held(record.queries) <= 2 * record.queries.nbytes
                assert _held(record.keys) <= 2 * record.keys.nbytes
        if step.index in (200, STEPS - 1):
            gc.collect()
            objects.append(len(gc.get_objects()))
        now = time.thread_time()
        spent.append(now - last)
        last = time.thread_time()

    reason = generate(runner, runner.prompt(RunRequest(prompt="5 6 7 8")), (), STEPS, Sampling, see)
    assert reason == "steps"
    assert len(spent) == STEPS
    assert sizes == {(4 + 2) * 8 * 4 + 32 * 4 + 96 * 4}
    assert objects[1] - objects[0] < 100
    early, late = np.median(spent[100:300]), np.median(spent[-200:])
    assert late < 2 * early


def _held(array: np.ndarray) -> int:
    """Bytes of the memory that an array keeps alive."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.nbytes
