"""Passes: caches, stepping back, padding, limits; against runs without a cache and generate()."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from explorer.engine.capture.timed_parts import parts_of
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.engine.passes.generate import generate
from explorer.engine.passes.layout import lay_out
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selftest
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Step, Token
from tests.engine.architectures import tiny
from tests.engine.tiny import KINDS, runner_on, tiny_runner

PROMPT = " ".join(str(3 + 5 * i % 89) for i in range(8))


@pytest.fixture(scope="module", params=["gpt2", "llama", "gemma3_text", "gpt_oss"])
def runner(request: pytest.FixtureRequest) -> Runner:
    made = tiny_runner(request.param)
    selftest.run(made)
    return made


def steps_of(
    runner: Runner,
    request: RunRequest,
    count: int,
    chosen: tuple[int, ...] = (),
    sampling: Sampling | None = None,
) -> list[tuple[Step, Token]]:
    found: list[tuple[Step, Token]] = []
    generate(
        runner,
        runner.prompt(request),
        chosen,
        count,
        lambda: sampling or Sampling(),
        lambda s, t: found.append((s, t)),
    )
    return found


def test_greedy_equals_generate(runner: Runner) -> None:
    runner.cache.drop()
    ours = [t.id for _, t in steps_of(runner, RunRequest(prompt=PROMPT), 8)]
    theirs = measured_gaps.generated(runner, runner.layout(RunRequest(prompt=PROMPT), ()), 8)
    assert ours == theirs


@pytest.mark.parametrize("kind", ["granitemoe", "granitemoehybrid", "llama"])
def test_a_pass_without_a_cache_makes_none(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where `use_cache` is not among the arguments that the model names."""
    made: list[object] = []
    monkeypatch.setattr(DynamicCache, "update", lambda *_, **__: made.append(_))
    runner = runner_on(tiny(kind))
    steps_of(runner, RunRequest(prompt=PROMPT, cache=False), 1)
    assert made == []


def test_no_cache_gives_the_same_tokens_and_processes_more(runner: Runner) -> None:
    cached = steps_of(runner, RunRequest(prompt=PROMPT), 5)
    alone = steps_of(runner, RunRequest(prompt=PROMPT, cache=False), 5)
    assert [t for _, t in cached] == [t for _, t in alone]
    assert [s.positions_processed for s, _ in cached] == [8, 1, 1, 1, 1]
    assert [s.positions_processed for s, _ in alone] == [8, 9, 10, 11, 12]
    for (one, _), (two, _) in zip(cached, alone, strict=True):
        np.testing.assert_allclose(one.logits, two.logits, atol=1e-4)
    assert all(s.cache_bytes == 0 and s.cache_tokens == 0 for s, _ in alone)


def test_ten_forward_six_back_six_forward(runner: Runner) -> None:
    request = RunRequest(prompt=PROMPT)
    whole = steps_of(runner, request, 10)
    kept = tuple(t.id for _, t in whole[:4])
    again = steps_of(runner, request, 6, kept)
    for (one, a), (two, b) in zip(whole[4:], again, strict=True):
        assert a == b
        assert one.index == two.index
        np.testing.assert_allclose(one.logits, two.logits, atol=1e-4)
    cut = runner.cache.can_crop
    assert again[0][0].rebuilt_tokens == (0 if cut else 11)
    assert again[1][0].rebuilt_tokens == 0


def test_another_branch_reuses_the_shared_prefix_and_equals_a_fresh_run(runner: Runner) -> None:
    request = RunRequest(prompt=PROMPT)
    whole = steps_of(runner, request, 6)
    other = (*(t.id for _, t in whole[:2]), (whole[2][1].id + 1) % 90 + 3)
    branch = steps_of(runner, request, 3, other)
    runner.cache.drop()
    fresh = steps_of(runner, request, 3, other)
    assert branch[0][0].rebuilt_tokens == (0 if runner.cache.can_crop else 10)
    assert fresh[0][0].rebuilt_tokens == 10
    for (one, _), (two, _) in zip(branch, fresh, strict=True):
        np.testing.assert_allclose(one.logits, two.logits, atol=1e-4)


