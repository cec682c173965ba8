"""Interventions against the same change made by hand in a plain transformers model.

Heads are silenced there at the input of the output projection, cells cut in an attention function
of this test's own, MLPs and layers by forward hooks.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from explorer.engine.errors import BadInput
from explorer.engine.passes import chunked_prefill, interventions
from explorer.engine.passes.generate import forward, generate, next_pass
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selfcheck, selftest
from explorer.trace.interventions.lines import read
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from tests.engine.tiny import KINDS, runner_on, tiny_model, tiny_runner

IDS = tuple(5 + 7 * i % 83 for i in range(12))
PROMPT = " ".join(map(str, IDS[:8]))
LAYOUT = Layout(IDS, (1,) * 12, tuple(range(12)))
NEAR = 1e-5
EVERY_KIND = (
    ("silence 1.0", "silence 2.3"),
    ("silence 1.mlp",),
    ("silence 1",),
    ("cut 1.0:5<-3", "cut *.*:8-11<-7", "cut 0.*:*<-q-3+"),
    ("cut 1.*:6<-*", "cut 1.2:9<-*", "cut *.*:*<-0", "allow *.1:*<-0"),
    ("scale *.*:0.5", "scale 1.0:3"),
    ("silence 0.1", "cut 2.*:*<-q-1", "scale 1.*:2", "silence 2.mlp"),
    ("silence 1.2=mean", "silence 2.0=mean", "cut 0.*:*<-0"),
    ("allow 0.*:9-11<-0-1", "allow *.1:8<-0"),  # beyond the windows of those that have some
    ("cut *.*:5-11<-0-4", "restore 1.*:7<-2-3", "restore 2.1:*<-q-5", "cut 2.2:6-9<-q-1-2"),
)  # fmt: skip


def asked(*lines: str, **more: Any) -> RunRequest:
    return RunRequest(interventions=tuple(map(read, lines)), **more)


@functools.cache
def runner_of(kind: str) -> Runner:
    runner = tiny_runner(kind)
    selftest.run(runner)
    return runner


def ours(kind: str, *lines: str) -> ForwardPass:
    return measured_gaps.every_slot(runner_of(kind), asked(*lines), LAYOUT, lambda: False)


class Manual:
    """An attention function that cuts and scales scores by hand, and keeps its weights."""

    def __init__(self, cut: list[tuple[int, int, int, int]], scaled: dict[int, float]) -> None:
        self.cut, self.scaled = cut, scaled  # (layer, head, query, key); by layer
        self.weights: dict[int, np.ndarray] = {}

    def __call__(self, module: Any, q: Any, k: Any, v: Any, mask: Any, **options: Any) -> Any:
        group, layer = q.shape[1] // k.shape[1], module.layer_idx
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scale = options.get("scaling") or q.shape[-1] ** -0.5
        scores = q @ k.transpose(2, 3) * scale * self.scaled.get(layer, 1.0)
        if options.get("softcap"):
            scores = torch.tanh(scores / options["softcap"]) * options["softcap"]
        if mask is not None:
            scores = scores + mask[..., : k.shape[2]]
        for at, head, query, key in self.cut:
            if at == layer:
                scores[:, head, query, key] = -torch.inf
        sinks = options.get("s_aux")
        if sinks is not None:
            column = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = torch.cat([scores, column], -1)
        weights = scores.softmax(-1)
        weights = weights if sinks is None else weights[..., :-1]
        self.weights[layer] = weights[0].numpy()
        return (weights @ v).transpose(1, 2).contiguous(), weights


@contextlib.contextmanager
def by_hand(model: Any, manual: Manual) -> Iterator[None]:
    AttentionInterface.register("manual", manual)
    AttentionMaskInterface.register("manual", ALL_MASK_ATTENTION_FUNCTIONS["eager"])
    try:
        model.set_attn_implementation("manual")
        yield
    finally:
        del AttentionInterface._global_mapping["manual"]
        del AttentionMaskInterface._global_mapping["manual"]


@torch.inference_mode()
def logits(model: Any, ids: Sequence[int] = IDS) -> np.ndarray:
    return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()


def projection(layer: Any) -> Any:
    return layer.attn.c_proj if hasattr(layer, "attn") else layer.self_attn.o_proj


@pytest.mark.parametrize("kind", KINDS)
def test_a_silenced_head_gives_the_output_projection_nothing(kind: str) -> None:
    model = tiny_model(kind)
    model.set_attn_implementation("eager")

    def silence(module: Any, args: Any) -> Any:
        heads = args[0].clone().unflatten(-1, (4, -1))
        heads[..., 2, :] = 0
        return (heads.flatten(-2),)

    layer = runner_on(model).layers[1]
    with contextlib.closing(_hook(projection(layer).register_forward_pre_hook(silence))):
        expected = logits(model)
    found = ours(kind, "silence 1.2").logits
    np.testing.assert_allclose(found, expected, atol=NEAR)
    assert np.abs(found - logits(model)).max() > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_at_its_mean_gives_the_output_projection_its_mean_over_the_prompt(kind: str) -> None:
    """Of a prompt of 8 tokens; the four that follow do not count, and get it all the same."""
    model = tiny_model(kind)
    model.set_attn_implementation("eager")
    own: list[torch.Tensor] = []
    pick = projection(runner_on(model).layers[1]).register_forward_pre_hook

    def change(module: Any, args: Any) -> Any:
        heads = args[0].clone().unflatten(-1, (4, -1))
        heads[..., 2, :] = own[0]
        return (heads.flatten(-2),)

    def keep(module: Any, args: Any) -> None:
        own.append(args[0].unflatten(-1, (4, -1))[0, :, 2].mean(0))

    with contextlib.closing(_hook(pick(keep))):
        plain = logits(model, IDS[:8])
    with contextlib.closing(_hook(pick(change))):
        expected = logits(model)
    request = asked("silence 1.2=mean", prompt=PROMPT)
    runner = runner_of(kind)
    found = measured_gaps.every_slot(runner, request, LAYOUT, lambda: False).logits
    np.testing.assert_allclose(found, expected, atol=NEAR)
    assert np.abs(found[:8] - plain).max() > 1e-2
    assert np.abs(found - ours(kind, "silence 1.2").logits).max() > 1e-2


def test_means_are_of_the_model_as_it_is_and_of_real_tokens() -> None:
    runner = runner_of("llama")
    request = asked("silence 1.2=mean", "silence 0.0", prompt=PROMPT)
    layout = runner.layout(request, ())
    alone = forward(runner, request, layout, 0, None).logits
    later = forward(runner, request, runner.layout(request, (7, 8)), 0, None, at=[7]).logits[0]
    np.testing.assert_allclose(later, alone, atol=NEAR)  # tokens that follow do not count
    more = {"padding": "left", "pad": 3}
    padded = asked("silence 1.2=mean", "silence 0.0", prompt=PROMPT, **more)
    found = forward(runner, padded, runner.layout(padded, ()), 0, None).logits
    np.testing.assert_allclose(found, alone, atol=1e-4)


class _hook(contextlib.AbstractContextManager[None]):
    """A torch hook that can be closed."""

    def __init__(self, handle: Any) -> None:
        self.close = handle.remove

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_cell_is_a_score_of_minus_infinity(kind: str) -> None:
    model = tiny_model(kind)
    manual = Manual([(1, 3, 6, 5), (0, 0, 4, 4), (0, 1, 4, 4), (0, 2, 4, 4), (0, 3, 4, 4)], {})
    with by_hand(model, manual):
        expected = logits(model)
    done = ours(kind, "cut 1.3:6<-5", "cut 0.*:4<-4")
    np.testing.assert_allclose(done.logits, expected, atol=NEAR)
    for one in measured_gaps.drawn(done):
        for head in range(4):
            weights = one.weights(head)
            np.testing.assert_allclose(weights, manual.weights[one.record.layer][head], atol=NEAR)
    first, second, _ = measured_gaps.drawn(done)
    assert first.weights(2)[4, 4] == second.weights(3)[6, 5] == 0
    assert second.weights(2)[6, 5] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_scaled_before_cap_and_mask(kind: str) -> None:
    model = tiny_model(kind)
    with by_hand(model, Manual([], {1: 3.0})):
        expected = logits(model)
    np.testing.assert_allclose(ours(kind, "scale 1.*:3").logits, expected, atol=NEAR)


@pytest.mark.parametrize("kind", KINDS)
def test_a_silenced_mlp_and_a_silenced_layer_write_nothing(kind: str) -> None:
    model = tiny_model(kind)
    layer = runner_on(model).layers[1]

    def nothing(module: Any, args: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (torch.zeros_like(output[0]), *output[1:])
        return torch.zeros_like(output)

    def its_input(module: Any, args: Any, output: Any) -> Any:
        return (args[0], *output[1:]) if isinstance(output, tuple) else args[0]

    mlp = getattr(layer, "post_feedforward_layernorm", layer.mlp)
    with contextlib.closing(_hook(mlp.register_forward_hook(nothing))):
        without_mlp = logits(model)
    with contextlib.closing(_hook(layer.register_forward_hook(its_input))):
        without_layer = logits(model)
    np.testing.assert_allclose(ours(kind, "silence 1.mlp").logits, without_mlp, atol=NEAR)
    np.testing.assert_allclose(ours(kind, "silence 1").logits, without_layer, atol=NEAR)


def run(runner: Runner, request: RunRequest, steps: int = 5) -> Trace:
    trace = Trace(request=request, card=runner.loaded.card, prompt=runner.prompt(request).tokens)

    def emit(step: Any, token: Any) -> None:
        nonlocal trace
        trace = trace.appended(step, token)

    generate(runner, runner.prompt(request), (), steps, Sampling, emit)
    return trace


@pytest.mark.parametrize("lines", EVERY_KIND, ids=" + ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_cached_equals_uncached(kind: str, lines: tuple[str, ...]) -> None:
    runner = runner_of(kind)
    request = asked(*lines, prompt=PROMPT)
    cached = run(runner, request)
    bare = run(runner, msgspec.structs.replace(request, cache=False))
    phase = "decode" if request.uses_cache else "recompute"
    assert [step.phase for step in cached.steps[1:]] == [phase] * 4
    assert request.uses_cache == (not any(line.startswith("allow") for line in lines))
    for one, other in zip(cached.steps, bare.steps, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, atol=1e-4)
        for layer, record in enumerate(one.layers):
            for head in range(record.heads):
                row = bare.weights(one.index, layer, head)[-1, record.first_key :]
                np.testing.assert_allclose(
                    cached.weights(one.index, layer, head)[-1], row, atol=1e-5
                )


@pytest.mark.parametrize("lines", EVERY_KIND, ids=" + ".join)
@pytest.mark.parametrize("kind", KINDS)
def test_the_proof_holds_under_interventions(kind: str, lines: tuple[str, ...]) -> None:
    found = {c.name: c for c in selfcheck.check(runner_of(kind), asked(*lines, prompt=PROMPT), ())}
    assert all(check.passed for check in found.values()), found
    assert {"kernel_output", "eager_weights", "row_sums"} <= found.keys()
    assert ("cut_cells" in found) is any("<-" in line for line in lines)


def test_a_later_token_can_be_allowed_and_the_cache_is_off_then() -> None:
    request = asked("allow 1.0:3<-6", prompt=PROMPT)
    assert not request.uses_cache
    assert "later one" in request.cache_reason
    trace = run(runner_of("llama"), request, 2)
    assert trace.weights(0, 1, 0)[3, 6] > 0
    assert trace.weights(0, 1, 1)[3, 6] == 0
    assert [step.phase for step in trace.steps] == ["prefill", "recompute"]


def test_a_query_with_no_key_left_attends_to_nothing() -> None:
    done = ours("llama", "cut 1.1:4<-*")
    second = measured_gaps.drawn(done)[1]
    assert not second.weights(1)[4].any()
    assert np.isfinite(done.logits).all()


def test_another_intervention_never_meets_the_cache_of_the_last() -> None:
    runner = runner_of("llama")
    plain = run(runner, RunRequest(prompt=PROMPT))
    changed = run(runner, asked("silence 0.1", prompt=PROMPT))
    again = run(runner, RunRequest(prompt=PROMPT))
    layout = runner.layout(plain.request, plain.chosen_ids[:3])
    request = asked("silence 0.1", prompt=PROMPT)
    alone = forward(runner, request, layout, 0, None)
    mixed = next_pass(runner, request, layout, 3)
    np.testing.assert_allclose(mixed.logits, alone.logits, atol=1e-4)
    assert np.abs(changed.steps[0].logits - plain.steps[0].logits).max() > 1e-2
    for one, other in zip(plain.steps, again.steps, strict=True):
        np.testing.assert_array_equal(one.logits, other.logits)


def test_a_long_prompt_in_chunks_keeps_its_cut_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_of("llama")
    request = asked("cut *.*:*<-q-2+", "silence 1.1", prompt=PROMPT)
    whole = run(runner, request, 1)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 4)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 3)
    parts = run(runner, request, 1)
    assert "chunks" in parts.steps[0].note
    np.testing.assert_allclose(parts.steps[0].logits, whole.steps[0].logits, atol=1e-4)
    for layer in range(3):
        maps = [trace.weights(0, layer, 1) for trace in (parts, whole)]
        np.testing.assert_allclose(*maps, atol=1e-5)


def test_single_heads_of_very_long_texts_are_refused() -> None:
    runner, cells = runner_of("llama"), asked("cut 1.0:5<-3").interventions
    with pytest.raises(BadInput, match="2,048 tokens"):
        interventions.in_attention(runner, cells, 3000, 2049)
    assert interventions.in_attention(runner, cells, 3000, 1) is not None
    everywhere = asked("cut 1.*:5<-3").interventions
    assert interventions.in_attention(runner, everywhere, 3000, 2049) is not None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("silence 3.0", "layers 0 to 2"),
        ("silence 7.mlp", "layers 0 to 2"),
        ("cut 3.*:5<-3", "layers 0 to 2"),
        ("silence 1.4", "Layer 1 has heads 0 to 3, no head 4"),
        ("silence 1.4=mean", "Layer 1 has heads 0 to 3, no head 4"),
        ("scale 0.9:2", "Layer 0 has heads 0 to 3, no head 9"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(line: str, words: str) -> None:
    runner, request = runner_of("llama"), asked(line, prompt=PROMPT)

    def refuse() -> None:
        interventions.require_possible(runner, request)  # as the dispatcher does
        run(runner, request, 1)

    with pytest.raises(BadInput, match=words):
        refuse()


def test_what_was_not_found_possible_is_refused_with_the_reason() -> None:
    with pytest.raises(BadInput, match=r"'silence 0\.0' is not possible here"):
        interventions.require_possible(tiny_runner("llama"), asked("silence 0.0"))
