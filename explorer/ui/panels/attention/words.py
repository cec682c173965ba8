"""What is under the cursor, in words: cells, rows, heads, and which comparison is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import QCoreApplication

from explorer import wording
from explorer.figures.attention import map_blocks
from explorer.figures.attention import maps as figures
from explorer.figures.attention.head_means import Figure
from explorer.figures.attention.head_scores import HeadScores
from explorer.figures.attention.map_blocks import MASKED, READ
from explorer.figures.attention.map_request import Beside, DrawnMap, DrawnMaps, HeadInStep
from explorer.figures.attention.maps import Map, QueryRow
from explorer.figures.attention.mask_pair import window_of, windows
from explorer.figures.text.characters import elide
from explorer.figures.text.tokens import Label
from explorer.trace.interventions.kinds import Patch, Silence
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.ui.canvases.maps.atlas import HeadChange
from explorer.ui.panel.intervention_words import listed, short
from explorer.wording import exact_percent, information, percent

translate = QCoreApplication.translate


def token(slot: int, labels: Sequence[Label]) -> str:
    """A token and its position: "'␣capital' (3)", elided."""
    if slot >= len(labels):
        return translate("AttentionWords", "position {0}").format(slot)
    return f"'\u2068{elide(labels[slot].text, 24)}\u2069' ({slot})"


def shares(read: QueryRow, labels: Sequence[Label], count: int = 1) -> str:
    """Where a query's attention goes: "82.3 % to 'The' (0), 4.0 % to itself"."""
    keys = read.top_keys(count)
    if not keys:
        return translate("AttentionWords", "no attention")
    itself = translate("AttentionWords", "{0} to itself")
    other = translate("AttentionWords", "{0} to {1}")
    said = [
        (itself if key == read.query else other).format(percent(weight), token(key, labels))
        for key, weight in keys
    ]
    if read.sink:
        sink = translate("AttentionWords", "{0} to the attention sink")
        said.append(sink.format(percent(read.sink)))
    return ", ".join(said)


def cell_words(kind: int, weight: float, query: int, key: int) -> str:
    """What one cell is: its share, or why it has none."""
    if kind == READ:
        return exact_percent(weight)
    if kind == MASKED:
        return translate("AttentionWords", "masked")
    if key > query:
        return translate("AttentionWords", "not computed (the token did not exist yet)")
    return translate("AttentionWords", "no longer in this layer's cache")


def title(figure: Figure, layer: int, head: int) -> str:
    """What the map is of."""
    return {
        "head": translate("AttentionWords", "Layer {0} · head {1}"),
        "sinkless": translate("AttentionWords", "Layer {0} · head {1}"),
        "mean_heads": translate("AttentionWords", "Layer {0} · mean"),
        "max_heads": translate("AttentionWords", "Layer {0} · max"),
        "mean_layers": translate("AttentionWords", "All layers · mean"),
        "max_layers": translate("AttentionWords", "All layers · max"),
        "rollout": translate("AttentionWords", "Rollout to layer {0}"),
    }[figure].format(layer, head)


def shown(drawn: DrawnMaps, query: int | None, *, step: bool = True) -> str:
    """Everything that tells one picture of the same prompt from another; `query`: of one row."""
    request = drawn.request
    parts = [title(request.figure, request.look.layer, request.look.head)]
    if request.figure == "sinkless":
        parts.append(translate("AttentionWords", "no first token"))
    if step and request.look.step:
        parts.append(translate("AttentionWords", "token {0}").format(request.look.step + 1))
    if query is not None:
        parts.append(translate("AttentionWords", "position {0}").format(query))
    if request.beside is not None:
        other = {
            "run": translate("AttentionWords", "real run"),
            "scores": translate("AttentionWords", "same scores"),
        }.get(request.beside)
        if other is not None:
            parts.append(translate("AttentionWords", "with and without mask, {0}").format(other))
        elif request.beside == "form":
            parts.append(translate("AttentionWords", "in float32 and as it is"))
        else:
            parts.append(translate("AttentionWords", "without and with interventions"))
    return " · ".join(parts)


