"""How a prompt was foreseen, token by token, against the model called by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from explorer.engine.errors import Cancelled
from explorer.engine.experiments import prompt_scores
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import PromptScores, ScorePrompt
from explorer.trace.request import RunRequest, Sampling
from tests.engine.experiments.batches import PROMPTS, alone, ids_of, runner_of

TEXT = PROMPTS[2]


def scores(runner: Runner, **more: Any) -> PromptScores:
    asked = ScorePrompt(request=RunRequest(prompt=TEXT, **more))
    return prompt_scores.score_prompt(TorchPasses(runner), asked, lambda *_: None)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bloom", "gemma3_text"])
def test_each_token_is_scored_by_what_stands_before_it(kind: str) -> None:
    runner, ids = runner_of(kind), ids_of(TEXT)
    found = scores(runner)
    logits = alone(runner, ids).astype(np.float64)
    p = np.exp(logits - logits.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    assert found.slots == tuple(range(1, len(ids)))
    for i, slot in enumerate(found.slots):
        before = p[slot - 1]
        assert found.nats[i] == pytest.approx(-math.log(before[ids[slot]]), abs=1e-4)
        assert found.entropy_bits[i] == pytest.approx(-(before * np.log2(before)).sum(), abs=1e-4)
        assert found.ranks[i] == int((before > before[ids[slot]]).sum())
        best = int(before.argmax())
        assert found.top[i][0] == (best, pytest.approx(before[best], abs=1e-5))
    assert found.passes == 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_is_neither_scored_nor_does_it_change_the_scores(side: str) -> None:
    plain, padded = scores(runner_of("llama")), scores(runner_of("llama"), padding=side, pad=5)
    np.testing.assert_allclose(padded.nats, plain.nats, atol=1e-4)
    shift = 5 if side == "left" else 0
    assert padded.slots == tuple(slot + shift for slot in plain.slots)


@pytest.mark.parametrize("cached", [True, False])
def test_a_long_prompt_is_read_out_in_portions(
    monkeypatch: pytest.MonkeyPatch, cached: bool
) -> None:
    runner = runner_of("llama")
    whole = scores(runner)
    monkeypatch.setattr(prompt_scores, "LOGIT_BYTES", 4 * runner.loaded.card.vocab_size * 7)
    assert runner.in_chunks
    portions = scores(runner, cache=cached)
    assert portions.passes == math.ceil(len(ids_of(TEXT)) / 7)
    for name in ("nats", "entropy_bits"):
        np.testing.assert_allclose(getattr(portions, name), getattr(whole, name), atol=1e-4)
    assert portions.slots == whole.slots


def test_the_runs_own_cache_is_left_alone() -> None:
    runner = runner_of("llama")
    request = RunRequest(prompt=TEXT)
    generate(runner, runner.prompt(request), (), 2, Sampling, lambda *_: None)
    slots = runner.cache.slots
    scores(runner)
    assert runner.cache.slots == slots > 0


def test_a_single_token_has_nothing_to_foresee() -> None:
    asked = ScorePrompt(request=RunRequest(prompt="5"))
    assert (
        prompt_scores.score_prompt(TorchPasses(runner_of("llama")), asked, lambda *_: None).slots
        == ()
    )


def test_cancel_ends_it() -> None:
    asked = ScorePrompt(request=RunRequest(prompt=TEXT))
    with pytest.raises(Cancelled):
        prompt_scores.score_prompt(
            TorchPasses(runner_of("llama")), asked, lambda *_: None, lambda: True
        )
