"""Maps of more than one head: means, maxima, rollout, and a head without its first token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from explorer.figures.attention import map_blocks as parts
from explorer.figures.attention.layer_rows import LayerRows
from explorer.figures.attention.map_blocks import ABSENT, MASKED, READ
from explorer.figures.attention.maps import ROWS_AT_ONCE, Map, full_map
from explorer.figures.attention.mask_pair import Side

Figure = Literal[
    "head", "sinkless", "mean_heads", "max_heads", "mean_layers", "max_layers", "rollout"
]
ALL_LAYERS: frozenset[Figure] = frozenset({"mean_layers", "max_layers"})


def build(
    side: Side, layer: int, head: int, figure: Figure, known: Map | None = None
) -> Iterator[float | Map]:
    """How much is done, from 0 to 1, and at last the (T, T) map itself.

    `known` is an earlier map of the same head.  ValueError with the reason if there is none.
    """
    if figure == "head":
        yield full_map(side.trace, side.step, layer, head, known)
    elif figure == "sinkless":
        yield without_first(full_map(side.trace, side.step, layer, head, known), first_real(side))
    elif figure == "rollout":
        yield from _rollout(side, layer)
    else:
        yield from _over_heads(side, layer, figure)


def first_real(side: Side) -> int:
    """The first slot that holds no padding."""
    tokens = side.trace.tokens[: side.slots]
    return next((slot for slot, token in enumerate(tokens) if token.origin != "padding"), 0)


def without_first(whole: Map, first: int) -> Map:
    """The first token's column taken out and each row brought back to a sum of 1.

    Rows that read nothing else are 0; the column is ABSENT.
    """
    weights, kinds = whole.weights.copy(), whole.kinds.copy()
    weights[:, first], kinds[:, first] = 0, ABSENT
    total = weights.sum(axis=1, keepdims=True)
    np.divide(weights, total, out=weights, where=total > 0)
    return _map(whole.layer, whole.head, weights, kinds, whole.passes)


def layers_of(side: Side, layer: int, figure: Figure) -> list[int]:
    """The layers with a map that a figure is made of; ValueError if there are none."""
    count = parts.layer_count(side.trace, side.step)
    wanted = range(count) if figure in ALL_LAYERS else range(layer + 1)
    if figure in ("mean_heads", "max_heads"):
        wanted = range(layer, layer + 1)
    for at in wanted:
        if parts.record_of(side.trace, side.step, at).away:  # it has a map, which would be missed
            why = parts.reason(side.trace, side.step, at)
            raise ValueError(f"Layer {at} has no attention map yet: {why}.")
    found = [at for at in wanted if not parts.reason(side.trace, side.step, at)]
    if not found:
        why = parts.reason(side.trace, side.step, layer)
        raise ValueError(f"Layer {layer} has no attention map: {why}.")
    return found


def _over_heads(side: Side, layer: int, figure: Figure) -> Iterator[float | Map]:
    """Mean or maximum over the heads of one layer or of all."""
    layers = layers_of(side, layer, figure)
    slots = side.slots
    weights = np.zeros((slots, slots), np.float32)
    kinds = np.zeros((slots, slots), np.uint8)
    heads = 0
    for done, at in enumerate(layers):
        rows = LayerRows(side, at)
        heads += rows.heads
        for first, last in rows.portions():
            found, kind = rows.take(first, last)
            part = weights[first:last]
            if figure.startswith("mean"):
                part += found.sum(axis=0)
            else:
                np.maximum(part, found.max(axis=0), out=part)
            np.maximum(kinds[first:last], kind, out=kinds[first:last])
            yield (done + last / slots) / len(layers)
    if figure.startswith("mean"):
        weights /= heads
    yield _map(layer, -1, weights, kinds, side.passes)


def _rollout(side: Side, layer: int) -> Iterator[float | Map]:
    """Attention rollout (Abnar and Zuidema 2020) from the first layer through this one.

    Each layer counts as half its mean over heads and half the residual stream, rows brought to a
    sum of 1; layers without a map pass everything on.
    """
    layers = layers_of(side, layer, "rollout")
    if side.trace.reused_tokens:
        raise ValueError(f"There is no rollout of this run: {parts.REUSED}.")
    slots = side.slots
    whole = np.eye(slots, dtype=np.float32)
    kinds = np.full((slots, slots), ABSENT, np.uint8)
    for done, at in enumerate(layers):
        rows = LayerRows(side, at)
        after = np.empty_like(whole)
        for first, last in rows.portions():
            found, kind = rows.take(first, last)
            mixed = found.mean(axis=0)
            mixed[np.arange(last - first), np.arange(first, last)] += 1
            mixed /= mixed.sum(axis=1, keepdims=True)
            for begin in range(0, last - first, ROWS_AT_ONCE):
                end = min(begin + ROWS_AT_ONCE, last - first)
                after[first + begin : first + end] = mixed[begin:end] @ whole
            np.maximum(kinds[first:last], kind, out=kinds[first:last])
            yield (done + last / slots) / len(layers)
        whole = after
    kinds = np.where(whole > 0, READ, np.where(kinds == READ, MASKED, kinds)).astype(np.uint8)
    yield _map(layer, -1, whole, kinds, side.passes)


def _map(
    layer: int, head: int, weights: np.ndarray, kinds: np.ndarray, passes: tuple[object, ...]
) -> Map:
    for array in (weights, kinds):
        array.flags.writeable = False
    return Map(weights, kinds, 0, 0, layer, head, passes)  # type: ignore[arg-type]
