"""What a patch is taken from, as a finished run has it."""

from __future__ import annotations

from explorer.trace.interventions.kinds import MOST_SOURCE, Patch, Source
from explorer.trace.trace import Trace


def source_of(trace: Trace, steps: int | None = None) -> Source:
    """Everything that a run, or its first `steps` steps, has read; ValueError in words if it can't.

    The token chosen last has not been read, so it has no activations.
    """
    request = trace.request
    if not trace.steps:
        raise ValueError("This run has read nothing yet, so there is nothing to patch from.")
    if any(token.origin == "padding" for token in trace.prompt):
        raise ValueError("This run is padded. Patch from a run without padding.")
    inner = tuple(one for one in request.interventions if not isinstance(one, Patch))
    if len(inner) < len(request.interventions):
        raise ValueError("This run is patched itself. Patch from a run without patches.")
    slots = trace.read_slots((len(trace.steps) if steps is None else steps) - 1)
    if slots > MOST_SOURCE:
        raise ValueError(
            f"This run has {slots:,} tokens. A patch is taken from at most {MOST_SOURCE:,}."
        )
    ids = tuple(token.id for token in trace.tokens[:slots])
    return Source(tokens=ids, causal_mask=request.causal_mask, interventions=inner)
