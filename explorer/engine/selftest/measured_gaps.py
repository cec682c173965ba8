"""Proofs that what is drawn is what the model did, each returning one measured number.

Used by the self-test at load and by the self-check of a run.  Every comparison rebuilds maps
through `explorer.trace`, the code that the window draws with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from explorer.engine import ranks
from explorer.engine.callbacks import Stop, never
from explorer.engine.capture import records
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.capture import set_attention
from explorer.engine.capture.probe import Call
from explorer.engine.errors import Cancelled
from explorer.engine.passes import masks
from explorer.engine.passes.generate import forward, inputs, recording
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.trace import attention
from explorer.trace.attention import LayerRecord
from explorer.trace.interventions.cells import CUT, of_head
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest


def with_last_changed(layout: Layout, vocabulary: int) -> Layout:
    """The same slots with another last token."""
    other = (layout.ids[-1] + 1) % vocabulary
    return Layout((*layout.ids[:-1], other), layout.attention_mask, layout.position_ids)


@dataclass(frozen=True, slots=True)
class PassMap:
    """One map of a pass: its record, and what the kernel was given."""

    record: LayerRecord
    call: Call | None  # None for a map that the model itself gave
    keys: np.ndarray  # (K, H_kv, d_h) that the kernel saw, storage dtype; empty if not known

    def weights(self, head: int, rows: slice = slice(None)) -> np.ndarray:
        """(rows, K) float32, as the window would draw it."""
        return attention.weights(self.record, self.keys, head, rows)

    @property
    def has_sink(self) -> bool:
        """True if some of each row's mass goes to no token."""
        options = {} if self.call is None else self.call.options
        return self.record.sinks is not None or options.get("sinks") is not None


