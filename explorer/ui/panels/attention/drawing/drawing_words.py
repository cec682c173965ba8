"""What is drawn on a map, in words."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from explorer.figures.attention.strokes import (
    ALLOWED_NEXT,
    ALLOWED_NOW,
    CUT_NEXT,
    CUT_NOW,
    RESTORED_NEXT,
)
from explorer.trace.interventions.kinds import Cells
from explorer.ui.panel.intervention_words import short

translate = QCoreApplication.translate
_MOST_NAMED = 3


def of_state(state: int) -> str:
    """What is changed in one cell; empty if nothing is."""
    return {
        CUT_NOW: translate("DrawingWords", "cut"),
        ALLOWED_NOW: translate("DrawingWords", "allowed by an intervention"),
        CUT_NEXT: translate("DrawingWords", "cut from the next run on"),
        ALLOWED_NEXT: translate("DrawingWords", "allowed from the next run on"),
        RESTORED_NEXT: translate("DrawingWords", "restored from the next run on"),
    }.get(state, "")


def of_areas(areas: Sequence[Cells]) -> str:
    """A stroke as a sentence: its first areas, and how many more it has."""
    named = " · ".join(map(short, areas[:_MOST_NAMED]))
    more = len(areas) - _MOST_NAMED
    if more > 0:
        return translate("DrawingWords", "{0} · and {1} more.").format(named, more)
    return f"{named}." if named else ""


def of_emptied(queries: Sequence[int]) -> str:
    """That these have no key left, and what they do then."""
    if len(queries) == 1:
        return translate(
            "DrawingWords", "Query {0} has no key left here: it attends to nothing and gives zero."
        ).format(queries[0])
    named = ", ".join(map(str, queries[:_MOST_NAMED]))
    more = "…" if len(queries) > _MOST_NAMED else ""
    return translate(
        "DrawingWords", "Queries {0} have no key left here: they attend to nothing and give zero."
    ).format(f"{named}{more}")
