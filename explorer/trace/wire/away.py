"""Records that an engine keeps for itself until somebody looks at them.

A pass over a thousand tokens has tens of megabytes of queries and keys, of which a user looks at
one head.  Over a slow line a step travels without them; each layer's record is sent in groups of
heads, those of one key head, when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.step import Step

ON_ENGINE = (
    "its queries and keys are still on the engine's machine; select it in the Attention panel, "
    "which fetches them"
)
NOT_FETCHED = (  # in a file
    "its queries and keys stayed on the engine's machine; "
    "select its token in the window to compute them again"
)


def left_there(step: Step) -> Step:
    """The step as a file holds it: what has not come is not in it, with the reason."""
    if not step.kept_as:
        return step
    layers = tuple(
        LayerRecord(layer=one.layer, kind="absent", reason=NOT_FETCHED, window=one.window)
        if one.away
        else one
        for one in step.layers
    )
    return replace(step, layers=layers, kept_as="")


def groups_of(record: LayerRecord) -> int:
    """In how many parts a record is sent; 0 where there is nothing to send."""
    if record.keys is not None:
        return int(record.keys.shape[1])
    return 0 if record.weights is None else int(record.weights.shape[0])


def group_of(record: LayerRecord, head: int) -> int:
    """The group that a head is sent in, of a record that is away."""
    return head // max(1, record.away // max(1, record.groups))


def sent_later(step: Step, name: str) -> Step:
    """The step without what is kept of it under this name."""
    layers = tuple(
        LayerRecord(
            layer=record.layer,
            kind="absent",
            reason=ON_ENGINE,
            window=record.window,
            away=record.heads,
            groups=groups_of(record),
        )
        if groups_of(record)
        else record
        for record in step.layers
    )
    return replace(step, layers=layers, hidden=None, kept_as=name)


def part_of(record: LayerRecord, group: int) -> LayerRecord:
    """The record of the heads of one group alone; IndexError if there is no such group."""
    if not 0 <= group < groups_of(record):
        raise IndexError(f"there is no group {group}")
    share = record.heads // groups_of(record)
    heads = slice(group * share, (group + 1) * share)
    return replace(
        record,
        queries=None if record.queries is None else record.queries[:, heads],
        keys=None if record.keys is None else record.keys[:, group : group + 1],
        sinks=None if record.sinks is None else record.sinks[heads],
        bias=_of_heads(record.bias, heads),
        weights=None if record.weights is None else record.weights[heads],
        mask=record.mask if record.mask is None else _mask_of_heads(record.mask, heads),
    )


def _of_heads(values: np.ndarray | None, heads: slice) -> np.ndarray | None:
    """(1 or H, …) of some heads; one that stands for all stays."""
    return values if values is None or len(values) == 1 else values[heads]


def _mask_of_heads(mask: Mask, heads: slice) -> Mask:
    if mask.kind != "values" or mask.data is None or len(mask.data) == 1:
        return mask
    return replace(mask, data=mask.data[heads])


def with_part(record: LayerRecord, group: int, part: LayerRecord) -> LayerRecord:
    """A record that is away, with one group more; once all have come, the whole record.

    ValueError if the part is not of this record.
    """
    fits = record.away and 0 <= group < record.groups
    if not fits or part.layer != record.layer or part.heads * record.groups != record.away:
        raise ValueError("has a part of another one")
    parts = tuple(sorted({**dict(record.parts), group: part}.items()))
    if len(parts) < record.groups:
        return replace(record, parts=parts)
    return _whole([one for _, one in parts])


def _whole(parts: Sequence[LayerRecord]) -> LayerRecord:
    first = parts[0]
    return replace(
        first,
        queries=_joined([one.queries for one in parts], 1),
        keys=_joined([one.keys for one in parts], 1),
        sinks=_joined([one.sinks for one in parts], 0),
        bias=_joined([one.bias for one in parts], 0, first.heads),
        weights=_joined([one.weights for one in parts], 0),
        mask=_whole_mask([one.mask for one in parts], first.heads),
    )


def _joined(parts: Sequence[np.ndarray | None], axis: int, heads: int = 0) -> np.ndarray | None:
    """Side by side; with `heads`, an array for one head stands for all and stays alone."""
    found = [part for part in parts if part is not None]
    if not found or (heads > 1 and len(found[0]) == 1):
        return found[0] if found else None
    if heads == 1 and all(np.array_equal(found[0], one) for one in found[1:]):
        return found[0]
    whole = found[0] if len(found) == 1 else np.concatenate(found, axis)
    whole.flags.writeable = False
    return whole


def _whole_mask(masks: Sequence[Mask | None], heads: int) -> Mask | None:
    first = masks[0]
    if first is None or first.kind != "values":
        return first
    return replace(first, data=_joined([None if m is None else m.data for m in masks], 0, heads))


def is_away(step: Step) -> bool:
    """True if the engine keeps records of this pass that have not all come."""
    return any(record.away for record in step.layers)