def shares(weights: np.ndarray) -> np.ndarray:
    """The same rows, each divided by its sum; a row of zeros stays one."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def drawn(done: ForwardPass) -> list[PassMap]:
    """Every map of a pass, whether proven or not, in order."""
    found = []
    pairs = zip(sites(done.recorder), records.records(done.recorder, done.slots), strict=True)
    for site, record in pairs:
        if record.kind == "absent":
            continue
        keys = np.empty((0, 1, 1), np.float32)
        if record.kind == "qk" and site.call is not None:
            keys, _ = records.to_numpy(site.call.key[0].transpose(0, 1).contiguous())
        found.append(PassMap(record, site.call, keys))
    return found


def kernel_output(done: ForwardPass, layout: Layout) -> dict[int, float]:
    """Per layer: softmax(QKᵀ·scale + mask)·V against the kernel's own output, relative to it.

    Maps that the model itself gave have no kernel to compare with, and are left out.
    """
    valid = np.array(layout.attention_mask[done.first_slot :], bool)
    worst: dict[int, float] = {}
    for one in drawn(done):
        if one.call is None or one.call.value is None or one.call.output is None:
            continue
        value = one.call.value[0].float().cpu().numpy()  # (H_kv, K, d_v)
        heads = one.record.heads
        output = one.call.output[0].float().cpu().numpy().reshape(len(valid), heads, -1)
        scale = max(1.0, largest(output[valid]))
        for head in range(heads):
            rebuilt = one.weights(head) @ value[head * len(value) // heads]
            gap = largest(rebuilt[valid] - output[valid, head]) / scale
            worst[one.record.layer] = max(worst.get(one.record.layer, 0.0), gap)
    return worst


def row_sums(done: ForwardPass, layout: Layout) -> tuple[float, float]:
    """(largest distance of a real row's sum from 1 where there is no sink, largest sink mass).

    A row whose cells are all cut sums to 0.
    """
    valid = np.array(layout.attention_mask[done.first_slot :], bool)
    gap, sink = 0.0, 0.0
    for one in drawn(done):
        for head in range(one.record.heads):
            sums = one.weights(head).sum(axis=1)[valid]
            mask = one.record.mask
            if one.has_sink:
                sink = max(sink, float((1 - sums).max()))
            elif mask is None:
                gap = max(gap, largest(sums - 1))
            else:
                gap = max(
                    gap, largest(sums - np.asarray(mask.allowed(head=head).any(axis=1))[valid])
                )
    return gap, sink


def cut_weight(done: ForwardPass, request: RunRequest) -> float:
    """The largest weight on a cell that the request cuts (whole passes only)."""
    slots, left = (0, done.slots), 0.0
    for one in drawn(done):
        for head in range(one.record.heads):
            cut = of_head(request.changes, one.record.layer, head, slots, slots) == CUT
            weights = one.weights(head)
            left = max(left, float(weights[cut[:, -weights.shape[1] :]].max(initial=0.0)))
    return left


def above_diagonal(done: ForwardPass, layout: Layout) -> dict[int, float]:
    """Per layer: the largest weight of a real token on a later one (whole passes only)."""
    valid = np.array(layout.attention_mask, bool)
    result: dict[int, float] = {}
    for one in drawn(done):
        for head in range(one.record.heads):
            future = np.triu(one.weights(head), 1)[valid]
            top = float(future.max(initial=0.0))
            result[one.record.layer] = max(result.get(one.record.layer, 0.0), top)
    return result


def eager_weights(
    runner: Runner, request: RunRequest, layout: Layout, done: ForwardPass
) -> dict[int, float] | None:
    """Per layer: rebuilt maps against a separate eager run's own weights; None if it gives none."""
    ours = drawn(done)
    own = eager_attentions(runner, request, layout, [one.call for one in ours if one.call], done)
    if own is None or len(own) != len(ours):
        return None
    valid = np.array(layout.attention_mask, bool)
    worst: dict[int, float] = {}
    for theirs, one in zip(own, ours, strict=True):
        for head in range(one.record.heads):
            a, b = one.weights(head), theirs[head]
            if one.record.sinks is not None:  # some give their weights without the sink's share
                a, b = shares(a), shares(b)
            gap = largest((a - b)[valid])
            worst[one.record.layer] = max(worst.get(one.record.layer, 0.0), gap)
    return worst


def eager_attentions(
    runner: Runner, request: RunRequest, layout: Layout, wanted: list[Call], done: ForwardPass
) -> list[np.ndarray] | None:
    """The model's own (H, Q, K) weights, from an uncached eager pass; None if it gives none.

    Where the modules of the `wanted` calls return their weights, they are those, one a call.  Else
    they are what the model gives, unless some are of another module that attended in `done`: a
    model with others inside may give theirs, of the same size.
    """
    model = runner.model
    arguments = inputs(runner, layout, 0, None, [layout.readout])
    returned: list[tuple[int, torch.Tensor]] = []
    set_attention(model, "eager")
    try:
        with contextlib.ExitStack() as stack:
            if request.changes:  # its function gets the mask and scores that they change
                changed = recording(runner, request, layout, 0, None, never, True, 0, "eager")
                stack.enter_context(changed)
            elif not request.causal_mask:
                stack.enter_context(masks.causal_off(model))
            stack.enter_context(ranks.no_gradients())
            calling = {call.module for call in done.recorder.calls}
            stack.enter_context(_noting_weights(model, calling, returned))
            output = model(**arguments, output_attentions=True)
    finally:
        set_attention(model, runner.capture.implementation)
    asked = [call.module for call in wanted]
    heads = max((call.query.shape[1] for call in done.recorder.calls), default=0)
    of_asked = [one for one in returned if one[0] in asked]
    if asked and [module for module, _ in of_asked] == asked:
        return [_heads(weights, heads) for _, weights in of_asked]
    given = [one for one in getattr(output, "attentions", None) or () if one is not None]
    others = [weights for module, weights in returned if module not in asked]
    if any(one is other for one in given for other in others):
        return None
    return [_heads(one, heads) for one in given] or None


def _heads(weights: torch.Tensor, heads: int) -> np.ndarray:
    """(H, Q, K) of one sequence, with all its `heads`: a rank may have only some."""
    if ranks.count() > 1 and weights.shape[1] < heads:
        weights = ranks.joined(weights, 1)
    return np.asarray(weights[0].float().cpu().numpy())


@contextlib.contextmanager
def _noting_weights(
    model: Any, modules: set[int], noted: list[tuple[int, torch.Tensor]]
) -> Iterator[None]:
    """While inside, (B, H, Q, K) weights that one of these modules returns are noted with its id.

    Attention modules return their output first, then their weights.
    """

    def note(module: Any, args: Any, output: Any) -> None:
        weights = output[1] if isinstance(output, tuple) and len(output) > 1 else None
        if isinstance(weights, torch.Tensor) and weights.ndim == 4:
            noted.append((id(module), weights))

    with contextlib.ExitStack() as stack:
        for module in model.modules():
            if id(module) in modules:
                stack.callback(module.register_forward_hook(note).remove)
        yield


def every_slot(runner: Runner, request: RunRequest, layout: Layout, stop: Stop) -> ForwardPass:
    """An uncached pass with outputs kept and logits (T, V) of every slot."""
    slots = range(len(layout.ids))
    return forward(runner, request, layout, 0, None, stop, keep_outputs=True, at=slots)


def prefix_shift(
    runner: Runner, request: RunRequest, layout: Layout, whole: ForwardPass, stop: Stop
) -> float:
    """How far earlier positions' logits move when the last token changes.

    `whole` is the pass of `layout` with logits of its last slots, (n, V).
    """
    slots = range(len(layout.ids) - len(whole.logits), len(layout.ids))
    vocabulary = runner.model.get_input_embeddings().num_embeddings
    other = with_last_changed(layout, vocabulary)
    moved = forward(runner, request, other, 0, None, stop, at=slots)
    valid = np.array(layout.attention_mask[slots.start : -1], bool)
    return largest((whole.logits - moved.logits)[:-1][valid])


def cached_passes(
    runner: Runner, request: RunRequest, layout: Layout, steps: int, stop: Stop
) -> Iterator[ForwardPass]:
    """A prefill of all but the last `steps` slots, then cached steps, one slot each.

    Leaves the cache filled with all of `layout`.
    """
    length = len(layout.ids)
    runner.cache.policy = runner.kept_by(request)
    runner.cache.fresh()
    for end in range(length - steps, length + 1):
        start = 0 if end == length - steps else end - 1
        part, cache = layout.first(end), runner.cache.live
        yield forward(runner, request, part, start, cache, stop, keep_outputs=True)
    runner.cache.grew(layout, length)


def cached_gap(
    runner: Runner, request: RunRequest, layout: Layout, reference: np.ndarray, stop: Stop
) -> float:
    """Prefill of all but the last n - 1 slots, then cached steps, against `reference` (n, V)."""
    passes = cached_passes(runner, request, layout, len(reference) - 1, stop)
    gaps = [largest(done.logits - row) for done, row in zip(passes, reference, strict=True)]
    return max(gaps)


def crop_gap(
    runner: Runner, request: RunRequest, layout: Layout, slot: int, expected: np.ndarray, stop: Stop
) -> float:
    """Logits (V,) of `slot` after cutting the filled cache back to it, against `expected`."""
    before, runner.cache.can_crop = runner.cache.can_crop, True
    try:
        if not runner.cache.cut_to(slot):
            return float("inf")
        part = layout.first(slot + 1)
        again = forward(runner, request, part, slot, runner.cache.live, stop)
    finally:
        runner.cache.can_crop = before
    return largest(again.logits - expected)


@contextlib.contextmanager
def _generating_with(model: Any, bare: GenerationConfig) -> Iterator[None]:
    """While inside, the model's own settings (penalties, stop strings, forms of output) are off.

    An argument would not do: what it leaves open is taken from the model's own.
    """
    own, model.generation_config = model.generation_config, bare
    try:
        yield
    finally:
        model.generation_config = own


def generated(runner: Runner, layout: Layout, tokens: int, stop: Stop = never) -> list[int]:
    """transformers' own greedy generate() from the real tokens of `layout`."""

    def told_to_stop(*_: Any, **__: Any) -> bool:
        if stop():
            raise Cancelled
        return False

    model, card = runner.model, runner.loaded.card
    real_ids = [i for i, m in zip(layout.ids, layout.attention_mask, strict=True) if m]
    inputs = torch.tensor([real_ids], device=model.device)
    counted = {}
    if runner.first_position:  # generate() would count from 0
        first = runner.first_position
        places = torch.arange(first, first + len(real_ids), device=model.device)
        counted = runner.accepted({"position_ids": places[None]})
    bare = GenerationConfig(
        max_new_tokens=tokens,
        do_sample=False,
        eos_token_id=list(card.eos_ids) or None,
        pad_token_id=card.pad_id,
        # Where no cache works, it has none either; and for "plain" its own would forget tokens.
        use_cache=runner.cache_offered and runner.cache.kind != "plain",
    )
    with ranks.no_gradients(), _generating_with(model, bare):
        output = model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            stopping_criteria=[told_to_stop],
            **counted,
        )
    return [int(i) for i in output[0, len(real_ids) :]]