def test_another_prompt_never_reads_the_old_cache(runner: Runner) -> None:
    steps_of(runner, RunRequest(prompt=PROMPT), 3)
    other = RunRequest(prompt="7 8 9 10 11 12 13 14")
    chosen = tuple(t.id for _, t in steps_of(runner, other, 2))
    steps_of(runner, RunRequest(prompt=PROMPT), 3)
    back = steps_of(runner, other, 1, chosen)[0][0]
    alone = steps_of(runner, RunRequest(prompt=other.prompt, cache=False), 1, chosen)[0][0]
    np.testing.assert_allclose(back.logits, alone.logits, atol=1e-4)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_equals_alone_where_it_is_offered(runner: Runner, side: Any) -> None:
    alone = steps_of(runner, RunRequest(prompt=PROMPT), 4)
    if not runner.loaded.card.offers(f"{side}_padding"):
        assert side == "right"
        assert "windows count positions" in runner.loaded.card.words("right_padding")
        return
    padded = steps_of(runner, RunRequest(prompt=PROMPT, padding=side, pad=9), 4)
    for (one, a), (two, b) in zip(alone, padded, strict=True):
        assert a == b
        np.testing.assert_allclose(one.logits, two.logits, atol=1e-4)
        assert all(np.isfinite(r.queries).all() for r in two.layers if r.queries is not None)
    first = padded[0][0]
    assert first.readout == (16 if side == "left" else 7)
    assert first.positions_processed == 17


def test_draws_depend_on_seed_and_step_alone(runner: Runner) -> None:
    hot = Sampling(greedy=False, temperature=1.5, seed=5)
    one = steps_of(runner, RunRequest(prompt=PROMPT), 4, sampling=hot)
    two = steps_of(runner, RunRequest(prompt=PROMPT, cache=False), 4, sampling=hot)
    assert [t for _, t in one] == [t for _, t in two]
    assert [s.draw.u for s, _ in one] == [s.draw.u for s, _ in two]


@pytest.mark.parametrize("kind", KINDS)
def test_cache_bytes_follow_formula_and_window(kind: str) -> None:
    runner = tiny_runner(kind)
    found = steps_of(runner, RunRequest(prompt=PROMPT), 5)
    config = runner.model.config
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    per_token = 2 * heads * 8 * 4
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    for step, _ in found:
        for layer, measured in enumerate(step.cache_bytes_per_layer):
            sliding = window and (kinds is None or kinds[layer] == "sliding_attention")
            held = min(step.cache_tokens, window - 1) if sliding else step.cache_tokens
            assert measured == per_token * held


def test_end_token_stops_and_one_in_the_prompt_does_not(runner: Runner) -> None:
    request = RunRequest(prompt=f"2 {PROMPT}")
    first = steps_of(runner, request, 1)
    assert len(first) == 1
    found: list[Token] = []
    ends = set(runner.loaded.card.eos_ids)
    best = first[0][1].id
    runner.loaded = replaced_ends(runner, (best,))
    try:
        reason = generate(
            runner, runner.prompt(request), (), 5, Sampling, lambda s, t: found.append(t)
        )
    finally:
        runner.loaded = replaced_ends(runner, tuple(ends))
    assert reason == "end token"
    assert [t.id for t in found] == [best]


def replaced_ends(runner: Runner, ends: tuple[int, ...]) -> Any:
    import dataclasses

    import msgspec

    card = msgspec.structs.replace(runner.loaded.card, eos_ids=ends)
    return dataclasses.replace(runner.loaded, card=card)


