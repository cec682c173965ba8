"""Experiments on a file as it is: the same questions as with torch, answered by llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from explorer.engine.callbacks import nobody
from explorer.llama_engine.experiments.workers import WORKERS
from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace import experiments as asked
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.interventions.kinds import MOST, Cells
from explorer.trace.request import RunRequest, Sampling
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run

PROMPT = "the cat sat on the mat"
REQUEST = RunRequest(prompt=PROMPT)
WINDOW = ContextPolicy(name="window", tokens=3)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaRunner]:
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    found = opened(tiny_gguf.write(path, "llama", kind="Q8_0"))
    yield found
    found.close()


def answer(runner: LlamaRunner, request: asked.Experiment) -> asked.Result:
    return WORKERS[type(request)](runner, request, nobody)


def test_draws_are_those_of_single_runs(runner: LlamaRunner) -> None:
    drawn = Sampling(greedy=False, temperature=1.5, seed=7)
    found = answer(runner, asked.DrawMany(request=REQUEST, count=20, length=2, sampling=drawn))
    assert isinstance(found, asked.Draws)
    assert sum(one.drawn for one in found.first) == 20


def test_search_begins_with_the_greedy_tokens(runner: LlamaRunner) -> None:
    found = answer(runner, asked.SearchSequences(request=REQUEST, length=2, width=2, passes=20))
    assert isinstance(found, asked.SearchResult)
    assert found.greedy.ids == run(runner, REQUEST, 2).chosen_ids


@pytest.mark.parametrize("causal", [True, False])
def test_surprisal_is_that_of_the_logits_of_every_slot(runner: LlamaRunner, causal: bool) -> None:
    request = RunRequest(prompt=PROMPT, causal_mask=causal)
    found = answer(runner, asked.ScorePrompt(request=request))
    assert isinstance(found, asked.PromptScores)
    assert len(found.slots) == len(runner.prompt(request).tokens) - 1
    if causal:  # the last but one slot's prediction is what a run of the shorter prompt gives
        ids = runner.prompt(request).layout.ids
        context = runner.spare_context(len(ids))
        logits = forward(runner, context, ids[:-1], Wanted(every=0)).logits.astype(float)
        nats = np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[ids[-1]]
        assert found.nats[-1] == pytest.approx(nats, abs=1e-4)


def test_the_cache_changes_the_work_and_not_the_tokens(runner: LlamaRunner) -> None:
    before = run(runner, REQUEST, 2)
    found = answer(runner, asked.CacheExperiment(request=REQUEST, tokens=3))
    assert isinstance(found, asked.CacheComparison)
    assert found.same_tokens
    assert found.cached.positions == (found.prompt, 1, 1)
    assert found.uncached.positions == tuple(range(found.prompt, found.prompt + 3))
    again = run(runner, REQUEST, 1, before.chosen_ids).steps[0]
    assert again.rebuilt_tokens == 0  # the run's own cache was left alone


def test_without_its_last_token_a_masked_text_is_the_same(runner: LlamaRunner) -> None:
    found = answer(runner, asked.PrefixExperiment(request=REQUEST))
    assert isinstance(found, asked.PrefixShift)
    assert len(found.masked.layers) == runner.card.layers
    assert found.masked.largest <= 1e-3
    assert found.unmasked is not None
    assert found.unmasked.logits_abs > 0.01


def test_the_context_policy_holds_without_the_last_token_too(runner: LlamaRunner) -> None:
    same = (Cells(back=(3, MOST)),)
    found = [
        answer(runner, asked.PrefixExperiment(request=RunRequest(prompt=PROMPT, **changes)))
        for changes in ({"context": WINDOW}, {"interventions": same}, {})
    ]
    policy, cut, plain = (
        one.unmasked.logits_abs
        for one in found
        if isinstance(one, asked.PrefixShift) and one.unmasked is not None
    )
    assert policy == pytest.approx(cut, rel=1e-4)
    assert policy != pytest.approx(plain, rel=1e-2)


def test_a_position_is_read_under_the_policy_of_its_run(runner: LlamaRunner) -> None:
    windowed = RunRequest(prompt=PROMPT, context=WINDOW)
    last = len(runner.prompt(REQUEST).tokens) - 1

    def values(request: RunRequest) -> bytes:
        found = answer(runner, asked.ReadSlot(request=request, slot=last))
        assert isinstance(found, asked.PositionRead)
        key = found.layers[1].key
        assert key is not None
        return key.numbers

    run(runner, REQUEST, 1)
    plain, found = values(REQUEST), values(windowed)
    run(runner, windowed, 1)
    assert found == values(windowed)
    assert found != plain


def test_keys_and_values_of_a_position_are_the_caches(runner: LlamaRunner) -> None:
    trace = run(runner, REQUEST, 3)
    ids = [token.id for token in trace.tokens]
    first, second = (slot for slot, i in enumerate(ids) if i == ids[1])  # "the", twice
    reads = []
    for slot in (first, second, first + 1):
        found = answer(
            runner, asked.ReadSlot(request=REQUEST, chosen=trace.chosen_ids[:2], slot=slot)
        )
        assert isinstance(found, asked.PositionRead)
        reads.append(found.layers)
        for layer, one in enumerate(found.layers):
            assert one.key is not None
            key = np.frombuffer(one.key.numbers, "<f4").reshape(one.key.heads, one.key.width)
            assert np.array_equal(key, trace.keys(2, layer)[slot].astype(np.float32))
    values = [layers[0].value.numbers for layers in reads if layers[0].value is not None]
    assert values[0] == values[1]  # no position is in a value of layer 0
    assert values[0] != values[2]
