"""The loop's page: a prompt is laid out once, and each kind of pass reads what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.engine.errors import BadInput
from explorer.engine.passes import layout as layouts
from explorer.engine.passes.generate import decode_one, generate, prefill, recompute
from explorer.engine.passes.layout import Layout, lay_out
from explorer.engine.passes.run_cost import plan
from explorer.engine.selftest import selftest
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from tests.engine.tiny import tiny_runner

PROMPT = "5 9 14 3"


def test_a_prompt_is_laid_out_once_for_its_cost_its_tokens_and_every_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    made: list[Layout] = []

    def counting(*given: Any) -> Layout:
        made.append(lay_out(*given))
        return made[-1]

    monkeypatch.setattr(layouts, "lay_out", counting)
    request = RunRequest(prompt=PROMPT, padding="left", pad=2)
    steps: list[Step] = []
    for chosen in ((), (7,), (7, 8)):  # as the window asks, step by step
        prompt = runner.prompt(request)
        plan(runner, prompt)
        generate(runner, prompt, chosen, 2, Sampling, lambda s, t: steps.append(s))
    assert len(made) == 1
    assert [token.origin for token in prompt.tokens] == ["padding"] * 2 + ["prompt"] * 4
    assert [step.index for step in steps] == [0, 1, 1, 2, 2, 3]
    runner.prompt(RunRequest(prompt=PROMPT, padding="right", pad=2))
    assert len(made) == 2


@pytest.mark.parametrize("side", ["left", "right"])
def test_tokens_that_follow_a_prompt_stand_where_laying_out_all_would_put_them(side: Any) -> None:
    request = RunRequest(padding=side, pad=3)
    prompt = lay_out((5, 6), (), request, 0)
    whole = lay_out((5, 6), (7, 8), request, 0)
    assert prompt.followed_by((7, 8)) == whole == prompt.grown(7).grown(8)
    assert prompt.followed_by(()) is prompt
    assert whole.real_ids() == [5, 6, 7, 8]
    assert (prompt.readout, whole.readout) == (4 if side == "left" else 1, 6)


def test_prefill_reads_all_decode_one_reads_one_and_both_give_what_recompute_gives() -> None:
    runner = tiny_runner("gemma3_text")
    selftest.run(runner)
    request = RunRequest(prompt=PROMPT)
    prompt = runner.prompt(request).layout
    runner.cache.fresh()
    first = prefill(runner, request, prompt, 0)
    assert (first.phase, first.first_slot, first.slots, first.slots_run) == ("prefill", 0, 4, 4)
    longer = prompt.grown(11)
    second = decode_one(runner, request, longer)
    assert (second.phase, second.first_slot, second.slots_run) == ("decode", 4, 1)
    whole = recompute(runner, request, longer, 1)
    assert (whole.phase, whole.first_slot, whole.slots_run) == ("recompute", 0, 5)
    np.testing.assert_allclose(second.logits, whole.logits, atol=1e-4)
    runner.cache.drop()
    again = decode_one(runner, request, longer)  # the four before it are read first
    assert (again.rebuilt, again.slots_run) == (4, 5)
    np.testing.assert_allclose(again.logits, whole.logits, atol=1e-4)


def test_a_prompt_that_is_too_long_is_refused_even_if_it_was_laid_out_before() -> None:
    runner = tiny_runner("llama")
    with pytest.raises(BadInput, match="65 positions"):
        runner.prompt(RunRequest(prompt=" ".join(["5"] * 65)))
    with pytest.raises(BadInput, match="65 positions"):
        runner.prompt(RunRequest(prompt=" ".join(["5"] * 65)))
