"""The figures behind what is on screen, as rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from PySide6.QtCore import QCoreApplication

from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_scores import HeadScores
from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.attention.map_request import DrawnMap, DrawnMaps
from explorer.figures.text.table_text import exact
from explorer.figures.text.tokens import Label
from explorer.ui.panels.attention import words

translate = QCoreApplication.translate


def maps(drawn: DrawnMaps, labels: Sequence[Label]) -> Iterator[Sequence[object]]:
    """Weights, "masked", or nothing where the kernel saw no such key; one block per map."""
    sides = _sides(drawn)
    for place, (side, one) in enumerate(sides):
        if one is None:
            continue
        if place:
            yield ()
        yield from _block(drawn, one, side, labels)


def _sides(drawn: DrawnMaps) -> list[tuple[str, DrawnMap | None]]:
    if len(drawn.maps) == 1:
        return [("", drawn.maps[0])]
    names = (
        *words.side_names(drawn.request.beside)[:2],
        translate("AttentionTables", "difference"),
    )
    return list(zip(names, drawn.maps, strict=True))


def _block(
    drawn: DrawnMaps, one: DrawnMap, side: str, labels: Sequence[Label]
) -> Iterator[Sequence[object]]:
    slots = range(len(one.map.weights))
    names = [f"{slot} {labels[slot].text}" for slot in slots]
    yield [", ".join(filter(None, [_name(drawn), side])), *names]
    for name, weights, kinds in zip(names, one.map.weights, one.map.kinds, strict=True):
        yield [name, *_cells(weights, kinds)]


def _name(drawn: DrawnMaps) -> str:
    look, figure = drawn.request.look, drawn.request.figure
    if figure in ("head", "sinkless"):
        name = translate("AttentionTables", "layer {0} head {1}").format(look.layer, look.head)
        return (
            name
            if figure == "head"
            else translate("AttentionTables", "{0} without its first token").format(name)
        )
    return words.title(figure, look.layer, look.head)


def _cells(weights: np.ndarray, kinds: np.ndarray) -> list[object]:
    return [
        weight if kind == READ else ("masked" if kind == MASKED else "")
        for weight, kind in zip(exact(weights), kinds.tolist(), strict=True)
    ]


def heads(atlas: Atlas | None, scores: HeadScores | None) -> Iterator[Sequence[object]]:
    """A line per head: its largest weight (of a difference: change), and what it is sorted by."""
    if atlas is None:
        return
    kind = "" if scores is None else f"{scores.kind}_mean"
    largest = "largest_change" if atlas.signed else "largest_weight"
    yield tuple(filter(None, ("layer", "head", largest, kind)))
    tops = atlas.tops
    for layer, count in enumerate(atlas.heads):
        for head in range(count):
            mean = () if scores is None else (float(scores.means[layer, head]),)
            yield (layer, head, float(tops[layer, head]), *mean)


def row(drawn: DrawnMaps, labels: Sequence[Label], query: int) -> Iterator[Sequence[object]]:
    """One query's row: a line per key."""
    sides = [
        (name or translate("AttentionTables", "weight"), one)
        for name, one in _sides(drawn)
        if one is not None
    ]
    yield ["key", "text", *(name for name, _ in sides)]
    cells = [_cells(one.map.weights[query], one.map.kinds[query]) for _, one in sides]
    for key, figures in enumerate(zip(*cells, strict=True)):
        yield [key, labels[key].text, *figures]


def array(drawn: DrawnMaps) -> np.ndarray:
    """(T, T) float32 of one map, or (3, T, T) with, without and difference; NaN = not read."""
    found = [
        np.where(one.map.kinds == READ, one.map.weights, np.float32(np.nan))
        for one in drawn.maps
        if one is not None
    ]
    return np.asarray(found[0] if len(found) == 1 else np.stack(found))
