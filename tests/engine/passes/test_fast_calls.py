"""Faster ways through the model's Python change no bit, and leave nothing behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from explorer.engine.passes.fast_calls import FastCalls
from explorer.engine.passes.generate import generate
from explorer.engine.passes.preallocated_cache import ROOM, PreallocatedLayer, with_room
from explorer.engine.selftest import selftest
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from tests.engine.tiny import KINDS, tiny_model, tiny_runner

PROMPT = " ".join(str(3 + 5 * i % 89) for i in range(8))


@pytest.mark.parametrize("kind", KINDS)
def test_a_watched_run_has_the_very_bits_of_the_plain_loop(kind: str) -> None:
    runner = tiny_runner(kind)
    selftest.run(runner)
    steps: list[Step] = []
    generate(
        runner,
        runner.prompt(RunRequest(prompt=PROMPT)),
        (),
        6,
        Sampling,
        lambda s, t: steps.append(s),
    )
    model = tiny_model(kind)
    model.set_attn_implementation(runner.capture.implementation)
    cache = DynamicCache(config=model.config)
    tokens = torch.tensor([[int(i) for i in PROMPT.split()]])
    with torch.inference_mode():
        for step in steps:
            output = model(input_ids=tokens, cache=cache, use_cache=True, logits_to_keep=1)
            np.testing.assert_array_equal(step.logits, output.logits[0, -1].numpy())
            tokens = torch.tensor([[step.draw.token_id]])


def contents(model: Any) -> dict[str, set[str]]:
    return {name: set(vars(module)) for name, module in model.named_modules()}


def test_nothing_stays_behind_even_after_an_error() -> None:
    model = tiny_model("llama")
    before = contents(model)
    shortcuts = FastCalls(list(model.model.layers))
    with shortcuts.laid():
        assert "q_proj" in vars(model.model.layers[0].self_attn)
    with pytest.raises(KeyError), shortcuts.laid():
        raise KeyError
    assert contents(model) == before


def test_hooks_on_a_linear_layer_still_run() -> None:
    runner = tiny_runner("llama")
    called: list[int] = []
    hook = runner.layers[1].mlp.up_proj.register_forward_hook(lambda *a: called.append(1))
    generate(runner, runner.prompt(RunRequest(prompt=PROMPT)), (), 1, Sampling, lambda s, t: None)
    assert called == [1]
    hook.remove()
    with FastCalls(runner.layers).laid():
        direct = runner.layers[1].mlp.up_proj
        assert type(direct) is not torch.nn.Linear
        assert direct.in_features == 32
        assert direct.weight is runner.layers[1].mlp._modules["up_proj"].weight


def test_a_model_may_move_its_parts_while_it_runs() -> None:
    """As BigBird does, whose projections go into another attention in its first pass."""
    model = tiny_model("llama")
    attention = model.model.layers[0].self_attn
    tensor = torch.ones((1, 3, attention.q_proj.in_features))
    with FastCalls(list(model.model.layers)).laid(), torch.inference_mode():
        other = torch.nn.Module()
        other.query = attention.q_proj  # refuses what is no module
        assert torch.equal(other.query(tensor), attention._modules["q_proj"](tensor))
    assert other.query.weight is attention.q_proj.weight


def test_what_is_put_in_a_modules_place_later_is_used() -> None:
    runner = tiny_runner("llama")
    kept: list[Step] = []

    def run() -> np.ndarray:
        generate(
            runner,
            runner.prompt(RunRequest(prompt=PROMPT)),
            (),
            1,
            Sampling,
            lambda s, t: kept.append(s),
        )
        return kept[-1].logits

    before = run()
    mlp = runner.layers[1].mlp
    weight = mlp.up_proj.weight
    mlp.up_proj.weight = torch.nn.Parameter(torch.zeros_like(weight), requires_grad=False)
    zeroed = run()
    mlp.up_proj.weight = weight
    np.testing.assert_array_equal(run(), before)
    runner.layers[1].mlp = torch.nn.Identity()
    replaced = run()
    runner.layers[1].mlp = mlp
    np.testing.assert_array_equal(run(), before)
    assert np.abs(zeroed - before).max() > 1e-3
    assert np.abs(replaced - before).max() > 1e-3


def filled(layer: Any, counts: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    found = []
    for count in counts:
        if count < 0:
            layer.crop(count)
            continue
        new = torch.randn((1, 2, count, 4), generator=generator)
        keys, values = layer.update(new, new * 2)
        found.append((keys.clone(), values.clone()))
    return found


def test_reserved_room_takes_chunks_in_place_but_never_what_a_record_may_see() -> None:
    counts = [5, 5, 2, 1, 1, -4, 1, 1, 3]
    reserved = PreallocatedLayer()
    reserved.reserve(12)
    for ours, theirs in zip(filled(reserved, counts), filled(DynamicLayer(), counts), strict=True):
        assert torch.equal(ours[0], theirs[0])
        assert torch.equal(ours[1], theirs[1])
    layer = PreallocatedLayer()
    layer.reserve(10)
    first, _ = layer.update(*[torch.ones(1, 2, 5, 4)] * 2)
    whole, _ = layer.update(*[torch.full((1, 2, 5, 4), 2.0)] * 2)
    assert first.data_ptr() == whole.data_ptr()
    layer.crop(-3)
    layer.update(*[torch.full((1, 2, 1, 4), 9.0)] * 2)
    assert whole[0, 0, :, 0].tolist() == [1] * 5 + [2] * 5


@pytest.mark.parametrize(
    "counts",
    [
        [5, 1, 1, 1],
        [5, *[1] * (ROOM + 3)],
        [5, 1, 1, -2, 1, 1],
        [5, -2, 1, 1, -1, 1],
        [5, 1, 3, 1, 1],
        [1, 1, 1],
    ],
)
def test_a_layer_with_room_holds_what_transformers_own_holds(counts: list[int]) -> None:
    for ours, theirs in zip(
        filled(PreallocatedLayer(), counts), filled(DynamicLayer(), counts), strict=True
    ):
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)


def test_a_layer_with_room_writes_in_place_and_never_into_a_prefill() -> None:
    layer = PreallocatedLayer()
    prefill, _ = layer.update(*[torch.ones(1, 2, 5, 4)] * 2)
    first, _ = layer.update(*[torch.full((1, 2, 1, 4), 2.0)] * 2)
    second, _ = layer.update(*[torch.full((1, 2, 1, 4), 3.0)] * 2)
    assert first.data_ptr() == second.data_ptr() != prefill.data_ptr()
    layer.keys = layer.keys.clone()  # somebody replaced it: the buffer is not ours to trust
    third, _ = layer.update(*[torch.full((1, 2, 1, 4), 4.0)] * 2)
    assert third[0, 0, :, 0].tolist() == [1, 1, 1, 1, 1, 2, 3, 4]


def test_windows_and_states_keep_their_own_layers() -> None:
    cache = with_room(DynamicCache(config=tiny_model("gemma3_text").config))
    kinds = [type(layer).__name__ for layer in cache.layers]
    assert kinds == ["DynamicSlidingWindowLayer", "DynamicSlidingWindowLayer", "PreallocatedLayer"]
