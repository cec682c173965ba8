"""A logit as the sum of its parts: a map of layers by heads, sums by layer, and a ranking.

Axes: L layers, C columns (the heads, then what else a layer adds).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.trace.inside.attribution import Attribution, LogitPart

Column = tuple[str, int | None]  # kind of part, and its head
_AFTER_HEADS = ("attention", "mixer", "mlp", "other")


@dataclass(frozen=True, slots=True, eq=False)
class PartsMap:
    """What each part of each layer adds to the logit."""

    columns: tuple[Column, ...]  # C
    values: np.ndarray  # (L, C) float64; NaN where a layer has no such part

    @property
    def top(self) -> float:
        """The largest value, whatever its sign; 1 if there is none."""
        return float(np.nanmax(np.abs(self.values), initial=0.0)) or 1.0


def parts_map(found: Attribution, layers: int) -> PartsMap:
    """Parts of the layers; several of one kind in a layer are added up."""
    inside = [part for part in found.parts if part.layer is not None and part.layer < layers]
    heads = max((part.head for part in inside if part.head is not None), default=-1) + 1
    columns: list[Column] = [("head", head) for head in range(heads)]
    kinds = {part.kind for part in inside if part.head is None}
    columns += [(kind, None) for kind in _AFTER_HEADS if kind in kinds]
    places = {column: place for place, column in enumerate(columns)}
    values = np.full((layers, len(columns)), np.nan)
    for part in inside:
        place = places.get((part.kind, part.head))
        if place is not None and part.layer is not None:
            before = values[part.layer, place]
            values[part.layer, place] = part.value + (0.0 if np.isnan(before) else before)
    return PartsMap(tuple(columns), values)


def by_layer(found: Attribution, layers: int) -> tuple[np.ndarray, np.ndarray]:
    """Two of (L,) float64: what mixes tokens adds, and all else of each layer."""
    mixing, rest = np.zeros(layers), np.zeros(layers)
    for part in found.parts:
        if part.layer is not None and part.layer < layers:
            mixes = part.kind in ("head", "attention", "mixer")
            (mixing if mixes else rest)[part.layer] += part.value
    return mixing, rest


def outside(found: Attribution) -> list[LogitPart]:
    """Parts of no layer: embedding, bias and rounding."""
    return [part for part in found.parts if part.layer is None]


def ranked(found: Attribution) -> list[LogitPart]:
    """All parts, those that matter most first, whatever their sign."""
    return sorted(found.parts, key=lambda part: -abs(part.value))


def table(found: Attribution, in_order: bool = False) -> Iterator[Sequence[object]]:
    """Every part, and the sum; `in_order`: those that matter most first."""
    yield "kind", "layer", "head", "value"
    for part in ranked(found) if in_order else found.parts:
        layer, head = ("" if one is None else one for one in (part.layer, part.head))
        yield part.kind, layer, head, part.value
    yield "sum", "", "", found.sum
