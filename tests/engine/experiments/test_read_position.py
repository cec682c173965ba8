"""Keys and values of one position: what the kernels saw, and what the cache holds of it."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.errors import BadInput
from explorer.engine.experiments import read_position
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.figures.cost import kv_strips as figures
from explorer.trace.experiments import PositionRead, ReadSlot
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model

REQUEST = RunRequest(prompt=" ".join(str(i) for i in range(5, 13)))
STEPS = 12

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers' modelling code


def traced(runner: Runner) -> Trace:
    selftest.run(runner)
    made = [Trace(request=REQUEST, card=runner.loaded.card, prompt=runner.prompt(REQUEST).tokens)]
    generate(
        runner,
        runner.prompt(REQUEST),
        (),
        STEPS,
        Sampling,
        lambda step, token: made.append(made[-1].appended(step, token)),
    )
    return made[-1]


def read(runner: Runner, trace: Trace, where: int, step: int = STEPS - 1) -> PositionRead:
    asked = ReadSlot(request=REQUEST, chosen=trace.chosen_ids[:step], slot=where)
    return read_position.read(runner, asked, lambda *_: None)


@pytest.mark.parametrize("where", [0, 7, 8, 18])
def test_the_cached_keys_are_those_that_the_trace_recorded(where: int) -> None:
    runner = runner_on(tiny_model("llama"))
    trace = traced(runner)
    found = read(runner, trace, where)
    keys = figures.keys_at(trace, STEPS - 1, where)
    for layer, recorded in enumerate(keys.layers):
        part = found.layers[layer].key
        assert part is not None
        cached = np.frombuffer(part.numbers, "<f4").reshape(part.heads, part.width)
        assert recorded is not None
        assert np.array_equal(cached, recorded)
    values = figures.values_of(found)
    held = runner.cache.live.layers[1].values[0, :, where].numpy()
    assert np.array_equal(values.layers[1], held)


def test_an_earlier_step_is_read_without_dropping_what_came_after() -> None:
    runner = runner_on(tiny_model("llama"))
    trace = traced(runner)
    before = runner.cache.slots
    read(runner, trace, 3, step=2)
    assert runner.cache.slots == before


def test_a_cache_that_was_lost_is_filled_again() -> None:
    runner = runner_on(tiny_model("llama"))
    trace = traced(runner)
    whole = figures.values_of(read(runner, trace, 5)).layers[0]
    runner.cache.drop()
    again = figures.values_of(read(runner, trace, 5)).layers[0]
    assert whole is not None
    np.testing.assert_allclose(again, whole, atol=1e-5)


def test_what_left_a_window_is_gone_and_said_to_be() -> None:
    runner = runner_on(tiny_model("gemma3_text", sliding_window=16))
    trace = traced(runner)
    values = figures.values_of(read(runner, trace, 0))
    assert values.reasons[:2] == (read_position.GONE, read_position.GONE)
    assert values.layers[2] is not None
    last = figures.values_of(read(runner, trace, 18))
    held = runner.cache.live.layers[0].values[0, :, -1].numpy()
    assert np.array_equal(last.layers[0], held)


def test_a_recurrent_layer_has_nothing_of_single_positions() -> None:
    runner = runner_on(tiny("jamba"))
    trace = traced(runner)
    assert figures.values_of(read(runner, trace, 4)).reasons[0] == read_position.STATE


def test_no_cache_and_no_such_position_are_refused_in_one_sentence() -> None:
    runner = runner_on(tiny_model("llama"))
    trace = traced(runner)
    with pytest.raises(BadInput, match="no position 99"):
        read(runner, trace, 99)
    asked = ReadSlot(request=RunRequest(prompt="5 6", cache=False), slot=0)
    with pytest.raises(BadInput, match="stores no keys and values"):
        read_position.read(runner, asked, lambda *_: None)
