"""How two runs belong together, in words."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.figures.comparing.matching import Matching
from explorer.figures.text import tokens as spelling
from explorer.session.selection import Shown
from explorer.session.state import State
from explorer.trace.trace import Trace

translate = QCoreApplication.translate


def matched_by(matching: Matching) -> str:
    """What makes two tokens one and the same."""
    if matching.by_id:
        return translate("Beside", "One vocabulary: tokens are matched by id.")
    return translate("Beside", "The vocabularies differ: tokens are matched by their text.")


def first_difference(matching: Matching, left: Trace, right: Trace) -> str:
    """Where the runs part."""
    places = matching.first_difference
    if places is None and not matching.by_id:
        return translate("Beside", "The texts are the same; their tokens may be cut differently.")
    if places is None:
        return translate("Beside", "No difference: all tokens are the same.")
    words = [
        translate("Beside", "nothing")
        if slot is None
        else spelling.in_quotes(spelling.written(trace.tokens[slot]))
        for slot, trace in zip(places, (left, right), strict=True)
    ]
    slot = next(place for place in places if place is not None)
    return translate("Beside", "First difference at position {0}: {1} left, {2} right.").format(
        slot, *words
    )


def depth(left: Shown, right: Shown) -> str:
    """Which layer and head go with which, where the models have different numbers; else ""."""
    parts = []
    if left.layers != right.layers:
        parts.append(
            translate("Beside", "layer {0} of {1} ↔ layer {2} of {3}").format(
                left.layer, left.layers, right.layer, right.layers
            )
        )
    heads = left.heads_of(left.layer), right.heads_of(right.layer)
    if heads[0] != heads[1]:
        parts.append(
            translate("Beside", "head {0} of {1} ↔ head {2} of {3}").format(
                left.head, heads[0], right.head, heads[1]
            )
        )
    if not parts:
        return ""
    return translate("Beside", "By depth: {0}.").format(", ".join(parts))


def together(left: State, right: State, matching: Matching | None, linked: bool) -> str:
    """Everything that the line between the sides says."""
    if matching is None or left.trace is None or right.trace is None:
        return translate("Beside", "Press Step to run both sides. Change one thing on one of them.")
    parts = [first_difference(matching, left.trace, right.trace), matched_by(matching)]
    shown = left.shown, right.shown
    if linked and shown[0] is not None and shown[1] is not None:
        parts.insert(0, depth(shown[0], shown[1]))
    return " ".join(filter(None, parts))


def waiting(opens_left: bool) -> str:
    """While a linked step waits for one side's model."""
    if opens_left:
        return translate("Beside", "Opening the left side's model. Then both sides step.")
    return translate("Beside", "Opening the right side's model. Then both sides step.")
