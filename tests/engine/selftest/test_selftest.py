"""The self-test at load finds what an architecture can't do, and the engine then refuses it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explorer.engine.passes import masks
from explorer.engine.passes.generate import generate
from explorer.engine.selftest import selfcheck, selftest
from explorer.engine.selftest.interventions_test import InterventionTest
from explorer.trace.request import RunRequest, Sampling
from tests.engine.architectures import tiny
from tests.engine.tiny import KINDS, runner_on, tiny_runner

PROMPT = "9 8 7 6 5 4 3 12 13"


@pytest.mark.parametrize("kind", KINDS)
def test_findings_on_working_models(kind: str) -> None:
    runner = tiny_runner(kind)
    selftest.run(runner)
    card = runner.loaded.card
    assert card.offers("capture")
    assert card.offers("causal_off")
    assert card.offers("cache")
    assert card.offers("left_padding")
    windowed = kind not in ("gpt2", "llama")
    assert card.offers("undo") is not windowed
    assert card.offers("right_padding") is not windowed


def test_a_switch_that_does_not_take_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "without_causality", lambda mask_function: mask_function)
    runner = tiny_runner("llama")
    selftest.run(runner)
    assert not runner.loaded.card.offers("causal_off")
    assert "has no effect in layers 0, 1, 2" in runner.loaded.card.words("causal_off")


def test_a_map_that_is_not_the_models_is_found_and_not_drawn() -> None:
    runner = tiny_runner("llama")
    attention = runner.layers[1].self_attn
    forward = attention.forward

    def twisted(*args: Any, **kwargs: Any) -> Any:
        """A layer whose output is not what its kernel was asked for."""
        from explorer.engine.capture import probe

        output = forward(*args, **kwargs)
        if probe._active is not None and probe._active.keep_outputs and probe._active.calls:
            call = probe._active.calls[-1]
            assert call.output is not None
            call.output = call.output + 0.5
        return output

    attention.forward = twisted
    selftest.run(runner)
    assert "layers 1 cannot be obtained exactly" in runner.loaded.card.words("capture")
    kept: list[Any] = []
    generate(
        runner,
        runner.prompt(RunRequest(prompt=PROMPT)),
        (),
        1,
        Sampling,
        lambda s, t: kept.append(s),
    )
    assert [record.kind for record in kept[0].layers] == ["qk", "absent", "qk"]
    assert "differs from the model's own" in kept[0].layers[1].reason


def test_models_that_count_positions_from_their_padding_id_are_given_them_so() -> None:
    runner = runner_on(tiny("camembert"))
    selftest.run(runner)
    assert runner.first_position == runner.model.config.pad_token_id + 1
    steps: list[Any] = []
    generate(
        runner,
        runner.prompt(RunRequest(prompt=PROMPT)),
        (),
        2,
        Sampling,
        lambda s, t: steps.append(s),
    )
    assert steps[0].position_ids == tuple(range(1, 10))
    assert steps[1].position_ids == (10,)


@pytest.mark.parametrize(("kind", "cache"), [("mistral", "fitted"), ("minimax", "own")])
def test_the_kind_of_cache_that_works_is_taken(kind: str, cache: str) -> None:
    runner = runner_on(tiny(kind))
    selftest.run(runner)
    assert runner.loaded.card.offers("cache")
    assert runner.cache.kind == cache


def test_a_cache_that_forgets_what_the_mask_still_shows_is_not_taken() -> None:
    """Moshi's config names a window, which its cache keeps to and its mask does not."""
    runner = runner_on(tiny("moshi"))
    selftest.run(runner)
    assert runner.cache.kind == "plain"


def test_the_models_own_maps_are_not_believed_where_the_kernel_refutes_them() -> None:
    runner = runner_on(tiny("deepseek_v4"))
    selftest.run(runner)
    assert runner.capture.route == "eager"
    assert "layers 1, 3 cannot be obtained exactly" in runner.loaded.card.words("capture")
    assert not runner.loaded.card.offers("causal_off")


