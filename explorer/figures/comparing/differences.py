"""How far two runs are apart, step by step: choices, logits, distributions and maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.figures.attention import map_blocks, maps
from explorer.figures.comparing.alignment import one_vocabulary
from explorer.sampling import total_variation
from explorer.trace.trace import Trace


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
    """As many as the shorter run has."""
    shared = one_vocabulary(left, right)
    return [_step(left, right, i, shared) for i in range(min(len(left.steps), len(right.steps)))]


def _step(left: Trace, right: Trace, index: int, shared: bool) -> StepDifference:
    a, b = left.chosen[index], right.chosen[index]
    kl = variation = logits = None
    if shared:
        one, other = (t.steps[index].logits.astype(np.float64) for t in (left, right))
        kl, variation, logits = distributions(one, other)
    largest, why = _maps(left, right, index, shared)
    return StepDifference(
        index, a.id == b.id if shared else a.raw == b.raw, kl, variation, logits, largest, why
    )


def distributions(one: np.ndarray, other: np.ndarray) -> tuple[float, float, float]:
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


def _maps(left: Trace, right: Trace, index: int, shared: bool) -> tuple[MapDifference | None, str]:
    """The largest difference, or None and why."""
    read = [[(t.id, t.origin == "padding") for t in trace.tokens[: trace.read_slots(index)]]
            for trace in (left, right)]  # fmt: skip
    if not shared or read[0] != read[1]:
        return None, "the two runs read different tokens"
    shapes = [map_blocks.layer_count(trace, index) for trace in (left, right)]
    if shapes[0] != shapes[1]:
        return None, f"the models have {shapes[0]} and {shapes[1]} layers"
    found: MapDifference | None = None
    for layer in range(shapes[0]):
        records = [map_blocks.record_of(trace, index, layer) for trace in (left, right)]
        if records[0].heads != records[1].heads:
            return None, f"layer {layer} has {records[0].heads} and {records[1].heads} heads"
        for head in range(records[0].heads):
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