def caveat(figure: Figure) -> str:
    """What must be known of a figure that the model itself never computes; empty for its own."""
    return {
        "sinkless": translate(
            "AttentionWords",
            "Attention to the first token is removed and each row rescaled to 100 %. "
            "These are not the model's own weights.",
        ),
        "rollout": translate(
            "AttentionWords",
            "Rollout: head means multiplied layer by layer, each mixed half with the "
            "residual stream. This is an estimate of information flow, not a model "
            "output.",
        ),
        "mean_heads": translate("AttentionWords", "A mean over heads hides what single heads do."),
        "max_heads": translate(
            "AttentionWords", "The largest weight of any head. Rows can sum to more than 100 %."
        ),
        "mean_layers": translate("AttentionWords", "A mean over heads hides what single heads do."),
        "max_layers": translate(
            "AttentionWords", "The largest weight of any head. Rows can sum to more than 100 %."
        ),
    }.get(figure, "")


def side_names(beside: Beside | None) -> tuple[str, str, str]:
    """The two sides of a comparison, and their difference."""
    if beside == "form":
        return (
            translate("AttentionWords", "in float32"),
            translate("AttentionWords", "as it is"),
            translate("AttentionWords", "as it is − float32"),
        )
    if beside == "interventions":
        return (
            translate("AttentionWords", "no interventions"),
            translate("AttentionWords", "with interventions"),
            translate("AttentionWords", "with − without"),
        )
    return (
        translate("AttentionWords", "with mask"),
        translate("AttentionWords", "without mask"),
        translate("AttentionWords", "without − with"),
    )


def comparison(beside: Beside, trace: Trace, layer: int) -> str:
    """Which comparison is shown, and what stays the same on both sides."""
    if beside == "form":
        stored = f" ({trace.card.stored_dtype})" if trace.card.stored_dtype else ""
        return translate(
            "AttentionWords",
            "Left: the weights converted to float32. Right: the file as it is{0}, run by "
            "llama.cpp. Same tokens, two real runs.",
        ).format(stored)
    if beside == "interventions":
        if not trace.request.interventions:
            return translate(
                "AttentionWords", "This run has no interventions, so both sides are the same."
            )
        return translate(
            "AttentionWords",
            "Left: a second run of the same tokens, without interventions. Right: this run, with "
            "{0}.",
        ).format(listed(trace.request.interventions))
    sizes, size = windows(trace), window_of(trace, layer)
    if beside == "scores":
        words = translate(
            "AttentionWords",
            "Right: the same scores with the mask removed. Only layer 0 matches a real "
            "unmasked run.",
        )
    elif size:
        words = translate(
            "AttentionWords",
            "Right: a second run with the mask removed. Tokens also attend to later tokens.",
        )
    else:
        words = translate(
            "AttentionWords",
            "Right: a second run with the mask removed. Every token attends to all others.",
        )
    sentences = [words]
    if size:
        kept = translate("AttentionWords", "Layer {0} keeps its window of {1} tokens on each side.")
        sentences.append(kept.format(layer, size))
    elif sizes:
        named = ", ".join(map(str, sizes))
        others = translate(
            "AttentionWords", "Layer {0} has no window; other layers keep theirs ({1} tokens)."
        )
        sentences.append(others.format(layer, named))
    return " ".join(sentences)


def cell(drawn: DrawnMaps, labels: Sequence[Label], query: int, key: int) -> str:
    """One cell of every map that is shown."""
    maps = [one for one in drawn.maps if one is not None]
    if not maps or max(query, key) >= len(maps[0].map.weights):
        return ""
    row, column = token(query, labels), token(key, labels)
    if len(drawn.maps) == 1:
        return f"{_attends(maps[0].map, query, key, row, column)}{_where(drawn)}"
    who = translate("AttentionWords", "Query {0}, key {1}").format(row, column)
    first, second = (_side(one, query, key) for one in drawn.maps[:2])
    parts = [_both(drawn, "{0}, {1}").format(first, second)]
    change = drawn.maps[2]
    if change is not None:
        parts.append(
            translate("AttentionWords", "change {0}").format(
                signed(float(change.map.weights[query, key]))
            )
        )
    return f"{who}: {', '.join(parts)}{_where(drawn)}"


