"""What differs between two runs where each is looked at: next token, one head's map, every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from explorer.figures.attention import difference, maps
from explorer.figures.attention.map_request import DrawnMap, HeadInStep
from explorer.figures.comparing.differences import (
    Apart,
    StepDifference,
    of_logits,
    why_no_maps,
    without_maps,
)
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


class KnownSteps:
    """How far apart the distributions of both runs are at each step, worked out once.

    A step whose logits are others is not known.  For one thread.
    """

    def __init__(self) -> None:
        self._known: list[tuple[np.ndarray, np.ndarray, Apart]] = []

    def keep(self, count: int) -> None:
        """Forget what comes after so many steps."""
        del self._known[count:]

    def at(self, index: int, left: np.ndarray, right: np.ndarray) -> Apart | None:
        """Of the step at `index`; None = not known."""
        if index >= len(self._known):
            return None
        one, other, apart = self._known[index]
        return apart if one is left and other is right else None

    def note(self, index: int, left: np.ndarray, right: np.ndarray, apart: Apart) -> None:
        """Remember it; those before are known."""
        self._known[index : index + 1] = [(left, right, apart)]


def between(
    left: HeadInStep, right: HeadInStep, by_id: bool, rows: int, known: KnownSteps
) -> Iterator[float | PairDifference]:
    """How far it is, 0 to 1, after each step that was not known; the difference comes last.

    `by_id`: both runs use one vocabulary; `rows` of the next tokens at most.
    SamplingError if a side's logits give no distribution.
    """
    found = kl = None
    if by_id:
        found = next_tokens(left.last_pass, right.last_pass, rows)
        kl, _, _ = of_logits(left.last_pass.logits, right.last_pass.logits)
    drawn, why = _map(left, right, by_id)
    pairs = list(zip(left.trace.steps, right.trace.steps, strict=False))
    whole: list[StepDifference] = []
    known.keep(len(pairs))
    for index, (one, other) in enumerate(pairs):
        apart = known.at(index, one.logits, other.logits) if by_id else None
        if by_id and apart is None:
            apart = of_logits(one.logits, other.logits)
            known.note(index, one.logits, other.logits, apart)
            yield (index + 1) / len(pairs)
        whole.append(without_maps(left.trace, right.trace, index, apart))
    yield PairDifference(found, kl, drawn, why, tuple(whole))


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
