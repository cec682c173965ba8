"""Proofs that what is drawn is what the model did, each returning one measured number.

Used by the self-test at load and by the self-check of a run.  Every comparison rebuilds maps
through `explorer.trace`, the code that the window draws with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from explorer.engine import masks, records
from explorer.engine.layout import Layout
from explorer.engine.probe import Call
from explorer.engine.runner import Pass, Runner
from explorer.trace import attention
from explorer.trace.attention import LayerRecord
from explorer.trace.request import RunRequest

Stop = Callable[[], bool]


def with_last_changed(layout: Layout, vocabulary: int) -> Layout:
    """The same slots with another last token."""
    other = (layout.ids[-1] + 1) % vocabulary
    return Layout((*layout.ids[:-1], other), layout.attention_mask, layout.position_ids)


def largest(difference: np.ndarray) -> float:
    """The largest absolute entry; inf where anything is not a number."""
    if difference.size == 0:
        return 0.0
    return float(np.abs(difference).max()) if np.isfinite(difference).all() else float("inf")


def call_records(done: Pass) -> list[tuple[Call, LayerRecord, np.ndarray]]:
    """Each attention call with its record and the keys (K, H_kv, d_h) its kernel saw."""
    kept = [r for r in records.records(done.recorder, done.slots) if r.kind == "qk"]
    order = [c for layer in dict.fromkeys(done.recorder.visited) for c in done.recorder.calls
             if c.layer == layer]  # fmt: skip
    result = []
    for call, record in zip(order, kept, strict=True):
        keys, _ = records.to_numpy(call.key[0].transpose(0, 1).contiguous())
        result.append((call, record, keys))
    return result


def kernel_output(done: Pass, layout: Layout) -> dict[int, float]:
    """Per layer: softmax(QKᵀ·scale + mask)·V against the kernel's own output, relative to it."""
    valid = np.array(layout.attention_mask[done.first_slot :], bool)
    worst: dict[int, float] = {}
    for call, record, keys in call_records(done):
        assert call.value is not None
        assert call.output is not None
        value = call.value[0].float().cpu().numpy()  # (H_kv, K, d_v)
        output = call.output[0].float().cpu().numpy().reshape(len(valid), record.heads, -1)
        group = record.heads // len(value)
        scale = max(1e-6, largest(output[valid]))
        for head in range(record.heads):
            rebuilt = attention.weights(record, keys, head) @ value[head // group]
            gap = largest(rebuilt[valid] - output[valid, head]) / max(1.0, scale)
            worst[record.layer] = max(worst.get(record.layer, 0.0), gap)
    return worst


def row_sums(done: Pass, layout: Layout) -> tuple[float, float]:
    """(largest distance of a real row's sum from 1 where there is no sink, largest sink mass)."""
    valid = np.array(layout.attention_mask[done.first_slot :], bool)
    gap, sink = 0.0, 0.0
    for _, record, keys in call_records(done):
        for head in range(record.heads):
            sums = attention.weights(record, keys, head).sum(axis=1)[valid]
            if record.sinks is None:
                gap = max(gap, largest(sums - 1))
            else:
                sink = max(sink, float((1 - sums).max()))
    return gap, sink


def above_diagonal(done: Pass) -> dict[int, float]:
    """Per layer: the largest weight on a later key, over all heads (whole passes only)."""
    result: dict[int, float] = {}
    for _, record, keys in call_records(done):
        for head in range(record.heads):
            rebuilt = attention.weights(record, keys, head)
            future = rebuilt[np.triu_indices(len(rebuilt), 1)]
            top = float(future.max()) if future.size else 0.0
            result[record.layer] = max(result.get(record.layer, 0.0), top)
    return result


def eager_weights(
    runner: Runner, request: RunRequest, layout: Layout, done: Pass
) -> dict[int, float] | None:
    """Per layer: rebuilt maps against a separate eager run's own weights; None if it gives none."""
    own = eager_attentions(runner, request, layout)
    if own is None:
        return None
    valid = np.array(layout.attention_mask, bool)
    calls = call_records(done)
    if len(own) != len(calls):
        return None
    worst: dict[int, float] = {}
    for theirs, (_, record, keys) in zip(own, calls, strict=True):
        for head in range(record.heads):
            gap = largest((attention.weights(record, keys, head) - theirs[head])[valid])
            worst[record.layer] = max(worst.get(record.layer, 0.0), gap)
    return worst


def eager_attentions(
    runner: Runner, request: RunRequest, layout: Layout
) -> list[np.ndarray] | None:
    """The model's own (H, Q, K) weights per attention layer, from an uncached eager pass."""
    model = runner.model
    arguments = runner.arguments(layout, 0, None, [layout.readout])
    model.set_attn_implementation("eager")
    off = contextlib.nullcontext() if request.causal_mask else masks.causal_off(model)
    try:
        with torch.inference_mode(), off:
            output = model(**arguments, output_attentions=True)
    finally:
        model.set_attn_implementation(runner.route)
    given = getattr(output, "attentions", None)
    if not given:
        return None
    return [a[0].float().cpu().numpy() for a in given if a is not None]


def every_slot(runner: Runner, request: RunRequest, layout: Layout, stop: Stop) -> Pass:
    """An uncached pass with outputs kept and logits (T, V) of every slot."""
    slots = range(len(layout.ids))
    return runner.forward(request, layout, 0, None, stop, keep_outputs=True, at=slots)


def prefix_shift(
    runner: Runner, request: RunRequest, layout: Layout, whole: Pass, stop: Stop
) -> float:
    """How far earlier positions' logits move when the last token changes.

    `whole` is the pass of `layout` with logits of its last slots, (n, V).
    """
    slots = range(len(layout.ids) - len(whole.logits), len(layout.ids))
    vocabulary = runner.model.get_input_embeddings().num_embeddings
    other = with_last_changed(layout, vocabulary)
    moved = runner.forward(request, other, 0, None, stop, at=slots)
    valid = np.array(layout.attention_mask[slots.start : -1], bool)
    return largest((whole.logits - moved.logits)[:-1][valid])


def cached_gap(
    runner: Runner, request: RunRequest, layout: Layout, reference: np.ndarray, stop: Stop
) -> float:
    """Prefill of all but the last n - 1 slots, then cached steps, against `reference` (n, V).

    Leaves the cache filled with all of `layout`.
    """
    worst, length = 0.0, len(layout.ids)
    runner.cache.fresh()
    for row, end in enumerate(range(length - len(reference) + 1, length + 1)):
        part = layout.first(end)
        start = 0 if row == 0 else end - 1
        cached = runner.forward(request, part, start, runner.cache.live, stop)
        worst = max(worst, largest(cached.logits - reference[row]))
    runner.cache.grew(layout, length)
    return worst


def crop_gap(
    runner: Runner, request: RunRequest, layout: Layout, slot: int, expected: np.ndarray, stop: Stop
) -> float:
    """Logits (V,) of `slot` after cutting the filled cache back to it, against `expected`."""
    before, runner.cache.can_crop = runner.cache.can_crop, True
    try:
        if not runner.cache.cut_to(slot):
            return float("inf")
        part = layout.first(slot + 1)
        again = runner.forward(request, part, slot, runner.cache.live, stop)
    finally:
        runner.cache.can_crop = before
    return largest(again.logits - expected)


def generated(runner: Runner, layout: Layout, tokens: int) -> list[int]:
    """transformers' own greedy generate() from the real tokens of `layout`."""
    model: Any = runner.model
    real_ids = [i for i, m in zip(layout.ids, layout.attention_mask, strict=True) if m]
    inputs = torch.tensor([real_ids], device=model.device)
    with torch.inference_mode():
        output = model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=tokens,
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            pad_token_id=runner.loaded.card.pad_id,
        )
    return [int(i) for i in output[0, len(real_ids) :]]
