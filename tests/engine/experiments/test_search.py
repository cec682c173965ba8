"""Sequences that beat greedy: found where there is one, and none claimed without proof."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.experiments import search
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.passes.generate import logits_after
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import FoundSequence, SearchResult, SearchSequences
from explorer.trace.request import RunRequest
from tests.engine.tiny import tiny_runner


@pytest.fixture(scope="module")
def runner() -> Runner:
    torch.set_num_threads(1)
    return tiny_runner("llama", vocab_size=12)


def found(runner: Runner, prompt: str, **changes: Any) -> SearchResult:
    asked = {"request": RunRequest(prompt=prompt), "length": 3, "width": 3, "passes": 500}
    return search.search(
        TorchPasses(runner), SearchSequences(**{**asked, **changes}), lambda *_: None
    )


def logs_after(runner: Runner, prompt: str, path: tuple[int, ...]) -> np.ndarray:
    logits = logits_after(runner, RunRequest(prompt=prompt), path).astype(float)
    logits -= logits.max()
    return logits - math.log(np.exp(logits).sum())


def log_probability(runner: Runner, prompt: str, path: tuple[int, ...]) -> float:
    return float(sum(logs_after(runner, prompt, path[:i])[t] for i, t in enumerate(path)))


def test_it_finds_the_most_probable_of_all_sequences(runner: Runner) -> None:
    beaten = 0
    for start in range(2, 7):
        prompt = f"{start} 3 {12 - start}"
        first = logs_after(runner, prompt, ())
        every = {
            (i, j): first[i] + second
            for i in range(12)
            for j, second in enumerate(logs_after(runner, prompt, (i,)))
        }
        facts = found(runner, prompt, length=2)
        assert facts.proven
        assert every[tuple(facts.best.ids)] == pytest.approx(max(every.values()), abs=1e-4)
        assert facts.best.log_probability == pytest.approx(max(every.values()), abs=1e-4)
        assert facts.beats_greedy == (facts.best.ids != facts.greedy.ids)
        beaten += facts.beats_greedy
    assert 0 < beaten < 5  # both answers were given


def test_both_probabilities_are_those_of_the_sequences(runner: Runner) -> None:
    facts = found(runner, "4 3 8")
    for name in ("greedy", "best"):
        one: FoundSequence = getattr(facts, name)
        assert one.probability == pytest.approx(math.exp(one.log_probability))
        assert one.log_probability == pytest.approx(
            log_probability(runner, "4 3 8", tuple(one.ids)), abs=1e-4
        )


def test_nothing_is_claimed_when_the_passes_run_out(runner: Runner) -> None:
    facts = found(runner, "4 3 8", length=6, width=1, passes=7)
    assert not facts.proven
    assert facts.best.probability < facts.bound <= 1
    assert facts.passes <= 6 + 7


def test_an_end_token_ends_a_sequence(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    end = found(runner, "4 3 8").greedy.ids[0]
    card = msgspec.structs.replace(runner.loaded.card, eos_ids=(end,))
    monkeypatch.setattr(runner, "loaded", replace(runner.loaded, card=card))
    facts = found(runner, "4 3 8")
    assert facts.greedy.ids == (end,)
    assert (facts.best.ids, facts.proven, facts.beats_greedy) == ((end,), True, False)


def test_cancel_and_odd_numbers(runner: Runner) -> None:
    asked = SearchSequences(request=RunRequest(prompt="4 3 8"))
    with pytest.raises(Cancelled):
        search.search(TorchPasses(runner), asked, lambda *_: None, lambda: True)
    for changes in ({"length": 0}, {"width": 65}, {"passes": 0}):
        with pytest.raises(BadInput, match="must be from 1"):
            found(runner, "4 3 8", **changes)
