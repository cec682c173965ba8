"""A cache that evicts: what is left of it, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.llama.modeling_llama import rotate_half

from explorer.engine.errors import BadInput, EngineError
from explorer.engine.experiments import read_position
from explorer.engine.passes import chunked_prefill, interventions
from explorer.engine.passes.generate import generate, one_step
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selfcheck, selftest
from explorer.figures.attention import head_weights
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.attention.maps import full_map
from explorer.figures.attention.mask_pair import Side, without_mask
from explorer.figures.cost import kv_strips
from explorer.trace.experiments import EVICTED, GONE, LEFT_OUT, ReadSlot
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.interventions.kinds import Cells
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import largest
from explorer.trace.trace import Trace
from explorer.trace.wire.validate import require_sound
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_model

PROMPT = tuple(range(5, 25))
STEPS = 12
SINKS = ContextPolicy(name="sinks", tokens=8, sinks=3)
WINDOW = ContextPolicy(name="window", tokens=8)

pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers' modelling code


@pytest.fixture(scope="module")
def runner() -> Runner:
    made = runner_on(tiny_model("llama", max_position_embeddings=128))
    selftest.run(made)
    return made


def request_of(ids: tuple[int, ...], **more: Any) -> RunRequest:
    return RunRequest(prompt=" ".join(map(str, ids)), **more)


def run(runner: Runner, request: RunRequest, steps: int = STEPS, reuse: bool = False) -> Trace:
    prompt = runner.prompt(request)
    found = [Trace(request=request, card=runner.loaded.card, prompt=prompt.tokens)]
    generate(
        runner, prompt, (), steps, Sampling,
        lambda step, token: found.append(found[-1].appended(step, token)), reuse=reuse,
    )  # fmt: skip
    require_sound(found[-1])
    return found[-1]


def by_the_model(runner: Runner, ids: list[int], policy: ContextPolicy) -> Any:
    """(logits (V,), maps (L, H, T, T)) of the model's own eager pass, with a mask made here."""
    place = np.arange(len(ids))
    back = place[:, None] - place[None]
    seen = (back >= 0) & ((back < policy.tokens - policy.sinks) | (place[None] < policy.sinks))
    mask = torch.where(torch.from_numpy(seen), 0.0, torch.finfo(torch.float32).min)[None, None]
    before = runner.model.config._attn_implementation
    runner.model.set_attn_implementation("eager")
    with torch.inference_mode():
        out = runner.model(torch.tensor([ids]), attention_mask=mask, output_attentions=True)
    runner.model.set_attn_implementation(before)
    return out.logits[0, -1].numpy(), torch.stack(out.attentions)[:, 0].numpy()


