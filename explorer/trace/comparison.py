"""One step of a run, and the same step run with one setting changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from explorer.trace.card import ModelCard
from explorer.trace.request import Form, RunRequest
from explorer.trace.step import Step
from explorer.trace.trace import Trace

# The setting that is changed: the causal mask, how a .gguf file is open, or whether interventions
# are on.
Of = Literal["mask", "form", "interventions"]
KEPT: tuple[Of, ...] = ("mask", "interventions")  # that files come back to, whatever is open then


@dataclass(frozen=True, slots=True)
class Comparison:
    """The pass of one step run again with mask, form of its file or interventions the other way.

    `step` is a real pass over every slot of that moment, without a cache.
    """

    chosen: tuple[int, ...]  # tokens chosen before the pass: which moment of the run it is
    request: RunRequest  # the trace's own, one thing of it switched
    step: Step
    card: ModelCard | None = None  # of the run it was made for; None = any
    of: Of = "mask"

    def fits(self, trace: Trace | None, index: int | None) -> bool:
        """True if this is the other side of step `index` of `trace`."""
        return (
            trace is not None
            and index is not None
            and made_for(self.card, trace)
            and self.request == other_side(trace.request, self.of)
            and self.chosen == trace.chosen_ids[:index]
        )


def made_for(card: ModelCard | None, trace: Trace) -> bool:
    """By the very opening: the same text may have been run with other weights, too."""
    return card is None or card is trace.card


def other_side(request: RunRequest, of: Of = "mask") -> RunRequest:
    """The same run with one thing switched, every pass over the whole sequence.

    Interventions are only ever taken away: itself, where there are none.
    """
    if of == "interventions":
        return msgspec.structs.replace(request, interventions=(), cache=False)
    if of == "form":
        form: Form = "float32" if request.form == "as-is" else "as-is"
        return msgspec.structs.replace(request, form=form, cache=False)
    return msgspec.structs.replace(request, causal_mask=not request.causal_mask, cache=False)


def is_first(request: RunRequest, of: Of) -> bool:
    """True if this run is what the other one is measured by, and so is shown before it.

    That is the run with the mask, in float32, or of the model without interventions.
    """
    if of == "interventions":
        return not request.interventions
    return request.form == "float32" if of == "form" else request.causal_mask


def switched(request: RunRequest, other: RunRequest) -> Of:
    """Which setting of a run is changed in `other`, its other side."""
    found: Of
    for found in get_args(Of):
        if other_side(request, found) == other:
            return found
    raise ValueError("This run is not the other side of the run on screen.")
