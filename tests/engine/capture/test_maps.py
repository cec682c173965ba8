"""Maps rebuilt from a trace against transformers' own eager attention.

GPT-2, Llama with GQA, sliding windows past their window, soft caps and sinks; prefill and decode.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

from explorer.engine.capture import probe, records
from explorer.engine.passes import masks
from explorer.engine.passes.generate import forward, generate
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace import attention
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from tests.engine.tiny import KINDS, tiny_runner

PROMPT = " ".join(str(5 + 7 * i % 83) for i in range(9))
STEPS = 6  # 9 + 5 slots read: well past a window of 5


@functools.cache
def runner_of(kind: str) -> Runner:
    return tiny_runner(kind)


def run(runner: Runner, request: RunRequest, steps: int = STEPS) -> Trace:
    trace = Trace(request=request, card=runner.loaded.card, prompt=runner.prompt(request).tokens)

    def emit(step: Any, token: Any) -> None:
        nonlocal trace
        trace = trace.appended(step, token)

    generate(runner, runner.prompt(request), (), steps, Sampling, emit)
    return trace


def eager(runner: Runner, ids: list[int], causal: bool = True) -> list[np.ndarray]:
    """transformers' own (H, T, T) weights per layer: a separate eager run without a cache."""
    runner.model.set_attn_implementation("eager")
    tensor = torch.tensor([ids])
    with torch.inference_mode():
        if causal:
            out = runner.model(tensor, output_attentions=True, use_cache=False)
        else:
            with masks.causal_off(runner.model):
                out = runner.model(
                    tensor,
                    attention_mask=torch.ones_like(tensor),
                    output_attentions=True,
                    use_cache=False,
                )
    return [a[0].float().numpy() for a in out.attentions]


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_and_head_equals_a_separate_eager_run(kind: str) -> None:
    runner = runner_of(kind)
    trace = run(runner, RunRequest(prompt=PROMPT))
    assert [s.phase for s in trace.steps] == ["prefill"] + ["decode"] * (STEPS - 1)
    read = [t.id for t in trace.tokens][: trace.read_slots(STEPS - 1)]
    own = eager(runner, read)
    for step in trace.steps:
        assert len(step.layers) == len(own)
        for layer, record in enumerate(step.layers):
            first = record.first_key
            rows = slice(step.first_slot, step.first_slot + step.positions_processed)
            for head in range(record.heads):
                ours = trace.weights(step.index, layer, head)
                theirs = own[layer][head, rows, first : trace.read_slots(step.index)]
                np.testing.assert_allclose(ours, theirs, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_maps_equal_eager_attention_on_the_same_q_k_v(kind: str) -> None:
    """The model's own eager function, given the very tensors the kernel was given."""
    runner = runner_of(kind)
    ids = tuple(int(i) for i in PROMPT.split())
    layout = Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
    done = forward(runner, RunRequest(), layout, 0, None, keep_outputs=True)
    kept = records.records(done.recorder, done.slots)
    for call, record in zip(done.recorder.calls, kept, strict=True):
        module = next(
            m for m in runner.layers[call.layer].modules() if type(m).__name__.endswith("Attention")
        )
        allowed = record.mask.allowed()  # type: ignore[union-attr]
        additive = torch.where(torch.tensor(allowed), 0.0, torch.finfo(torch.float32).min)
        options = {k: v for k, v in call.options.items() if k != "dropout"}
        with torch.inference_mode():
            _, theirs = probe.own_eager(module)(
                module,
                call.query,
                call.key,
                call.value,
                attention_mask=additive[None, None],
                scaling=call.scaling,
                **options,
            )
        keys, _ = records.to_numpy(call.key[0].transpose(0, 1).contiguous())
        for head in range(record.heads):
            ours = attention.weights(record, keys, head)
            np.testing.assert_allclose(ours, theirs[0, head].numpy(), atol=1e-5)


@pytest.mark.parametrize("kind", ["mistral", "gemma3_text", "gpt_oss"])
def test_windows_hide_what_lies_behind_them(kind: str) -> None:
    trace = run(runner_of(kind), RunRequest(prompt=PROMPT))
    sliding = [r.layer for r in trace.steps[0].layers if r.mask and r.mask.kind == "bits"]
    assert sliding
    whole = trace.weights(0, sliding[0], 0)
    assert (whole[8, :4] == 0).all()
    assert (whole[8, 4:] > 0).all()
    last = trace.record(STEPS - 1, sliding[0])
    assert trace.weights(STEPS - 1, sliding[0], 0).shape == (1, 5)
    assert last.first_key == trace.read_slots(STEPS - 1) - 5


def test_sinks_take_mass_and_are_named() -> None:
    trace = run(runner_of("gpt_oss"), RunRequest(prompt=PROMPT), 1)
    record = trace.record(0, 0)
    assert record.sinks is not None
    sums = trace.weights(0, 0, 0).sum(axis=1)
    assert (sums < 1).all()


@pytest.mark.parametrize("kind", KINDS)
def test_mask_off_opens_every_layer_and_keeps_windows(kind: str) -> None:
    runner = runner_of(kind)
    trace = run(runner, RunRequest(prompt=PROMPT, causal_mask=False), 3)
    assert [s.phase for s in trace.steps] == ["prefill", "recompute", "recompute"]
    assert [s.positions_processed for s in trace.steps] == [9, 10, 11]
    assert [s.cache_bytes for s in trace.steps] == [0, 0, 0]
    read = [t.id for t in trace.tokens][:11]
    own = eager(runner, read, causal=False)
    window = getattr(runner.model.config, "sliding_window", None)
    kinds = getattr(runner.model.config, "layer_types", None)
    for layer in range(len(runner.layers)):
        sliding = window and (kinds is None or kinds[layer] == "sliding_attention")
        distance = np.abs(np.subtract.outer(np.arange(11), np.arange(11)))
        for head in range(4):
            ours = trace.weights(2, layer, head)
            np.testing.assert_allclose(ours, own[layer][head], atol=1e-4)
            assert ((ours > 0) == (distance < window if sliding else distance >= 0)).all()


def test_everything_is_put_back_after_a_pass_without_mask() -> None:
    runner = tiny_runner("llama")
    before = run(runner, RunRequest(prompt=PROMPT), 1)
    run(runner, RunRequest(prompt=PROMPT, causal_mask=False), 1)
    after = run(runner, RunRequest(prompt=PROMPT), 1)
    np.testing.assert_array_equal(before.steps[0].logits, after.steps[0].logits)
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in runner.layers)


def test_bfloat16_maps_follow_the_stored_bits() -> None:
    runner = tiny_runner("llama")
    runner.model.to(torch.bfloat16)
    trace = run(runner, RunRequest(prompt=PROMPT, dtype="bfloat16"), 2)
    record = trace.record(0, 1)
    assert record.dtype == "bfloat16"
    assert record.queries is not None
    assert record.queries.dtype == np.uint16
    own = eager(runner, [t.id for t in trace.tokens][:9])
    np.testing.assert_allclose(trace.weights(0, 1, 2), own[1][2], atol=2e-2)