def _attends(whole: Map, query: int, key: int, row: str, column: str) -> str:
    """One cell as a sentence that names its row, its column and its share."""
    kind, share = int(whole.kinds[query, key]), _share(whole, query, key)
    if kind == READ and query == key:
        words = translate("AttentionWords", "Query {0} attends {2} to itself")
    elif kind == READ:
        words = translate("AttentionWords", "Query {0} attends {2} to key {1}")
    else:
        words = translate("AttentionWords", "Query {0}, key {1}: {2}")
    return words.format(row, column, share)


def _both(drawn: DrawnMaps, joined: str) -> str:
    """A pattern for a figure of each side, each with the name of its side before it."""
    if drawn.request.beside == "form":
        names = (
            translate("AttentionWords", "in float32 {0}"),
            translate("AttentionWords", "as it is {1}"),
        )
    elif drawn.request.beside == "interventions":
        names = (
            translate("AttentionWords", "without interventions {0}"),
            translate("AttentionWords", "with them {1}"),
        )
    else:
        names = (
            translate("AttentionWords", "with the mask {0}"),
            translate("AttentionWords", "without {1}"),
        )
    return joined.format(*names)


def _side(one: DrawnMap | None, query: int, key: int) -> str:
    return "…" if one is None else _share(one.map, query, key)


def cell_in_row(drawn: DrawnMaps, labels: Sequence[Label], query: int, key: int) -> str:
    """One cell, and the keys that its row reads most."""
    said = cell(drawn, labels, query, key)
    reads = [row_of(drawn, place, query) for place in range(len(drawn.maps[:2]))]
    count = 3 if len(reads) == 1 else 1
    most = ["…" if read is None else shares(read, labels, count) for read in reads]
    if not said:
        return ""
    if len(most) == 1:
        return translate("AttentionWords", "{0}; most attention: {1}").format(said, most[0])
    both = _both(drawn, "{0}, {1}").format(*most)
    return translate("AttentionWords", "{0}; most attention: {1}").format(said, both)


def _share(whole: Map, query: int, key: int) -> str:
    kind, weight = int(whole.kinds[query, key]), float(whole.weights[query, key])
    return cell_words(kind, weight, query, key)


def signed(change: float, worded: Callable[[float], str] = exact_percent) -> str:
    """A change of a share, its sign first; none where the share is only bounded ("< 0.1 %")."""
    if not change:
        return "0 %"
    share = worded(abs(change))
    return share if share.startswith("<") else f"{'−' if change < 0 else '+'}{share}"


def _where(drawn: DrawnMaps) -> str:
    look, figure = drawn.request.look, drawn.request.figure
    if figure in ("head", "sinkless"):
        return " " + translate("AttentionWords", "(layer {0}, head {1})").format(
            look.layer, look.head
        )
    return ""


def row(drawn: DrawnMaps, labels: Sequence[Label], query: int, count: int = 4) -> str:
    """What one query reads most, on every side."""
    who = translate("AttentionWords", "{0} attends").format(token(query, labels))
    sides = drawn.maps[:2]
    said = [
        "…" if (read := row_of(drawn, place, query)) is None
        else shares(read, labels, count if len(sides) == 1 else 1)
        for place in range(len(sides))
    ]  # fmt: skip
    if len(sides) == 1:
        read = row_of(drawn, 0, query)
        if read is not None and not read.top_keys(1):  # every key was cut
            return translate("AttentionWords", "{0} attends to nothing").format(
                token(query, labels)
            )
        return f"{who} {said[0]}"
    return f"{who} {_both(drawn, '{0} · {1}').format(*said)}"


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
        return translate("AttentionWords", "Layer {0} has no attention map: {1}").format(layer, why)
    if at >= map_blocks.record_of(look.trace, look.step, layer).heads:
        return translate("AttentionWords", "Layer {0} has no head {1}").format(layer, at)
    if scores is not None:
        return _score(scores, layer, at)
    read = figures.row(look.trace, look.step, layer, at, query)
    return translate("AttentionWords", "Layer {0}, head {1}: {2} attends {3}").format(
        layer, at, token(query, labels), shares(read, labels, 3)
    )