def test_context_limit_in_prompt_and_in_mid_run(runner: Runner) -> None:
    long = " ".join(["5"] * 65)
    with pytest.raises(BadInput, match=r"65 positions.*at most 64"):
        steps_of(runner, RunRequest(prompt=long), 1)
    nearly = RunRequest(prompt=" ".join(["5"] * 63))
    found: list[Token] = []
    reason = generate(
        runner, runner.prompt(nearly), (), 9, lambda: Sampling(), lambda s, t: found.append(t)
    )
    assert reason == "context"
    assert len(found) == 2


def test_empty_prompt_and_unknown_ids_are_sentences(runner: Runner) -> None:
    with pytest.raises(BadInput, match="prompt is empty"):
        steps_of(runner, RunRequest(prompt=""), 1)
    with pytest.raises(BadInput, match="no token 500"):
        steps_of(runner, RunRequest(prompt=PROMPT), 1, (500,))


def test_cancel_within_a_layer_leaves_no_half_filled_cache(runner: Runner) -> None:
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked >= 2  # the second layer of the first pass

    with pytest.raises(Cancelled):
        generate(
            runner,
            runner.prompt(RunRequest(prompt=PROMPT)),
            (),
            3,
            Sampling,
            lambda s, t: None,
            stop,
        )
    assert runner.cache.slots == 0
    fresh = steps_of(runner, RunRequest(prompt=PROMPT), 2)
    alone = steps_of(runner, RunRequest(prompt=PROMPT, cache=False), 2)
    np.testing.assert_allclose(fresh[1][0].logits, alone[1][0].logits, atol=1e-4)


def test_a_model_that_breaks_gives_one_sentence() -> None:
    runner = tiny_runner("llama")
    runner.layers[1].register_forward_pre_hook(explode)
    with pytest.raises(EngineError, match="could not run this pass"):
        steps_of(runner, RunRequest(prompt=PROMPT), 1)


def explode(module: Any, args: Any) -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("plant", "bar"),
    [
        (lambda layer: layer.self_attn.o_proj, "attention_ms"),
        (lambda layer: layer.mlp.up_proj, "mlp_ms"),
        (lambda layer: layer.input_layernorm, None),
    ],
)
def test_time_planted_in_one_layer_shows_in_that_layer_and_part(
    plant: Callable[[Any], Any], bar: str | None
) -> None:
    runner = tiny_runner("llama")
    steps_of(runner, RunRequest(prompt=PROMPT), 1)
    plant(runner.layers[1]).register_forward_pre_hook(lambda m, a: time.sleep(0.05))
    least = least_of(runner)
    np.testing.assert_array_equal(least["layer_ms"] > 50, [False, True, False])
    for name in ("attention_ms", "mlp_ms"):
        np.testing.assert_array_equal(least[name] > 50, [False, name == bar, False])
    for name in ("embedding_ms", "norm_ms", "head_ms", "rest_ms"):
        assert least[name] < 50


def least_of(runner: Runner) -> dict[str, Any]:
    """Of several passes, part by part: the machine may be busy with something else in some."""
    passes = [steps_of(runner, RunRequest(prompt=PROMPT), 1)[0][0] for _ in range(6)]
    assert all(step.forward_ms >= step.layer_ms.sum() for step in passes)
    assert all((s.layer_ms >= s.attention_ms + s.mlp_ms).all() for s in passes)
    inside, beside = ("layer_ms", "attention_ms", "mlp_ms"), ("embedding_ms", "norm_ms", "head_ms")
    names = (*inside, *beside, "rest_ms")
    return {name: np.min([getattr(step, name) for step in passes], axis=0) for name in names}


@pytest.mark.parametrize("part", ["embedding", "norm", "head"])
def test_time_planted_beside_the_layers_shows_there(part: str) -> None:
    runner = tiny_runner("llama")
    steps_of(runner, RunRequest(prompt=PROMPT), 1)
    module = getattr(parts_of(runner.model), part)
    wait = module.forward
    module.forward = lambda *a: (time.sleep(0.05), wait(*a))[1]
    least = least_of(runner)
    slow = {name for name, ms in least.items() if np.max(ms) > 50}
    assert slow == {f"{part}_ms"}


