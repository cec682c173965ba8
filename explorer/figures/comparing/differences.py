"""How far two runs are apart, step by step: choices, logits, distributions and maps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from explorer.figures.attention import map_blocks, maps
from explorer.figures.comparing.alignment import one_vocabulary
from explorer.sampling import total_variation
from explorer.trace.trace import Trace

Apart = tuple[float, float, float]  # KL in bits, total variation, largest difference of logits


@dataclass(frozen=True, slots=True)
class MapDifference:
    """The head whose map differs most in one pass, by its largest cell."""

    layer: int
    head: int
    difference: float


@dataclass(frozen=True, slots=True)
class StepDifference:
    """One step of both runs.  None: not known, or not to be compared; `why_no_maps` for the maps.

    `kl_bits` is KL(left ‖ right) of the raw distributions, `logits` the largest difference.
    """

    index: int
    same_choice: bool
    kl_bits: float | None
    total_variation: float | None
    logits: float | None
    maps: MapDifference | None
    why_no_maps: str = ""


def steps(left: Trace, right: Trace) -> list[StepDifference]:
    """As many as the shorter run has, with the maps of all heads, which takes a while."""
    shared = one_vocabulary(left, right)
    count = min(len(left.steps), len(right.steps))
    return [_step(left, right, index, shared) for index in range(count)]


def _step(left: Trace, right: Trace, index: int, shared: bool) -> StepDifference:
    apart = of_logits(left.steps[index].logits, right.steps[index].logits) if shared else None
    largest, why = _maps(left, right, index, shared)
    return replace(without_maps(left, right, index, apart), maps=largest, why_no_maps=why)


def without_maps(left: Trace, right: Trace, index: int, apart: Apart | None) -> StepDifference:
    """Step `index` of both runs; `apart` as `of_logits`, None where the vocabularies differ."""
    a, b = left.chosen[index], right.chosen[index]
    same = a.raw == b.raw if apart is None else a.id == b.id
    kl, variation, logits = apart or (None, None, None)
    return StepDifference(index, same, kl, variation, logits, maps=None)


def of_logits(one: np.ndarray, other: np.ndarray) -> Apart:
    """`distributions` of the logits of two passes, as they were recorded."""
    return distributions(one.astype(np.float64), other.astype(np.float64))


def distributions(one: np.ndarray, other: np.ndarray) -> Apart:
    """KL in bits, total variation, and the largest difference of the logits themselves."""
    p, q = _log_softmax(one), _log_softmax(other)
    there = np.isfinite(p)  # what has no probability adds nothing
    with np.errstate(invalid="ignore"):
        kl = float((np.exp(p[there]) * (p[there] - q[there])).sum() / np.log(2))
        apart = np.abs(one - other)
    apart[one == other] = 0.0  # both minus infinity
    return max(kl, 0.0), total_variation(np.exp(p), np.exp(q)), float(apart.max())


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def why_no_maps(left: Trace, right: Trace, at_left: int, at_right: int) -> str:
    """Why maps of these two steps can't be compared; empty if they can.  Of one vocabulary."""
    sides = ((left, at_left), (right, at_right))
    read = [
        [(t.id, t.origin == "padding") for t in trace.tokens[: trace.read_slots(at)]]
        for trace, at in sides
    ]
    if read[0] != read[1]:
        return "the two runs read different tokens"
    layers, others = (map_blocks.layer_count(trace, at) for trace, at in sides)
    if layers != others:
        return f"the models have {layers} and {others} layers"
    for layer in range(layers):
        heads, more = (map_blocks.record_of(trace, at, layer).heads for trace, at in sides)
        if heads != more:
            return f"layer {layer} has {heads} and {more} heads"
    return ""


def _maps(left: Trace, right: Trace, index: int, shared: bool) -> tuple[MapDifference | None, str]:
    """The largest difference, or None and why."""
    if not shared:
        return None, "the two runs read different tokens"
    why = why_no_maps(left, right, index, index)
    if why:
        return None, why
    found: MapDifference | None = None
    for layer in range(map_blocks.layer_count(left, index)):
        for head in range(map_blocks.record_of(left, index, layer).heads):
            try:
                a, b = (maps.pass_map(trace, index, layer, head) for trace in (left, right))
            except ValueError:
                continue  # a layer that was not recorded on both sides
            gap = _largest_gap(a, b)
            if found is None or gap > found.difference:
                found = MapDifference(layer, head, gap)
    return found, "" if found else "no layer was recorded on both sides"


def _largest_gap(a: maps.Map, b: maps.Map) -> float:
    """Over the rows that both passes read; a key that one of them lacks counts as weight 0."""
    first = max(a.first_query, b.first_query)
    rows = [one.weights[first - one.first_query :] for one in (a, b)]
    slots = max(one.first_key + one.weights.shape[1] for one in (a, b))
    filled = [
        np.pad(part, ((0, 0), (one.first_key, slots - one.first_key - part.shape[1])))
        for one, part in zip((a, b), rows, strict=True)
    ]
    return float(np.abs(filled[0] - filled[1]).max(initial=0.0))
