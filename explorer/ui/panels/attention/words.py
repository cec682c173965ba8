"""What is under the cursor, in words: cells, rows, heads, and which comparison is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QCoreApplication

from explorer.figures.attention import map_blocks
from explorer.figures.attention import maps as figures
from explorer.figures.attention.head_means import Figure
from explorer.figures.attention.head_scores import HeadScores
from explorer.figures.attention.map_request import Beside, DrawnMap, DrawnMaps, HeadInStep
from explorer.figures.attention.maps import Map, QueryRow
from explorer.figures.attention.mask_pair import window_of, windows
from explorer.figures.text.tokens import Label
from explorer.trace.trace import Trace
from explorer.wording import exact_percent, information, percent


def _tr(text: str) -> str:
    return QCoreApplication.translate("AttentionWords", text)


def title(figure: Figure, layer: int, head: int) -> str:
    """What the map is of."""
    return {
        "head": _tr("Layer {0} · head {1}"),
        "sinkless": _tr("Layer {0} · head {1}"),
        "mean_heads": _tr("Layer {0} · mean"),
        "max_heads": _tr("Layer {0} · max"),
        "mean_layers": _tr("All layers · mean"),
        "max_layers": _tr("All layers · max"),
        "rollout": _tr("Rollout to layer {0}"),
    }[figure].format(layer, head)


def shown(drawn: DrawnMaps, query: int | None, *, step: bool = True) -> str:
    """Everything that tells one picture of the same prompt from another; `query`: of one row."""
    request = drawn.request
    parts = [title(request.figure, request.look.layer, request.look.head)]
    if request.figure == "sinkless":
        parts.append(_tr("no first token"))
    if step and request.look.step:
        parts.append(_tr("step {0}").format(request.look.step))
    if query is not None:
        parts.append(_tr("token {0}").format(query))
    if request.beside is not None:
        other = {"run": _tr("real run"), "scores": _tr("same scores")}[request.beside]
        parts.append(_tr("with and without mask, {0}").format(other))
    return " · ".join(parts)


def caveat(figure: Figure) -> str:
    """What must be known of a figure that the model itself never computes; empty for its own."""
    return {
        "sinkless": _tr(
            "Without the first token, each row scaled up to 100 % again: not the model's own "
            "weights."
        ),
        "rollout": _tr(
            "Rollout: head means multiplied layer by layer, half of each the residual stream, as "
            "if nothing else happened. An estimate of where things flow, not the model's own."
        ),
        "mean_heads": _tr("A mean over heads hides what single ones do."),
        "max_heads": _tr("The largest weight of any head: rows add up to more than 100 %."),
        "mean_layers": _tr("A mean over heads hides what single ones do."),
        "max_layers": _tr("The largest weight of any head: rows add up to more than 100 %."),
    }.get(figure, "")


def comparison(beside: Beside, trace: Trace, layer: int) -> str:
    """Which comparison is shown, and what stays the same on both sides."""
    sizes, size = windows(trace), window_of(trace, layer)
    if beside == "scores":
        words = _tr(
            "Beside it the masked run's own scores, the mask dropped: only the first layer equals "
            "a real run without the mask."
        )
    elif size:
        words = _tr("Beside it a real run without the mask: tokens read ahead, too.")
    else:
        words = _tr("Beside it a real run without the mask: every token reads all others.")
    sentences = [words]
    if size:
        kept = _tr("Layer {0} keeps its window of {1}, on both sides of a token.")
        sentences.append(kept.format(layer, size))
    elif sizes:
        named = ", ".join(map(str, sizes))
        others = _tr("Layer {0} has no window, others keep theirs (tokens: {1}).")
        sentences.append(others.format(layer, named))
    return " ".join(sentences)


def cell(drawn: DrawnMaps, labels: Sequence[Label], query: int, key: int) -> str:
    """One cell of every map that is shown."""
    maps = [one for one in drawn.maps if one is not None]
    if not maps or max(query, key) >= len(maps[0].map.weights):
        return ""
    who = _tr("{0} reads {1}").format(figures.token(query, labels), figures.token(key, labels))
    if len(drawn.maps) == 1:
        return f"{who}: {_share(maps[0].map, query, key)}{_where(drawn)}"
    parts = [
        _tr("{0} with the mask").format(_side(drawn.maps[0], query, key)),
        _tr("{0} without").format(_side(drawn.maps[1], query, key)),
    ]
    change = drawn.maps[2]
    if change is not None:
        parts.append(_tr("change {0}").format(signed(float(change.map.weights[query, key]))))
    return f"{who}: {', '.join(parts)}{_where(drawn)}"


def _side(one: DrawnMap | None, query: int, key: int) -> str:
    return "…" if one is None else _share(one.map, query, key)


def cell_in_row(drawn: DrawnMaps, labels: Sequence[Label], query: int, key: int) -> str:
    """One cell, and the keys that its row reads most."""
    said = cell(drawn, labels, query, key)
    reads = [row_of(drawn, place, query) for place in range(len(drawn.maps[:2]))]
    count = 3 if len(reads) == 1 else 1
    most = ["…" if read is None else figures.shares(read, labels, count) for read in reads]
    if not said:
        return ""
    if len(most) == 1:
        return _tr("{0}; most: {1}").format(said, most[0])
    return _tr("{0}; most: with the mask {1}, without {2}").format(said, *most)


def _share(whole: Map, query: int, key: int) -> str:
    kind, weight = int(whole.kinds[query, key]), float(whole.weights[query, key])
    return figures.cell_words(kind, weight, query, key)


def signed(change: float) -> str:
    """A change of a share, its sign first."""
    return f"{'−' if change < 0 else '+'}{exact_percent(abs(change))}" if change else "0 %"


def _where(drawn: DrawnMaps) -> str:
    look, figure = drawn.request.look, drawn.request.figure
    if figure in ("head", "sinkless"):
        return " " + _tr("(layer {0} head {1})").format(look.layer, look.head)
    return ""


def row(drawn: DrawnMaps, labels: Sequence[Label], query: int, count: int = 4) -> str:
    """What one query reads most, on every side."""
    who = _tr("{0} reads").format(figures.token(query, labels))
    sides = drawn.maps[:2]
    said = [
        "…" if (read := row_of(drawn, place, query)) is None
        else figures.shares(read, labels, count if len(sides) == 1 else 2)
        for place in range(len(sides))
    ]  # fmt: skip
    if len(sides) == 1:
        return f"{who} {said[0]}"
    return _tr("{0} with the mask {1} · without {2}").format(who, *said)


def row_of(drawn: DrawnMaps, place: int, query: int) -> QueryRow | None:
    """One row of one of the maps; None if it is not there."""
    one = drawn.maps[place]
    if one is None or query >= len(one.map.weights):
        return None
    look, figure = drawn.request.look, drawn.request.figure
    if figure == "head" and len(drawn.maps) == 1:
        return figures.row(look.trace, look.step, look.layer, look.head, query)
    weights, kinds = one.map.weights[query], one.map.kinds[query]
    return QueryRow(query, weights, kinds, look.step, sink=0.0)


def head(
    look: HeadInStep,
    scores: HeadScores | None,
    labels: Sequence[Label],
    query: int,
    layer: int,
    at: int,
) -> str:
    """What one head of the atlas does."""
    why = map_blocks.reason(look.trace, look.step, layer)
    if why:
        return _tr("layer {0} has no attention map: {1}").format(layer, why)
    if at >= map_blocks.record_of(look.trace, look.step, layer).heads:
        return _tr("layer {0} has no head {1}").format(layer, at)
    if scores is not None:
        return _score(scores, layer, at)
    read = figures.row(look.trace, look.step, layer, at, query)
    return _tr("{0}, read by {1}").format(
        figures.sentence(layer, at, read, labels, 3), figures.token(query, labels)
    )


def _score(scores: HeadScores, layer: int, at: int) -> str:
    mean = float(scores.means[layer, at])
    if np.isnan(mean):
        return _tr("layer {0} head {1}: no token here to ask about").format(layer, at)
    words = {
        "first": _tr("{0} on the first token, on average"),
        "previous": _tr("{0} on the token just before, on average"),
        "induction": _tr("{0} on what followed the last copy of the token, on average"),
        "entropy": _tr("rows spread over {0}, on average"),
    }[scores.kind]
    figure = information(mean) if scores.kind == "entropy" else percent(mean)
    return _tr("layer {0} head {1}: {2}").format(layer, at, words.format(figure))
