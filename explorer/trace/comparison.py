"""One step of a run, and the same step with the causal mask switched, or in the other form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from explorer.trace.card import ModelCard
from explorer.trace.request import Form, RunRequest
from explorer.trace.step import Step
from explorer.trace.trace import Trace

Of = Literal["mask", "form"]  # what is the other way round: the mask, or how a .gguf file is open


@dataclass(frozen=True, slots=True)
class Comparison:
    """The pass of one step run again with the mask, or the form of its file, the other way round.

    `step` is a real pass over every slot of that moment, without a cache.
    """

    chosen: tuple[int, ...]  # tokens chosen before the pass: which moment of the run it is
    request: RunRequest  # the trace's own, the mask or the form switched
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
    """The same run with mask or form switched, every pass over the whole sequence."""
    if of == "form":
        form: Form = "float32" if request.form == "as-is" else "as-is"
        return msgspec.structs.replace(request, form=form, cache=False)
    return msgspec.structs.replace(request, causal_mask=not request.causal_mask, cache=False)