def test_a_model_without_pad_token_says_so() -> None:
    import dataclasses

    import msgspec

    runner = tiny_runner("llama")
    card = msgspec.structs.replace(runner.loaded.card, pad_id=None)
    runner.loaded = dataclasses.replace(runner.loaded, card=card)
    selftest.run(runner)
    assert "no padding token" in runner.loaded.card.words("left_padding")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "request_",
    [
        RunRequest(prompt=PROMPT),
        RunRequest(prompt=PROMPT, cache=False),
        RunRequest(prompt=PROMPT, causal_mask=False),
        RunRequest(prompt=PROMPT, padding="left", pad=8),
    ],
)
def test_every_check_passes_on_working_models(kind: str, request_: RunRequest) -> None:
    runner = tiny_runner(kind)
    chosen: list[int] = []
    generate(runner, runner.prompt(request_), (), 4, Sampling, lambda s, t: chosen.append(t.id))
    slots = runner.cache.slots
    found = {check.name: check for check in selfcheck.check(runner, request_, chosen)}
    assert all(check.passed for check in found.values()), found
    wanted = {"kernel_output", "eager_weights", "row_sums"}
    wanted |= (
        {"upper_triangle", "prefix_property", "greedy_equals_generate"}
        if (request_.causal_mask)
        else {"future_visible"}
    )
    wanted |= {"cached_equals_uncached"} if request_.uses_cache else set()
    wanted |= {"padded_equals_alone"} if request_.padding else set()
    assert set(found) == wanted
    assert runner.cache.slots == slots


def test_a_leaking_mask_turns_the_check_red() -> None:
    """A model whose attention sees the future although its mask is on."""
    runner = tiny_runner("llama")
    for layer in runner.layers:
        layer.self_attn.is_causal = False
    found = {c.name: c for c in selfcheck.check(runner, RunRequest(prompt=PROMPT), ())}
    assert not found["upper_triangle"].passed
    assert not found["prefix_property"].passed
    assert not found["eager_weights"].passed
    assert found["kernel_output"].passed  # what is drawn is still what the kernel did


def test_a_wrong_cache_turns_the_check_red(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.cache_utils import DynamicLayer

    from explorer.engine.passes.preallocated_cache import PreallocatedLayer

    def forgetful(update: Any) -> Any:
        def changed(self: Any, key: torch.Tensor, value: torch.Tensor, *a: Any, **k: Any) -> Any:
            return update(self, key, value * (1.5 if key.shape[-2] == 1 else 1), *a, **k)

        return changed

    for layer in (DynamicLayer, PreallocatedLayer):
        monkeypatch.setattr(layer, "update", forgetful(layer.update))
    runner = tiny_runner("llama")
    found = {c.name: c for c in selfcheck.check(runner, RunRequest(prompt=PROMPT), ())}
    assert not found["cached_equals_uncached"].passed
    selftest.run(runner)
    assert not runner.loaded.card.offers("cache")
    assert not runner.caches(RunRequest())


def test_interventions_that_the_cache_does_not_know_of_are_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(InterventionTest, "same_with_cache", lambda self: False)
    runner = tiny_runner("llama")
    selftest.run(runner)
    assert not any(runner.loaded.card.offers(name) for name in selftest.CHANGES)
    assert "with the cache" in runner.loaded.card.words("silence_heads")
    assert runner.loaded.card.offers("cache")


@pytest.mark.parametrize(
    ("kind", "offered", "words"),
    [
        (
            "bert",
            {
                "silence_heads",
                "cut_cells",
                "scale_scores",
                "silence_layers",
                "patch_heads",
                "patch_stream",
            },
            "no layer has",
        ),
        ("bloom", {"silence_layers", "patch_stream"}, "runs in this model's own code"),
        ("mamba", {"silence_layers", "patch_stream"}, "no attention"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_can_not_be_changed_has_a_reason(kind: str, offered: set[str], words: str) -> None:
    runner = runner_on(tiny(kind))
    selftest.run(runner)
    card = runner.loaded.card
    assert {name for name in selftest.CHANGES if card.offers(name)} == offered
    assert any(words in card.words(name) for name in selftest.CHANGES)


def test_the_weights_of_another_model_inside_are_not_taken_for_its_own() -> None:
    """A BLT gives those of its patcher, of the same size; and its config names no layers."""
    runner = runner_on(tiny("blt"))
    selftest.run(runner)
    found = {c.name: c for c in selfcheck.check(runner, RunRequest(prompt=PROMPT), ())}
    assert all(check.passed for check in found.values()), found
    assert {"kernel_output", "eager_weights", "greedy_equals_generate"} <= found.keys()