def test_parts_that_are_no_module_of_their_own_are_not_known() -> None:
    runner = runner_on(tiny("dbrx"))  # norm and attention in one module
    step = steps_of(runner, RunRequest(prompt=PROMPT), 1)[0][0]
    assert step.attention_ms is not None
    assert step.mlp_ms is not None
    assert np.isnan(step.attention_ms).all()
    assert (step.mlp_ms > 0).all()


def test_a_step_is_its_pass_its_capture_its_picking_and_little_else() -> None:
    runner = tiny_runner("llama")
    steps_of(runner, RunRequest(prompt=PROMPT), 2)
    for step, _ in steps_of(runner, RunRequest(prompt=PROMPT), 5):
        assert step.engine_ms is not None
        assert step.capture_ms > 0
        assert step.pick_ms > 0
        parts = step.forward_ms + step.capture_ms + step.pick_ms
        assert parts <= step.engine_ms


def test_watching_leaves_nothing_behind() -> None:
    runner = tiny_runner("llama")

    def own(layer: Any) -> set[str]:
        return {name for name, module in layer.named_modules() if "forward" in vars(module)}

    forward = runner.layers[0].forward
    runner.layers[0].forward = forward  # a replacement by somebody else stays
    steps_of(runner, RunRequest(prompt=PROMPT), 1)
    assert vars(runner.layers[0])["forward"] is forward
    assert own(runner.model) == {"model.layers.0"}


def test_hidden_states_read_out_to_the_same_logits(runner: Runner) -> None:
    step = steps_of(runner, RunRequest(prompt=PROMPT), 1)[0][0]
    assert step.hidden is not None
    assert step.hidden.shape == (8, 32)
    with torch.inference_mode():
        logits = runner.model.get_output_embeddings()(torch.tensor(step.hidden[-1]))
    np.testing.assert_allclose(logits.numpy(), step.logits, atol=1e-4)


def test_positions_and_readout_with_padding() -> None:
    left = lay_out((5, 6, 7), (8,), RunRequest(padding="left", pad=2), 0)
    assert left.ids == (0, 0, 5, 6, 7, 8)
    assert left.attention_mask == (0, 0, 1, 1, 1, 1)
    assert left.position_ids == (0, 0, 0, 1, 2, 3)
    right = lay_out((5, 6, 7), (8,), RunRequest(padding="right", pad=2), 0)
    assert right.ids == (5, 6, 7, 0, 0, 8)
    assert right.position_ids == (0, 1, 2, 0, 0, 3)
    assert lay_out((5, 6, 7), (), RunRequest(padding="right", pad=2), 0).readout == 2
    with pytest.raises(BadInput, match="no padding token"):
        lay_out((5,), (), RunRequest(padding="left", pad=1), None)


def test_stop_rules_say_which_one_stopped(runner: Runner) -> None:
    request = RunRequest(prompt=PROMPT)
    free = [t.id for _, t in steps_of(runner, request, 6)]

    def stopped(stops: Stops, chosen: tuple[int, ...] = ()) -> tuple[str, int]:
        seen: list[Token] = []
        reason = generate(
            runner,
            runner.prompt(request),
            chosen,
            6,
            Sampling,
            lambda _, t: seen.append(t),
            stops=stops,
        )
        return reason, len(seen)

    assert stopped(Stops(tokens=2)) == ("length", 2)
    assert stopped(Stops(tokens=2), tuple(free[:2])) == ("length", 0)
    # the string is spelled by two tokens together, and stops only where it is completed
    across = f"{free[1]} {free[2]} "
    first = next(i for i in range(1, 6) if f"{free[i - 1]} {free[i]} ".endswith(across))
    assert stopped(Stops(strings=("never", across))) == ("stop string", first + 1)
    assert stopped(Stops(strings=("",)))[0] == "steps"
    # what the prompt holds stops nothing
    assert stopped(Stops(strings=(PROMPT[-5:],)))[0] in ("steps", "stop string")
