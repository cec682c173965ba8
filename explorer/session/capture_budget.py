"""Keeps the passes that recompute everything within a number of bytes.

Without a cache every pass carries its own Q and K for all T tokens.  Above the budget the oldest
ones give theirs up; the pass can be run again when somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from explorer.trace.attention import LayerRecord
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.wire.away import NOT_FETCHED

DEFAULT_BYTES = 1 << 30
SAME = 1e-4  # logits this close are the same pass
REASON = (
    "its queries and keys were deleted to save memory; "
    "select its token in the window to compute them again"
)
RERUN_NOTE = "computed again on request: its queries and keys had been deleted to save memory"


def layer_bytes(step: Step) -> int:
    """Bytes that a step's attention records and hidden states hold."""
    arrays = [] if step.hidden is None else [step.hidden]
    for record in step.layers:
        arrays += [
            array
            for array in (record.queries, record.keys, record.weights, record.bias)
            if array is not None
        ]
    masks = {id(r.mask): r.mask for r in step.layers if r.mask is not None}
    arrays += [mask.data for mask in masks.values() if mask.data is not None]
    return sum(array.nbytes for array in arrays)


def was_let_go(step: Step) -> bool:
    """True if this step's records were given up for the budget, or never fetched."""
    return any(
        record.kind == "absent" and record.reason in (REASON, NOT_FETCHED) for record in step.layers
    )


def without_records(step: Step) -> Step:
    """The step with its attention and hidden states given up; its logits stay."""
    layers = tuple(
        record
        if record.kind == "absent" and not record.away
        else LayerRecord(layer=record.layer, kind="absent", reason=REASON)
        for record in step.layers
    )
    return replace(step, layers=layers, hidden=None, kept_as="")


def within(trace: Trace, budget: int, keep: Iterable[int] = ()) -> Trace:
    """The same trace, its oldest whole-sequence passes given up until it fits.

    The last step and the steps in `keep` are never given up.
    """
    if trace.request.uses_cache or not trace.steps:
        return trace
    kept = {*keep, len(trace.steps) - 1}
    sizes = [layer_bytes(step) for step in trace.steps]
    over = sum(sizes) - budget
    steps = list(trace.steps)
    for i, size in enumerate(sizes):
        if over <= 0:
            break
        if size and i not in kept:
            steps[i] = without_records(steps[i])
            over -= size
    return trace if over == sum(sizes) - budget else replace(trace, steps=tuple(steps))


def with_records(trace: Trace, index: int, fresh: Step) -> Trace:
    """The trace with the records of one step swapped in from a pass that was run again.

    The step's logits stay those of the first time; where the new ones differ, the note says by
    how much.  ValueError if it was another pass.
    """
    old = trace.steps[index]
    same = (fresh.token_ids, fresh.first_slot) == (old.token_ids, old.first_slot)
    if not same or fresh.logits.shape != old.logits.shape:
        raise ValueError(f"Token {index + 1}, computed again, differs from this run.")
    apart = float(np.abs(fresh.logits - old.logits).max())
    note = RERUN_NOTE if apart <= SAME else f"{RERUN_NOTE}; its logits differ by up to {apart:.2g}"
    step = replace(old, layers=fresh.layers, hidden=fresh.hidden, note=note, kept_as=fresh.kept_as)
    return replace(trace, steps=(*trace.steps[:index], step, *trace.steps[index + 1 :]))


def looked_at(*steps: int | None) -> set[int]:
    """The steps that are on screen: their records are kept."""
    return {step for step in steps if step is not None}
