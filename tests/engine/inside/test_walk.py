"""A layer stage by stage: each stage recomputed by hand from the one before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.callbacks import nobody
from explorer.engine.errors import BadInput
from explorer.engine.inside.walk import layer_walk
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.inside.walk import LayerWalk, WalkLayer
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.request import RunRequest, Sampling
from tests.engine import architectures
from tests.engine.experiments.batches import PROMPTS, ids_of, runner_of
from tests.engine.tiny import runner_on

TEXT = PROMPTS[4]


def walked(runner: Runner, layer: int = 1, **more: Any) -> LayerWalk:
    asked = WalkLayer(request=RunRequest(prompt=TEXT), layer=layer, **more)
    return layer_walk.walk(runner, asked, nobody)


def numbers(found: LayerWalk) -> dict[str, np.ndarray]:
    return {stage.name: stage.numbers for stage in found.stages if stage.numbers is not None}


def weight(runner: Runner, name: str) -> np.ndarray:
    matrix: np.ndarray = runner.model.get_parameter(f"model.layers.1.{name}").detach().numpy()
    return matrix


LLAMA = (
    "residual stream", "input norm", "Q", "K", "V", "Q after RoPE", "K after RoPE",
    "V of the kernel", "scores", "mask", "softmax", "weights · V", "concat", "W_O", "residual",
    "norm", "gate", "activation", "up", "product", "down", "residual stream after",
)  # fmt: skip


@pytest.mark.parametrize("slot", [1, 9, None])
def test_every_stage_follows_from_the_one_before(slot: int | None) -> None:
    runner = runner_of("llama")
    found = walked(runner, slot=slot)
    assert tuple(stage.name for stage in found.stages) == LLAMA
    assert found.kind == "attention"
    n = numbers(found)
    eps = runner.model.config.rms_norm_eps

    def near(made: Any, name: str) -> None:
        np.testing.assert_allclose(np.ravel(made), n[name].ravel(), rtol=1e-4, atol=1e-5)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        return np.asarray(x / np.sqrt((x**2).mean() + eps) * weight(runner, f"{name}.weight"))

    near(norm(n["residual stream"], "input_layernorm"), "input norm")
    for stage, name in (("Q", "q_proj"), ("K", "k_proj"), ("V", "v_proj")):
        near(weight(runner, f"self_attn.{name}.weight") @ n["input norm"], stage)
    np.testing.assert_allclose(
        np.linalg.norm(n["Q after RoPE"], axis=-1),
        np.linalg.norm(n["Q"].reshape(4, 8), axis=-1),
        rtol=1e-5,
    )
    near(n["V"], "V of the kernel")
    own = n["Q after RoPE"].reshape(2, 2, 8) @ n["K after RoPE"][:, :, None] / np.sqrt(8)
    np.testing.assert_allclose(n["scores"][:, -1], own.ravel(), rtol=1e-4, atol=1e-5)
    masked = n["mask"].astype(np.float64)
    weights = np.exp(masked - masked.max(-1, keepdims=True))
    near(weights / weights.sum(-1, keepdims=True), "softmax")
    near(n["weights · V"], "concat")
    near(weight(runner, "self_attn.o_proj.weight") @ n["concat"], "W_O")
    near(n["residual stream"] + n["W_O"], "residual")
    near(norm(n["residual"], "post_attention_layernorm"), "norm")
    near(weight(runner, "mlp.gate_proj.weight") @ n["norm"], "gate")
    near(weight(runner, "mlp.up_proj.weight") @ n["norm"], "up")
    near(n["gate"] / (1 + np.exp(-n["gate"])), "activation")
    near(n["activation"] * n["up"], "product")
    near(weight(runner, "mlp.down_proj.weight") @ n["product"], "down")
    near(n["residual"] + n["down"], "residual stream after")
    written = {write.name: write.norm for write in found.writes}
    assert written == {
        "self_attn.o_proj": pytest.approx(np.linalg.norm(n["W_O"]), rel=1e-5),
        "mlp.down_proj": pytest.approx(np.linalg.norm(n["down"]), rel=1e-5),
    }
    assert found.residual_gap is not None
    assert found.residual_gap < 2e-5


def test_the_numbers_are_those_that_the_model_computed() -> None:
    runner = runner_of("llama")
    layer, kept = runner.model.model.layers[1], {}
    handles = [
        module.register_forward_hook(
            lambda module, args, output, name=name: kept.__setitem__(name, output[0, 9].numpy())
        )
        for name, module in (("down", layer.mlp.down_proj), ("K", layer.self_attn.k_proj))
    ]
    with torch.inference_mode():
        runner.model(input_ids=torch.tensor([ids_of(TEXT)]))
    for handle in handles:
        handle.remove()
    n = numbers(walked(runner, slot=9))
    for name, by_hand in kept.items():
        np.testing.assert_allclose(n[name], by_hand, rtol=1e-4, atol=1e-5)


def test_through_the_cache_it_is_the_same() -> None:
    runner = runner_of("llama")
    whole = numbers(walked(runner))
    request = RunRequest(prompt=TEXT)
    generate(runner, runner.prompt(request), (), 1, Sampling, lambda *_: None)
    held = runner.cache.slots
    assert held > 1
    cached = numbers(walked(runner))
    assert runner.cache.slots == held  # the run goes on from where it was
    assert cached.keys() == whole.keys()
    for name, one in cached.items():
        np.testing.assert_allclose(one, whole[name], rtol=1e-3, atol=1e-5)


def test_sinks_that_move_are_scored_again_with_the_query_rotated_back() -> None:
    runner = runner_of("llama")
    policy = ContextPolicy(name="sinks", tokens=5, sinks=2, distances="cache")
    request = RunRequest(prompt=TEXT, context=policy)
    found = layer_walk.walk(runner, WalkLayer(request=request, layer=1), nobody)
    named = {stage.name: stage for stage in found.stages}
    assert "position bias" not in named
    assert "keys 0 to 1 scored again" in named["moved sinks"].formula
    n = numbers(found)
    back = found.slot - 4  # the newest of five that are kept stands at 4
    frequencies = 10_000.0 ** (-np.arange(4) / 4)
    one, two = np.split(n["Q after RoPE"].astype(np.float64), 2, axis=-1)
    cos, sin = np.cos(back * frequencies), np.sin(back * frequencies)
    turned = np.concatenate((one * cos + two * sin, two * cos - one * sin), axis=-1)
    plain = found_keys(runner, request)[:2]  # (2, H_kv, d)
    expected = np.einsum("hd,khd->hk", turned, np.repeat(plain, 2, axis=1)) / np.sqrt(8)
    np.testing.assert_allclose(n["moved sinks"][:, :2], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(n["moved sinks"][:, 2:], n["scores"][:, 2:])
    assert np.abs(n["moved sinks"][:, :2] - n["scores"][:, :2]).max() > 1e-3


def found_keys(runner: Runner, request: RunRequest) -> np.ndarray:
    """(T, H_kv, d) that layer 1 scored in the first pass of a run."""
    made: list[Any] = []
    generate(runner, runner.prompt(request), (), 1, Sampling, lambda step, _: made.append(step))
    keys = made[0].layers[1].keys
    assert keys is not None
    return np.asarray(keys)


def names(kind: str, layer: int = 0) -> tuple[dict[str, str], LayerWalk]:
    """What stages there are, with their formulas."""
    runner = runner_on(architectures.tiny(kind), context=architectures.CONTEXT)
    selftest.run(runner)
    found = walked(runner, layer)
    return {stage.name: stage.formula for stage in found.stages}, found


def test_post_norms_a_soft_cap_and_a_window() -> None:
    found = walked(runner_of("gemma2"), 0)
    stages = {stage.name: stage.formula for stage in found.stages}
    assert {"soft cap", "norm after attention", "norm after mlp"} <= stages.keys()
    assert stages["mask"] == "-∞ where hidden: 5 of 23 keys left"


def test_sinks_and_experts() -> None:
    found = walked(runner_of("gpt_oss"), 0)
    stages = {stage.name: stage.formula for stage in found.stages}
    assert stages["sinks"].startswith("one more score")
    assert stages["experts"] == "inside GptOssExperts: not split into its steps"
    assert [one.slot for one in found.experts] == list(range(23))
    router = runner_of("gpt_oss").model.model.layers[0].mlp.router
    assert all(len(one.ids) == 1 and one.ids[0] in (0, 1) for one in found.experts)
    scores = numbers(found)["router"]
    assert found.experts[-1].ids[0] == int(scores.argmax())
    assert len(scores) == router.weight.shape[0]


def test_latents_have_their_names() -> None:
    stages, _ = names("deepseek_v3")
    assert {"latent Q", "Q from its latent", "latent K and V", "K and V from their latent"} <= set(
        stages
    )


def test_a_recurrent_layer_has_a_state_of_fixed_size() -> None:
    stages, found = names("mamba")
    assert found.kind == "mixer"
    sizes = {stage.name: stage.shape for stage in found.stages if stage.name.startswith("state")}
    assert sizes == {"state: conv_states": (128, 4), "state: recurrent_states": (128, 16)}
    assert "scores" not in stages


def test_a_gate_on_the_heads_is_said() -> None:
    stages, _ = names("qwen3_next", 1)
    assert "gate" in stages["gated heads"]
    assert stages["Q norm"].endswith("over 16 numbers")


def test_a_layer_without_a_sum_gives_the_reason() -> None:
    _, found = names("bert")
    assert found.residual_gap is None
    assert "no outputs" in found.residual_reason
    assert found.writes == ()


def test_what_does_not_exist_is_refused() -> None:
    runner = runner_of("llama")
    with pytest.raises(BadInput, match="no layer 3"):
        walked(runner, 3)
    with pytest.raises(BadInput, match="no position 23"):
        walked(runner, slot=23)
