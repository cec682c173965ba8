"""A logit as a sum of parts: the sum, single parts by hand, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.engine.inside import attribution
from explorer.engine.loading import loading
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.inside.attribution import Attribute, Attribution
from explorer.trace.request import RunRequest, Sampling
from tests.engine import architectures
from tests.engine.experiments.batches import PROMPTS, alone, ids_of, runner_of
from tests.engine.tiny import runner_on, tiny_model

TEXT = PROMPTS[4]


def parts(runner: Runner, text: str = TEXT, **more: Any) -> Attribution:
    asked = Attribute(request=RunRequest(prompt=text), **more)
    return attribution.attribute(runner, asked, nobody)


def values(found: Attribution, kind: str) -> dict[tuple[Any, Any], float]:
    return {(one.layer, one.head): one.value for one in found.parts if one.kind == kind}


def test_the_runs_cache_stays_as_it_was() -> None:
    runner, request = runner_of("llama"), RunRequest(prompt=TEXT)
    generate(runner, runner.prompt(request), (), 1, Sampling, lambda *_: None)
    held = runner.cache.slots
    parts(runner)
    assert runner.cache.slots == held > 1


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2", "gemma3_text", "gpt_oss"])
@pytest.mark.parametrize("slot", [0, 9, None])
def test_the_parts_add_up_to_the_models_logit(kind: str, slot: int | None) -> None:
    runner = runner_of(kind)
    found = parts(runner, slot=slot)
    logits = alone(runner, ids_of(TEXT))[-1 if slot is None else slot]
    assert found.target.id == int(logits.argmax())
    assert found.target.logit == pytest.approx(logits.max(), abs=1e-4)
    assert found.sum == pytest.approx(logits.max(), rel=1e-4)
    assert found.gap < 1e-4 * abs(found.target.logit)
    heads = values(found, "head")
    assert set(heads) == {(layer, head) for layer in range(3) for head in range(4)}
    assert set(values(found, "mlp")) == {(layer, None) for layer in range(3)}
    assert set(values(found, "embedding")) == {(None, None)}


@torch.inference_mode()
def test_a_head_adds_its_slice_of_the_projection_by_hand() -> None:
    runner = runner_of("llama")
    model = runner.model
    found = parts(runner, token=11)
    kept: list[torch.Tensor] = []
    states: list[torch.Tensor] = []
    attention = model.model.layers[1].self_attn.o_proj
    handles = [
        attention.register_forward_pre_hook(lambda module, args: kept.append(args[0][0, -1])),
        model.model.norm.register_forward_pre_hook(
            lambda module, args: states.append(args[0][0, -1])
        ),
    ]
    model(input_ids=torch.tensor([ids_of(TEXT)]))
    for handle in handles:
        handle.remove()
    state = states[0].double()
    norm = model.model.norm
    scale = norm.weight.double() / (state.square().mean() + norm.variance_epsilon).sqrt()
    direction = scale * model.lm_head.weight[11].double()
    for head in range(4):
        columns = slice(head * 8, head * 8 + 8)
        write = attention.weight[:, columns].double() @ kept[0][columns].double()
        by_hand = float(write @ direction)
        assert values(found, "head")[1, head] == pytest.approx(by_hand, abs=1e-5)


def test_the_lead_over_another_token_is_the_difference_of_both() -> None:
    runner = runner_of("gemma2")  # with a soft cap
    one, other = parts(runner, token=7), parts(runner, token=8)
    both = parts(runner, token=7, against=8)
    assert both.wanted == pytest.approx(one.target.logit - other.target.logit)
    for ours, a, b in zip(both.parts, one.parts, other.parts, strict=True):
        assert (ours.kind, ours.layer, ours.head) == (a.kind, a.layer, a.head)
        assert ours.value == pytest.approx(a.value - b.value, abs=1e-6)
    assert both.gap < 1e-4


def test_biases_have_their_own_parts() -> None:
    found = parts(runner_of("gpt2"))
    biases = values(found, "bias")
    assert set(biases) == {(None, None), (0, None), (1, None), (2, None)}
    assert all(abs(value) > 1e-4 for value in biases.values())


def test_low_precision_names_what_rounding_took() -> None:
    runner = runner_on(tiny_model("llama").to(torch.bfloat16), context=64)
    card = runner.loaded.card
    runner.loaded = type(runner.loaded)(
        runner.loaded.model, runner.loaded.config, runner.loaded.tokenizer,
        type(card)(**{**{f: getattr(card, f) for f in card.__struct_fields__},
                      "dtype": "bfloat16"}),
    )  # fmt: skip
    selftest.run(runner)
    found = parts(runner)
    assert len(values(found, "rounding")) == 1
    assert found.gap < 5e-2 * abs(found.target.logit)


@pytest.mark.parametrize("kind", ["bert", "deepseek_v4"])
def test_what_has_no_such_sum_is_refused_in_words(kind: str) -> None:
    with pytest.raises(BadInput, match="can't be shown"):
        parts(runner_on(architectures.tiny(kind)))


def test_a_tail_that_is_more_than_norm_and_head_is_refused() -> None:
    runner = runner_on(tiny_model("llama"), context=64)
    handle = runner.model.lm_head.register_forward_hook(
        lambda module, args, output: output + output.square()
    )
    try:
        with pytest.raises(BadInput, match="more than one norm and one head"):
            parts(runner)
    finally:
        handle.remove()


def test_what_does_not_exist_is_refused() -> None:
    runner = runner_of("llama")
    with pytest.raises(BadInput, match="no token 96: this model's ids end at 95"):
        parts(runner, token=96)
    with pytest.raises(BadInput, match="no position 23"):
        parts(runner, slot=23)


@pytest.mark.smollm2
def test_paris_is_the_sum_of_its_parts(smollm2: Runner) -> None:
    found = parts(smollm2, "The capital of France is")
    assert found.target.raw == b" Paris"
    assert found.target.logit == pytest.approx(17.371, abs=0.01)
    assert found.gap < 1e-4
    assert len(found.parts) == 1 + 30 * 9 + 30 + 1
    heads = values(found, "head")
    largest = sorted(heads, key=lambda head: -abs(heads[head]))[:5]
    assert largest == [(23, 4), (29, 1), (29, 0), (29, 2), (23, 3)]
    assert heads[23, 4] == pytest.approx(2.824, abs=0.01)
    lead = parts(smollm2, "The capital of France is", against=260)
    assert lead.sum == pytest.approx(lead.wanted, abs=1e-3)


def test_copycats_induction_head_says_what_to_copy() -> None:
    runner = Runner(loading.load("copycat"))
    selftest.run(runner)
    found = parts(runner, "a b c d e f a b c")
    assert found.target.raw == b" d"
    heads = values(found, "head")
    assert max(heads, key=lambda head: heads[head]) == (1, 0)
    assert heads[1, 0] > 0.3 * found.target.logit
    assert np.isclose(found.sum, found.target.logit, rtol=1e-4)
