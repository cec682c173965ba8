"""A run beside logits that somebody else computed for it: where do they part?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.figures.comparing.differences import distributions
from explorer.trace.rounding import arithmetic, logit_tolerance
from explorer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One step of the run against one row of the reference."""

    index: int
    same_choice: bool  # the token with the largest logit is the same
    largest: float  # difference of logits
    tolerance: float  # what rounding may explain, by dtype
    kl_bits: float  # KL(reference ‖ run)

    @property
    def equal(self) -> bool:
        """True if rounding explains the difference."""
        return self.largest <= self.tolerance


def steps(trace: Trace, reference: np.ndarray) -> list[ReferenceStep]:
    """The steps that (S, V) `reference` has rows for, up to the first with another best token.

    What follows that one was read after different tokens, so there is nothing to compare.
    """
    found: list[ReferenceStep] = []
    for step, row in zip(trace.steps, reference, strict=False):
        own = step.logits.astype(np.float64)
        kl, _, largest = distributions(row.astype(np.float64), own)
        same = bool(int(own.argmax()) == int(row.argmax()))
        limit = logit_tolerance(arithmetic(trace.request), step.logits)
        found.append(ReferenceStep(step.index, same, largest, limit, kl))
        if not same:
            break
    return found


def first_difference(found: list[ReferenceStep]) -> int | None:
    """The first step that rounding does not explain; None if there is none."""
    return next((one.index for one in found if not one.equal), None)
