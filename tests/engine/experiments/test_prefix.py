"""The prefix experiment: nothing moves under the mask, everything after layer 0 without it."""

from __future__ import annotations

import pytest
import torch

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput, EngineError
from explorer.engine.experiments import prefix
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.experiments import PrefixExperiment, PrefixShift
from explorer.trace.request import RunRequest
from tests.engine.tiny import tiny_runner

PROMPT = "9 8 7 6 5 4 3 12 13"


def dropped(runner: Runner, prompt: str, chosen: tuple[int, ...] = ()) -> PrefixShift:
    asked = PrefixExperiment(request=RunRequest(prompt=prompt), chosen=chosen)
    return prefix.drop_last(runner, asked, nobody)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "gemma3_text"])
def test_masked_stays_and_unmasked_moves(kind: str) -> None:
    runner = tiny_runner(kind)
    selftest.run(runner)
    found = dropped(runner, PROMPT, (20, 21))
    assert found.tokens == 11
    assert found.unmasked is not None
    assert len(found.masked.layers) == len(found.unmasked.layers) == 3
    assert max(found.masked.layers) < 1e-4
    assert found.masked.logits < 1e-4
    assert min(found.unmasked.layers) > 1e-2
    assert found.unmasked.logits > 1e-2


def test_without_a_proven_switch_the_reason_is_given() -> None:
    runner = tiny_runner("llama")  # not self-tested: nothing is offered
    found = dropped(runner, PROMPT)
    assert found.unmasked is None
    assert found.masked.logits < 1e-4


def test_one_token_is_too_few() -> None:
    with pytest.raises(BadInput, match="at least two"):
        dropped(tiny_runner("llama"), "5")


def test_numbers_that_are_none_are_a_sentence() -> None:
    runner = tiny_runner("llama")
    with torch.no_grad():
        runner.layers[1].mlp.up_proj.weight[0, 0] = float("nan")
    with pytest.raises(EngineError, match="NaN or infinite"):
        dropped(runner, PROMPT)
