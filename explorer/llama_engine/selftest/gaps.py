"""Proofs that what is drawn is what llama.cpp did, each returning one measured number.

Every comparison rebuilds maps through `explorer.trace`, the code that the window draws with, and
holds them against the weights that llama.cpp's own attention computed in the same pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.llama_engine.passes.context import Context
from explorer.llama_engine.passes.generate import Done, forward
from explorer.llama_engine.passes.inside import Inside
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace import attention
from explorer.trace.attention import LayerRecord
from explorer.trace.interventions.cells import CUT, of_head
from explorer.trace.interventions.kinds import Interventions
from explorer.trace.rounding import largest


def every_slot(
    runner: LlamaRunner,
    ids: Sequence[int],
    stop: Stop,
    causal: bool = True,
    inside: Inside | None = None,
) -> Done:
    """An uncached pass with llama.cpp's own weights kept, and logits (T, V) of every slot."""
    context, wanted = runner.spare_context(len(ids), causal), Wanted(weights=True, inside=inside)
    return forward(runner, context, ids, wanted, stop, at=range(len(ids)))


def records(runner: LlamaRunner, done: Done) -> tuple[LayerRecord, ...]:
    """Of every layer, whether proven or not."""
    return done.seen.records(runner.card.layers, None)


def own_weights(done: Done, layer: int) -> np.ndarray | None:
    """(H, Q, K) float32 as llama.cpp computed them; None if they were not kept."""
    calls = done.seen.calls(layer)
    parts = [call.weights for call in calls if call.weights is not None]
    if not parts or len(parts) < len(calls):
        return None
    whole = np.zeros((len(parts[0]), sum(p.shape[1] for p in parts), done.seen.slots), np.float32)
    begin = 0
    for part in parts:
        whole[:, begin : begin + part.shape[1], : part.shape[2]] = part
        begin += part.shape[1]
    return whole


def map_gap(record: LayerRecord, keys: np.ndarray | None, own: np.ndarray | None) -> float:
    """Rebuilt weights against llama.cpp's own, all heads; inf where there is nothing to compare."""
    if record.kind != "qk" or keys is None or own is None or len(own) != record.heads:
        return float("inf")
    worst = 0.0
    for head in range(record.heads):
        ours = attention.weights(record, keys, head)
        worst = max(worst, largest(ours - own[head])) if ours.shape == own[head].shape else np.inf
    return float(worst)


def map_gaps(runner: LlamaRunner, done: Done) -> dict[int, float]:
    """Per layer that attends, of a pass that began at the first slot."""
    found = {}
    for record in records(runner, done):
        own = own_weights(done, record.layer)
        if own is not None:
            found[record.layer] = map_gap(record, record.keys, own)
    return found


def row_sums(runner: LlamaRunner, done: Done) -> tuple[float, float]:
    """(largest distance of a row's sum from 1 where there is no sink, largest sink mass).

    A row whose cells are all cut sums to 0.
    """
    gap = sink = 0.0
    for record in done.seen.records(runner.card.layers, runner.proven):
        if record.kind == "absent":
            continue
        for head in range(record.heads):
            keys = record.keys if record.keys is not None else np.empty(0)
            sums = attention.weights(record, keys, head).sum(axis=1)
            if record.sinks is not None or done.seen.calls(record.layer)[0].sinks is not None:
                sink = max(sink, float((1 - sums).max()))
            else:
                mask = record.mask
                seen = 1 if mask is None else mask.allowed(head=head).any(axis=1)
                gap = max(gap, largest(sums - np.asarray(seen)))
    return gap, sink


def above_diagonal(done: Done) -> dict[int, float]:
    """Per layer: the largest of llama.cpp's own weights on a later token (whole passes only)."""
    found = {}
    for layer in {layer for one in done.seen.seen for layer in one.calls}:
        own = own_weights(done, layer)
        if own is not None:
            found[layer] = float(np.triu(own, 1).max(initial=0.0))
    return found


def cut_weight(done: Done, interventions: Interventions) -> float:
    """The largest of llama.cpp's own weights on a cell that is cut (whole passes only)."""
    slots, left = (0, done.seen.slots), 0.0
    for layer in {layer for one in done.seen.seen for layer in one.calls}:
        own = own_weights(done, layer)
        for head, weights in enumerate(() if own is None else own):
            cut = of_head(interventions, layer, head, slots, slots) == CUT
            left = max(left, float(weights[cut].max(initial=0.0)))
    return left


def cached_passes(
    runner: LlamaRunner, context: Context, ids: Sequence[int], steps: int, stop: Stop
) -> list[Done]:
    """A prefill of all but the last `steps` slots, then cached steps, one slot each."""
    context.clear()
    ends = range(len(ids) - steps, len(ids) + 1)
    return [forward(runner, context, ids[:end], Wanted(weights=True), stop) for end in ends]
