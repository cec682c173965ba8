"""The stages against transformers itself: its modules' outputs, its own rotation, its own states.

Nothing of the walk's machinery is used here: plain hooks on a plain call of the model.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from explorer.engine.callbacks import nobody
from explorer.engine.inside.walk import layer_walk
from explorer.engine.inside.walk.rotation import found_turn
from explorer.engine.loading import loading
from explorer.engine.passes import chunked_prefill
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import selftest
from explorer.trace.inside.walk import LayerWalk, WalkLayer, pair_places
from explorer.trace.request import RunRequest
from tests.engine import architectures
from tests.engine.experiments.batches import PROMPTS, ids_of, runner_of
from tests.engine.tiny import KINDS, runner_on

TEXT = PROMPTS[4]
SLOT = 17
COPYCAT = "one two three one two three one two"


@cache
def ready(kind: str) -> Runner:
    """A tested model of this type; copycat is the bundled one."""
    if kind in KINDS:
        return runner_of(kind)
    if kind == "copycat":
        runner = Runner(loading.load("copycat", "float32", "cpu", nobody))
    else:
        model = architectures.tiny(kind)
        for name, one in model.named_parameters():
            if kind == "qwen3_next" and name.endswith("A_log"):
                one.data.fill_(-1.5)  # so that something of a state is kept
        runner = runner_on(model, context=architectures.CONTEXT)
    selftest.run(runner)
    return runner


def text_of(kind: str) -> tuple[str, int]:
    return (COPYCAT, 6) if kind == "copycat" else (TEXT, SLOT)


def walked(kind: str, layer: int, slot: int | None = None) -> LayerWalk:
    text, at = text_of(kind)
    asked = WalkLayer(
        request=RunRequest(prompt=text), layer=layer, slot=at if slot is None else slot
    )
    return layer_walk.walk(ready(kind), asked, nobody)


def numbers(found: LayerWalk) -> dict[str, np.ndarray]:
    return {stage.name: stage.numbers for stage in found.stages if stage.numbers is not None}


@torch.inference_mode()
def hooked(kind: str, layer: int) -> tuple[dict[str, np.ndarray], Any]:
    """(what each module of a layer gave, all its tokens, and the model's own answer)."""
    runner, (text, _) = ready(kind), text_of(kind)
    ids = ids_of(text) if kind != "copycat" else runner.prompt(RunRequest(prompt=text)).layout.ids
    module, kept, handles = runner.layers[layer], {}, []
    for name, inner in module.named_modules():

        def keep(_: Any, args: Any, output: Any, name: str = name) -> None:
            first = output[0] if isinstance(output, tuple) else output
            if isinstance(first, torch.Tensor):
                kept[name] = first.clone()

        handles.append(inner.register_forward_hook(keep))
    answer = runner.model(input_ids=torch.tensor([ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    return kept, answer


def row(tensor: torch.Tensor, slot: int, size: int) -> np.ndarray:
    """What a module gave for one token, wherever it keeps its tokens."""
    for axis in range(tensor.ndim):
        one = tensor.select(axis, slot) if tensor.shape[axis] > slot else None
        if one is not None and one.numel() == size:
            return np.ravel(one.numpy())
    raise AssertionError(tuple(tensor.shape))


@pytest.mark.parametrize(
    ("kind", "layer"),
    [("copycat", 0), ("copycat", 1), ("gpt_oss", 0), ("gemma2", 1), ("gpt_neox", 1), ("mamba", 1),
     ("qwen3_next", 0), ("qwen3_next", 1)],
)  # fmt: skip
def test_every_module_stage_is_what_that_module_gave(kind: str, layer: int) -> None:
    kept, _ = hooked(kind, layer)
    found, (_, slot) = walked(kind, layer), text_of(kind)
    seen = 0
    for stage in found.stages:
        if stage.module and stage.numbers is not None:
            by_hand = row(kept[stage.module], slot, stage.numbers.size)
            scale = float(np.abs(by_hand).max())
            np.testing.assert_allclose(
                np.ravel(stage.numbers), by_hand, atol=2e-5 * scale, err_msg=stage.name
            )
            seen += 1
    assert seen >= 4
    after = row(kept[""], slot, found.stages[-1].shape[0])
    np.testing.assert_allclose(found.stages[-1].numbers, after, rtol=1e-4, atol=1e-5)
    assert max(stage.gap or 0 for stage in found.stages) < 2e-4


@pytest.mark.parametrize("kind", ["copycat", "gemma2", "gpt_oss"])
def test_the_weights_are_those_of_eager_attention(kind: str) -> None:
    runner, (text, slot) = ready(kind), text_of(kind)
    ids = ids_of(text) if kind != "copycat" else runner.prompt(RunRequest(prompt=text)).layout.ids
    runner.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            own = runner.model(input_ids=torch.tensor([ids]), output_attentions=True)
    finally:
        runner.model.set_attn_implementation(runner.loaded_attention)
    stage = next(one for one in walked(kind, 0).stages if one.name == "softmax")
    assert stage.first_key == 0
    eager = own.attentions[0][0, :, slot, : slot + 1].numpy()
    assert stage.numbers is not None
    np.testing.assert_allclose(stage.numbers, eager, atol=1e-5)


@torch.inference_mode()
def test_the_pairs_turn_as_transformers_turns_them() -> None:
    runner = ready("llama")
    found = walked("llama", 1)
    n, turn = numbers(found), next(s.turn for s in found.stages if s.name == "Q after RoPE")
    assert turn is not None
    assert (turn.pairing, turn.start, turn.position, turn.pairs) == ("halves", 0, SLOT, 4)
    query = torch.tensor(n["Q"].copy()).reshape(1, 4, 1, 8)
    key = torch.tensor(n["K"].copy()).reshape(1, 2, 1, 8)
    cos, sin = runner.model.model.rotary_emb(query, torch.tensor([[SLOT]]))
    turned = apply_rotary_pos_emb(query, key, cos, sin)
    for name, own in zip(("Q after RoPE", "K after RoPE"), turned, strict=True):
        np.testing.assert_allclose(n[name], own[0, :, 0].numpy(), rtol=1e-4, atol=1e-6)
    table = turn.by_position
    assert table is not None
    np.testing.assert_allclose(table, 10000.0 ** (-np.arange(4) / 4), rtol=1e-6)
    whole = np.exp(1j * SLOT * table.astype(np.float64))
    np.testing.assert_allclose(np.exp(1j * turn.measured), whole, atol=1e-4)


def test_every_way_to_pair_numbers_is_found_and_a_wrong_one_is_not() -> None:
    rng = np.random.default_rng(5)
    angles = np.array([0.9, 0.2, 0.01])
    for pairing, start in (("halves", 0), ("neighbours", 2), ("neighbours to halves", 2)):
        old = rng.standard_normal((3, 8)).astype(np.float32)
        new = old.copy()
        was, now = pair_places(pairing, start, 3)  # type: ignore[arg-type]
        turned = (old[:, was[0]] + 1j * old[:, was[1]]) * np.exp(1j * angles)
        new[:, now[0]], new[:, now[1]] = turned.real, turned.imag
        found = found_turn(old, new, 9, [angles / 9])
        assert found is not None
        assert (found.pairing, found.start, found.pairs) == (pairing, start, 3)
        np.testing.assert_allclose(found.measured, angles, atol=1e-5)
        assert found.by_position is not None
        other = found_turn(old, new, 10, [angles / 9])
        assert other is not None
        assert other.by_position is None  # not at this position
        assert found_turn(old, new + 0.01 * old**2, 9, [angles / 9]) is None
    assert found_turn(old, old, 0, [angles]) is None


@pytest.mark.parametrize("kind", ["phi3", "gpt_neox", "gpt2"])
def test_one_projection_for_all_three_is_taken_apart(kind: str) -> None:
    found = walked(kind, 1)
    names = [stage.name for stage in found.stages]
    place = names.index("Q, K and V in one")
    assert names[place + 1 : place + 4] == ["Q", "K", "V"]
    n = numbers(found)
    fused = n["Q, K and V in one"]
    if kind == "gpt_neox":  # a head after the other, each with all three
        parts = fused.reshape(4, 3, 16).transpose(1, 0, 2)
    elif kind == "phi3":
        parts = np.split(fused.reshape(-1, 16), [4, 6])
    else:
        parts = fused.reshape(3, 4, 8)
    for name, by_hand in zip(("Q", "K", "V"), parts, strict=True):
        np.testing.assert_array_equal(n[name], by_hand)
    assert ("Q after RoPE" in names) == (kind != "gpt2")
    if kind == "phi3":
        formula = next(stage.formula for stage in found.stages if stage.name == "product")
        assert "second half of gate and up in one" in formula


def test_latents_are_split_into_a_part_for_content_and_one_for_position() -> None:
    found = walked("deepseek_v3", 1)
    n = numbers(found)
    np.testing.assert_array_equal(n["latent"], n["latent K and V"][:24])
    np.testing.assert_array_equal(n["K for position"], n["latent K and V"][24:])
    turn = next(stage.turn for stage in found.stages if stage.name == "K after RoPE")
    assert turn is not None
    assert (turn.pairing, turn.start, turn.pairs) == ("neighbours to halves", 16, 4)
    np.testing.assert_array_equal(n["K after RoPE"][:, :16], n["K of both"][:, :16])
    assert (
        len({tuple(one) for one in n["K after RoPE"][:, 16:].tolist()}) == 1
    )  # all heads share it


def test_a_decay_that_is_measured_is_the_one_that_the_formula_gives() -> None:
    found, layer = walked("mamba", 1), ready("mamba").layers[1]
    n, mixer = numbers(found), layer.mixer
    with torch.inference_mode():
        time = torch.tensor(n["mixer.x_proj"][: mixer.time_step_rank].copy())
        step = softplus(mixer.dt_proj(time))
        decay = torch.exp(-torch.exp(mixer.A_log) * step[:, None]).numpy()
    np.testing.assert_allclose(n["decay: recurrent_states"], decay, atol=1e-5)
    before = numbers(walked("mamba", 1, slot=SLOT - 1))["state: recurrent_states"]
    made = decay * before + n["write: recurrent_states"]
    np.testing.assert_allclose(n["state: recurrent_states"], made, atol=1e-5)


def test_a_layer_with_both_shows_its_state_and_its_attention_where_they_belong() -> None:
    names = [stage.name for stage in walked("falcon_h1", 1).stages]
    parts = ("mamba.in_proj", "decay: recurrent_states", "mamba.out_proj", "Q", "scores", "W_O")
    places = [names.index(name) for name in parts]
    assert places == sorted(places)


def test_norms_of_whole_queries_and_a_block_without_norms_before_its_parts() -> None:
    names = [stage.name for stage in walked("olmo2", 1).stages]
    assert names[1:6] == ["Q", "Q norm", "K", "K norm", "V"]
    assert {"Q after RoPE", "K after RoPE", "norm after attention", "norm after mlp"} < set(names)
    assert names.count("residual") == 1


def test_a_model_that_gives_its_weights_alone_shows_those() -> None:
    found = walked("bloom", 1)
    stage = next(one for one in found.stages if one.name == "softmax")
    assert stage.formula == "attention weights, as the model itself gave them"
    assert stage.numbers is not None
    np.testing.assert_allclose(stage.numbers.sum(-1), 1, rtol=1e-5)
    assert stage.shape == (4, SLOT + 1)


def test_a_delta_rule_multiplies_each_heads_state_by_a_matrix() -> None:
    found, layer = walked("qwen3_next", 0), ready("qwen3_next").layers[0].linear_attn
    n = numbers(found)
    matrix, written = n["decay: recurrent_states"], n["write: recurrent_states"]
    heads = layer.num_v_heads
    both = torch.tensor(n["linear_attn.in_proj_ba"].copy()).reshape(layer.num_k_heads, 2, -1)
    with torch.inference_mode():
        share = both[:, 0].reshape(heads).sigmoid().numpy()
        given = softplus(both[:, 1].reshape(heads) + layer.dt_bias)
        kept = torch.exp(-layer.A_log.exp() * given).numpy()
    for head in range(heads):
        values = np.sort(np.linalg.eigvalsh((matrix[head] + matrix[head].T) / 2))
        assert kept[head] > 0.3
        np.testing.assert_allclose(values[1:], kept[head], rtol=1e-3)
        np.testing.assert_allclose(values[0], kept[head] * (1 - share[head]), rtol=1e-2)
        sizes = np.linalg.svd(written[head], compute_uv=False)
        assert sizes[1] < 1e-3 * sizes[0]  # one key times one value
    names = [stage.name for stage in found.stages]
    assert names.index("state: recurrent_states") < names.index("linear_attn.out_proj")


def test_the_load_of_experts_counts_every_chunk_of_a_long_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = walked("gpt_oss", 1).experts
    assert [one.slot for one in whole] == list(range(SLOT + 1))
    monkeypatch.setattr(chunked_prefill, "CHUNK", 5)
    assert ready("gpt_oss").in_chunks
    chunked = walked("gpt_oss", 1).experts
    assert [(one.slot, one.ids) for one in chunked] == [(one.slot, one.ids) for one in whole]
