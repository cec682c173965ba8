"""The token of a step: what may be asked, and how it is picked from the logits."""

from __future__ import annotations

import numpy as np

from explorer import sampling as chain
from explorer.engine.errors import BadInput
from explorer.engine.passes.layout import Layout
from explorer.trace.request import Sampling
from explorer.trace.step import Draw


def require_possible(sampling: Sampling) -> None:
    """BadInput for settings that no token can be picked with."""
    try:
        chain.check(sampling)
    except chain.SamplingError as error:
        raise BadInput(str(error)) from error


def drawn(
    logits: np.ndarray, sampling: Sampling, index: int, layout: Layout, warning: str = ""
) -> Draw:
    """The token of step `index`; BadInput, with `warning`, where the logits (V,) are no numbers."""
    context = layout.real_ids() if sampling.repetition_penalty != 1 else ()
    try:
        return chain.pick(logits, sampling, index, context)
    except chain.SamplingError as error:
        raise BadInput(warning or str(error)) from error


MEANS = "whole prompt read: the interventions depend on the prompt"
NOT_CUT = "whole prompt read: this model's cache can't go on from the part that is the same"


def reused_note(held: int, slots: int) -> str:
    """Of a prompt whose beginning was in the cache."""
    return f"{held:,} of {slots:,} tokens from the cache"


def note(rebuilt: int, chunks: int) -> str:
    """What is worth saying of the pass; empty if nothing is."""
    if rebuilt:
        return f"cache rebuilt by prefill of {rebuilt} tokens"
    return f"prompt read in {chunks} chunks" if chunks > 1 else ""
