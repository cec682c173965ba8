"""What differs between two runs where each is looked at: next token, one head's map, every step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.figures.attention import difference, maps
from explorer.figures.attention.map_request import DrawnMap, HeadInStep
from explorer.figures.comparing.differences import StepDifference, distributions, steps, why_no_maps
from explorer.figures.drawing.map_viewport import smaller
from explorer.figures.prediction.comparison import NextTokens, next_tokens

DIFFERENT_VOCABULARIES = "the vocabularies differ"


@dataclass(frozen=True, slots=True, eq=False)
class PairDifference:
    """Of the places that are looked at; None: not defined, and `why_no_map` says so of the map."""

    next_tokens: NextTokens | None
    kl_bits: float | None  # KL(left ‖ right) of the models' own distributions
    map: DrawnMap | None  # right minus left
    why_no_map: str
    steps: tuple[StepDifference, ...]  # of all steps that both runs have, without their maps


def between(left: HeadInStep, right: HeadInStep, by_id: bool, rows: int) -> PairDifference:
    """`by_id`: both runs use one vocabulary; `rows` of the next tokens at most.

    SamplingError if a side's logits give no distribution.
    """
    found = kl = None
    if by_id:
        found = next_tokens(left.last_pass, right.last_pass, rows)
        both = (look.last_pass.logits.astype(np.float64) for look in (left, right))
        kl, _, _ = distributions(*both)
    drawn, why = _map(left, right, by_id)
    whole = steps(left.trace, right.trace, by_id, with_maps=False)
    return PairDifference(found, kl, drawn, why, tuple(whole))


def _map(left: HeadInStep, right: HeadInStep, by_id: bool) -> tuple[DrawnMap | None, str]:
    """The map of the right side minus that of the left, or why there is none."""
    if not by_id:
        return None, DIFFERENT_VOCABULARIES
    why = why_no_maps(left.trace, right.trace, left.step, right.step)
    if why:
        return None, why
    if (left.layer, left.head) != (right.layer, right.head):
        return None, "the two sides look at different heads"
    try:
        first, second = (
            maps.full_map(look.trace, look.step, look.layer, look.head) for look in (left, right)
        )
        change = difference.difference(first, second)
    except ValueError as error:
        return None, str(error).rstrip(".")
    top = difference.farthest_weight(change)
    levels = difference.levels(change.weights, change.kinds, top)
    return DrawnMap(change, levels, smaller(levels, signed=True), top, signed=True), ""