def _score(scores: HeadScores, layer: int, at: int) -> str:
    mean = float(scores.means[layer, at])
    if np.isnan(mean):
        return translate("AttentionWords", "Layer {0}, head {1}: no token here qualifies").format(
            layer, at
        )
    words = _of_kind(scores, mean)
    return translate("AttentionWords", "Layer {0}, head {1}: {2}").format(layer, at, words)


def _of_kind(scores: HeadScores, mean: float) -> str:
    """What the figure of a head is of."""
    if scores.kind == "contribution":
        return _added(_figure(scores, mean), *scores.of)
    words = {
        "first": translate("AttentionWords", "{0} to the first token on average"),
        "previous": translate("AttentionWords", "{0} to the previous token on average"),
        "induction": translate(
            "AttentionWords", "{0} to the token after the previous occurrence, on average"
        ),
        "entropy": translate("AttentionWords", "attention entropy {0} on average"),
        "effect": translate(
            "AttentionWords", "{0} on the chosen token's logit when it is silenced"
        ),
    }[scores.kind]
    return words.format(_figure(scores, mean))


def _added(figure: str, token: str, against: str = "") -> str:
    """To what a head adds: a token's logit, or its lead over another's."""
    if against:
        words = translate("AttentionWords", "{0} to the lead of {1} over {2}")
        return words.format(figure, token, against)
    return translate("AttentionWords", "{0} to the logit of {1}").format(figure, token)


def _figure(scores: HeadScores, mean: float) -> str:
    if scores.kind == "effect":  # a fall is a change below zero
        mean = -mean
    if scores.kind in ("effect", "contribution"):
        return wording.signed(mean, ".2f").replace("-", "−")
    return information(mean) if scores.kind == "entropy" else percent(mean)


def changed_heads(request: RunRequest) -> dict[tuple[int, int], HeadChange]:
    """What the run does to the output of heads, by (layer, head); the last of two counts."""
    found: dict[tuple[int, int], HeadChange] = {}
    for one in request.interventions:
        if isinstance(one, Silence | Patch) and one.part == "head":
            found[one.layer, one.head] = "silenced" if isinstance(one, Silence) else "patched"
    return found


def with_change(said: str, request: RunRequest, layer: int, at: int) -> str:
    """What is said of a head, followed by what the run does to its output."""
    changes = [
        short(one)
        for one in request.interventions
        if isinstance(one, Silence | Patch) and one.part == "head"
        if (one.layer, one.head) == (layer, at)
    ]
    return " · ".join([said, *changes[-1:]])


def strongest(scores: HeadScores) -> str:
    """Which head is first in the order, with its figure; or why none can be told from others."""
    if not scores.rows:
        if scores.kind == "induction":
            return translate(
                "AttentionWords",
                "No token comes back here, so induction can't be seen. Repeat words in the prompt.",
            )
        if scores.kind == "contribution":
            return translate(
                "AttentionWords",
                "The heads of this model can't be told apart in the sum of a logit, so they can't "
                "be sorted by what they add.",
            )
        return translate("AttentionWords", "This needs a text of two tokens or more.")
    if not scores.order():
        return ""
    (layer, at), mean = scores.order()[0], scores.means
    name = {
        "first": translate("AttentionWords", "Strongest first-token head"),
        "previous": translate("AttentionWords", "Strongest previous-token head"),
        "induction": translate("AttentionWords", "Strongest induction head"),
        "entropy": translate("AttentionWords", "Most focused head"),
        "effect": translate("AttentionWords", "The head that matters most here"),
        "contribution": translate("AttentionWords", "Adds most"),
    }[scores.kind]
    return translate("AttentionWords", "{0}: layer {1}, head {2}. {3}.").format(
        name, layer, at, _of_kind(scores, float(mean[layer, at]))
    )


def short_score(scores: HeadScores, layer: int, at: int) -> tuple[str, str]:
    """A head's short name and its figure, for under a thumbnail."""
    mean = float(scores.means[layer, at])
    return f"L{layer} H{at}", "–" if np.isnan(mean) else _figure(scores, mean)