@pytest.mark.parametrize("policy", [WINDOW, SINKS, ContextPolicy(name="sinks", tokens=2, sinks=1)])
@pytest.mark.parametrize("chunk", [0, 7])
def test_an_evicting_cache_equals_the_models_own_mask(
    runner: Runner, policy: ContextPolicy, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chunk:
        monkeypatch.setattr(chunked_prefill, "WHOLE", 8)
        monkeypatch.setattr(chunked_prefill, "CHUNK", chunk)
    trace = run(runner, request_of(PROMPT, context=policy))
    full = run(runner, request_of(PROMPT))
    ids = [token.id for token in trace.tokens]
    for index, step in enumerate(trace.steps):
        expected, maps = by_the_model(runner, ids[: len(PROMPT) + index], policy)
        assert largest(step.logits - expected) < 1e-4
        if index in (0, STEPS - 1):
            for layer in range(len(step.layers)):
                found = full_map(trace, index, layer, 1)
                assert largest(found.weights - maps[layer, 1]) < 1e-5
    size = full.steps[0].cache_bytes // len(PROMPT)
    assert [step.cache_bytes for step in trace.steps] == [policy.tokens * size] * STEPS
    assert full.steps[-1].cache_bytes == (len(PROMPT) + STEPS - 1) * size


def test_evicted_slots_are_not_there_in_the_maps(runner: Runner) -> None:
    trace = run(runner, request_of(PROMPT, context=SINKS))
    found = full_map(trace, STEPS - 1, 1, 0)
    slots = len(PROMPT) + STEPS - 1
    row = found.kinds[slots - 1]
    gone = SINKS.forgotten(slots)
    assert set(np.flatnonzero(row == ABSENT).tolist()) == set(gone)
    assert (row[:3] == READ).all()
    assert (row[-5:] == READ).all()
    assert (found.kinds[len(PROMPT) - 1, 3:15] == MASKED).all(), "the prefill saw them, masked"


def test_undo_branch_and_reuse_stay_exact(runner: Runner) -> None:
    request = request_of(PROMPT, context=SINKS)
    trace = run(runner, request)
    for index in (STEPS - 1, STEPS - 2, 3):
        chosen = trace.chosen_ids[:index]
        again = one_step(runner, request, runner.layout(request, chosen), index, Sampling())
        assert largest(again.logits - trace.steps[index].logits) < 1e-5
        other = (*chosen[:-1], 40)
        branch = one_step(runner, request, runner.layout(request, other), index, Sampling())
        expected, _ = by_the_model(runner, [*PROMPT, *other], SINKS)
        assert largest(branch.logits - expected) < 1e-4
    run(runner, request)
    longer = request_of((*PROMPT, *trace.chosen_ids[: STEPS - 1], 50, 51), context=SINKS)
    reused = run(runner, longer, 3, reuse=True)
    assert reused.reused_tokens == len(PROMPT) + STEPS - 1
    fresh = run(runner, longer, 3)
    for one, two in zip(reused.steps, fresh.steps, strict=True):
        assert largest(one.logits - two.logits) < 1e-5
    mine, whole = (full_map(one, 2, 1, 0).weights for one in (reused, fresh))
    assert largest(mine[reused.reused_tokens :] - whole[reused.reused_tokens :]) < 1e-5


def test_cells_of_the_user_are_found_among_the_keys_that_are_left(runner: Runner) -> None:
    cut = (Cells(layer=1, head=0, keys=(1, 1)), Cells(keys=(26, 26)))
    request = request_of(PROMPT, context=SINKS, interventions=cut)
    cached = run(runner, request)
    chosen = cached.chosen_ids[: STEPS - 1]
    without = request_of(PROMPT, context=SINKS, interventions=cut, cache=False)
    whole = one_step(runner, without, runner.layout(without, chosen), STEPS - 1, Sampling())
    assert largest(cached.steps[-1].logits - whole.logits) < 1e-4
    assert full_map(cached, STEPS - 1, 1, 0).weights[-1, 1] == 0
    assert full_map(cached, STEPS - 1, 1, 1).weights[-1, 1] > 0
    assert (full_map(cached, STEPS - 1, 2, 1).weights[27:, 26] == 0).all()


def test_the_self_check_knows_the_policy(runner: Runner) -> None:
    request = request_of(PROMPT, context=SINKS)
    trace = run(runner, request)
    checks = {one.name: one for one in selfcheck.check(runner, request, trace.chosen_ids)}
    assert all(one.passed for one in checks.values())
    assert {"cached_equals_uncached", "cut_cells", "eager_weights"} <= checks.keys()
    run(runner, request_of(PROMPT))  # the cache is another run's meanwhile
    assert all(one.passed for one in selfcheck.check(runner, request, trace.chosen_ids))


def test_a_position_is_read_where_it_lies(runner: Runner) -> None:
    request = request_of(PROMPT, context=SINKS)
    trace = run(runner, request)
    chosen, last = trace.chosen_ids[: STEPS - 1], len(PROMPT) + STEPS - 2
    full = run(runner, request_of(PROMPT, context=ContextPolicy(name="sinks", tokens=99, sinks=3)))

    def read(policy: RunRequest, slot: int) -> Any:
        asked = ReadSlot(request=policy, chosen=chosen, slot=slot)
        return read_position.read(runner, asked, lambda *_: None).layers[0]

    for slot in (1, last):  # of the first layer, which no mask changes
        assert read(request, slot) == read(request_of(PROMPT, context=full.request.context), slot)
    assert read(request, 10).reason == EVICTED


def test_a_position_is_read_off_the_cache_of_its_own_run(runner: Runner) -> None:
    plain, policy = request_of(PROMPT), request_of(PROMPT, context=WINDOW)

    def read(request: RunRequest, slot: int) -> Any:
        asked = ReadSlot(request=request, slot=slot)
        return read_position.read(runner, asked, lambda *_: None).layers[1]

    own = read(plain, 19)
    after_another = read(policy, 19)
    runner.cache.drop()
    alone = read(policy, 19)
    assert after_another == alone, "the same tokens, read under another policy"
    assert alone != own
    assert read(plain, 5).reason == ""
    assert read(policy, 5).reason == EVICTED


def test_a_position_is_read_where_it_stands_after_turns_were_left_out(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = (*PROMPT[:3], *PROMPT[8:])
    whole, asked = request_of(PROMPT), ReadSlot(request=request_of(PROMPT), slot=9)
    alone = ReadSlot(request=request_of(rest), slot=4)
    runner.cache.drop()
    expected = read_position.read(runner, alone, lambda *_: None).layers
    left_out = runner.layout(whole, ()).without(3, 8, 0)
    monkeypatch.setattr(runner, "layout", lambda *_: left_out)
    runner.cache.drop()
    assert read_position.read(runner, asked, lambda *_: None).layers == expected
    gone = read_position.read(runner, ReadSlot(request=whole, slot=3), lambda *_: None)
    assert {layer.reason for layer in gone.layers} == {LEFT_OUT}
    with pytest.raises(BadInput, match="has 20 so far"):
        read_position.read(runner, ReadSlot(request=whole, slot=20), lambda *_: None)


@pytest.mark.parametrize("policy", [SINKS, WINDOW])
def test_no_keys_are_shown_of_a_slot_that_was_evicted_before_the_run(
    runner: Runner, policy: ContextPolicy
) -> None:
    run(runner, request_of(PROMPT, context=policy), 1)
    reused = run(runner, request_of((*PROMPT, 50, 51), context=policy), 1, reuse=True)
    assert reused.reused_tokens == len(PROMPT)
    gone = kv_strips.keys_at(reused, 0, 10)
    assert set(gone.layers) == {None}
    assert set(gone.reasons) == {EVICTED}
    assert all(part is not None and part.any() for part in kv_strips.keys_at(reused, 0, 19).layers)


def test_a_key_that_a_models_own_window_dropped_before_the_run_is_said_to_be_gone() -> None:
    sliding = runner_on(tiny_model("mistral"))
    selftest.run(sliding)
    run(sliding, request_of(PROMPT), 1)
    reused = run(sliding, request_of((*PROMPT, 50, 51)), 1, reuse=True)
    assert reused.reused_tokens == len(PROMPT)
    gone = kv_strips.keys_at(reused, 0, 10)
    assert set(gone.layers) == {None}
    assert set(gone.reasons) == {GONE}
    kept = kv_strips.keys_at(reused, 0, len(PROMPT)).layers
    assert all(part is not None for part in kept)


@pytest.mark.parametrize("policy", [SINKS, WINDOW])
def test_the_cache_holds_what_the_policy_keeps(runner: Runner, policy: ContextPolicy) -> None:
    trace = run(runner, request_of(PROMPT, context=policy), 3)
    held = runner.cache.live.layers[1].keys.shape[2]
    assert [step.cache_tokens for step in trace.steps] == [held] * 3 == [policy.tokens] * 3
    short = run(runner, request_of(PROMPT[:5], context=policy), 1)
    assert short.steps[0].cache_tokens == 5
    masks_only = runner_on(tiny_model("mistral", max_position_embeddings=128))
    selftest.run(masks_only)
    assert run(masks_only, request_of(PROMPT, context=policy), 1).steps[0].cache_tokens == 20


@pytest.mark.parametrize(
    "changes",
    [{"context": WINDOW}, {"context": SINKS}, {"interventions": (Cells(keys=(4, 6)),)}],
    ids=["window", "sinks", "cells"],
)
def test_without_its_mask_a_run_keeps_its_other_cells_cut(
    runner: Runner, changes: dict[str, Any]
) -> None:
    trace = run(runner, request_of(PROMPT, **changes), 4)
    dropped = without_mask(Side(trace, 3))
    ids = tuple(token.id for token in trace.tokens[: trace.read_slots(3)])
    real = run(runner, request_of(ids, causal_mask=False, **changes), 1)
    for head in range(trace.steps[0].layers[0].heads):
        mine, model = full_map(dropped.trace, 0, 0, head), full_map(real, 0, 0, head)
        assert largest(mine.weights - model.weights) < 1e-5
        np.testing.assert_array_equal(mine.kinds, model.kinds)


@pytest.mark.parametrize("kind", ["mistral", "jamba"])
def test_windows_and_states_of_a_model_stay(kind: str) -> None:
    made = tiny_model(kind, max_position_embeddings=128) if kind == "mistral" else tiny(kind)
    runner = runner_on(made)
    selftest.run(runner)
    assert not runner.loaded.card.offers("evict")
    assert "windows or states of its own" in runner.loaded.card.words("evict")
    request = request_of(PROMPT, context=WINDOW)
    cached = run(runner, request, 4)
    chosen = cached.chosen_ids[:3]
    without = request_of(PROMPT, context=WINDOW, cache=False)
    whole = one_step(runner, without, runner.layout(without, chosen), 3, Sampling())
    assert largest(cached.steps[3].logits - whole.logits) < 1e-4


def by_hand(model: Any, ids: list[int], policy: ContextPolicy) -> tuple[Any, Any]:
    """(logits (V,), last layer's map (H, T, T)) with distances to the sinks among what is kept.

    Each query is rotated by its distance to each key, and the key not at all.
    """
    base, config = model.model, model.config
    heads, kv_heads, width = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    count = len(ids)
    back = torch.arange(count)[:, None] - torch.arange(count)[None]
    sinks = (torch.arange(count) < policy.sinks)[None].expand(count, -1)
    seen = (back >= 0) & ((back < policy.last) | sinks)
    most = policy.sinks + policy.last - 1
    moved = torch.arange(count).clamp(max=most)[:, None] - torch.arange(count)[None]
    distance = torch.where(sinks, moved, back)
    stream = base.embed_tokens(torch.tensor([ids]))
    cos, sin = base.rotary_emb(stream, torch.arange(count)[None])
    for layer in base.layers:
        own, normed = layer.self_attn, layer.input_layernorm(stream)
        q = own.q_proj(normed).view(count, heads, width).transpose(0, 1)
        k = own.k_proj(normed).view(count, kv_heads, width).transpose(0, 1)
        v = own.v_proj(normed).view(count, kv_heads, width).transpose(0, 1)
        k, v = (part.repeat_interleave(heads // kv_heads, 0) for part in (k, v))
        scores = torch.full((heads, count, count), -torch.inf)
        for away in range(count):
            turned = q * cos[0, away] + rotate_half(q) * sin[0, away]
            here = seen & (distance == away)
            scores[:, here] = (turned @ k.transpose(1, 2))[:, here] * own.scaling
        weights = scores.softmax(-1)
        mixed = (weights @ v).transpose(0, 1).reshape(1, count, heads * width)
        stream = stream + own.o_proj(mixed)
        stream = stream + layer.mlp(layer.post_attention_layernorm(stream))
    return model.lm_head(base.norm(stream))[0, -1], weights


@pytest.mark.parametrize("chunk", [0, 7])
def test_distances_counted_in_the_cache_go_on_past_the_context(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if chunk:
        monkeypatch.setattr(chunked_prefill, "WHOLE", 8)
        monkeypatch.setattr(chunked_prefill, "CHUNK", chunk)
    model = tiny_model("llama", max_position_embeddings=24)
    runner = runner_on(model, context=24)
    selftest.run(runner)
    assert runner.loaded.card.offers("sink_distances")
    policy = ContextPolicy(name="sinks", tokens=8, sinks=3, distances="cache")
    request = request_of(PROMPT, context=policy)
    trace = run(runner, request)
    assert len(trace.steps) == STEPS
    assert trace.read_slots(STEPS - 1) > runner.loaded.card.context
    text = run(runner, request_of(PROMPT, context=SINKS), 3)
    assert largest(trace.steps[0].logits - text.steps[0].logits) > 1e-2, "something else"
    for index in (0, 1, STEPS - 1):
        ids = [*PROMPT, *trace.chosen_ids[:index]]
        with torch.inference_mode():
            logits, weights = by_hand(model, ids, policy)
        assert largest(trace.steps[index].logits - logits.numpy()) < 1e-4
        last = len(model.model.layers) - 1
        assert largest(full_map(trace, index, last, 1).weights - weights[1].numpy()) < 1e-5
        rows = dict(head_rows(trace, index, last))
        for head, row in rows.items():
            assert largest(row - weights[head, -1].numpy()) < 1e-5
    checks = {one.name: one for one in selfcheck.check(runner, request, trace.chosen_ids[:3])}
    assert all(one.passed for one in checks.values())
    assert "cached_equals_uncached" in checks
    again = one_step(runner, request, runner.layout(request, trace.chosen_ids[:4]), 4, Sampling())
    assert largest(again.logits - trace.steps[4].logits) < 1e-5


def head_rows(trace: Trace, index: int, layer: int) -> Iterator[tuple[int, np.ndarray]]:
    """The newest row of every head, worked out for all heads at once."""
    for _, group in head_weights.groups(trace, index, [layer], trace.read_slots(index) - 1):
        block = group[0]
        columns = slice(0, block.columns)
        found = head_weights.weights_of_heads(group, block.rows, columns)
        yield from enumerate(found[0, :, -1])


@pytest.mark.parametrize(("kind", "evicts"), [("gpt2", True), ("gptj", True), ("bloom", False)])
def test_distances_stay_where_keys_are_not_rotated(kind: str, evicts: bool) -> None:
    runner = runner_on(tiny(kind))  # of the first two, no position is further than the context
    selftest.run(runner)
    card = runner.loaded.card
    assert not card.offers("sink_distances")
    assert runner.rotation is None
    assert (card.offers("evict"), runner.evicts) == (evicts, evicts)
    assert ("not rotated" if evicts else "evicts nothing") in card.words("sink_distances")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"context": WINDOW, "causal_mask": False}, "needs the causal mask"),
        ({"context": SINKS, "causal_mask": False}, "needs the causal mask"),
        ({"context": SINKS, "padding": "left", "pad": 2}, "first slots may be padding"),
        ({"context": WINDOW, "padding": "right", "pad": 2}, "with right padding"),
    ],
)
def test_what_does_not_go_with_a_policy_is_refused(
    runner: Runner, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        interventions.require_fit(runner, request_of(PROMPT, **changes))


def test_left_padding_takes_up_no_room_in_a_window(runner: Runner) -> None:
    request = request_of(PROMPT, context=WINDOW, padding="left", pad=6)
    interventions.require_fit(runner, request)
    padded, plain = run(runner, request, 3), run(runner, request_of(PROMPT, context=WINDOW), 3)
    for one, two in zip(padded.steps, plain.steps, strict=True):
        assert largest(one.logits - two.logits) < 1e-4


def test_a_refusal_names_the_policy_and_no_cut() -> None:
    bloom = runner_on(tiny("bloom"))
    selftest.run(bloom)
    with pytest.raises(BadInput, match="A sliding window is not possible here") as refused:
        interventions.require_fit(bloom, request_of(PROMPT, context=WINDOW))
    assert "cut" not in refused.value.sentence.split(":")[0]
    assert "can't be limited" in bloom.loaded.card.words("evict")


def test_a_cache_whose_test_fails_evicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> float:
        raise EngineError("no")

    monkeypatch.setattr(measured_gaps, "cached_gap", failing)
    runner = runner_on(tiny_model("llama", max_position_embeddings=128))
    selftest.run(runner)
    assert (runner.loaded.card.offers("evict"), runner.evicts) == (False, False)
    assert runner.loaded.card.offers("cache")
