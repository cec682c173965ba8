"""Turns of a conversation that are left out while its answer is written.

The rest is read again, as if the conversation had begun with it.  A pass knows its own slots only;
what is recorded of it is put back where these slots stand in the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorer.engine.text.asked_prompt import without_oldest
from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.chat import ChatTurn, Message

Span = tuple[int, int]  # the first slot and the one after the last


def oldest_turns(messages: Sequence[Message], turns: Sequence[ChatTurn]) -> tuple[Span, ...]:
    """The slots of each turn that the prompt would lose one after the other, the last left out.

    They stand one after the other, for a run skips one span: a system message between two of them
    ends the list.
    """
    first_slots = {turn.message: turn.first_slot for turn in turns if turn.message is not None}
    kept = sorted(first_slots)
    following = dict(itertools.pairwise(kept))
    found: list[Span] = []
    while rest := without_oldest(messages, kept):
        gone = [i for i in kept if i not in rest]
        span = first_slots[gone[0]], first_slots[following[gone[-1]]]
        apart = any(following[one] != other for one, other in itertools.pairwise(gone))
        if apart or (found and found[-1][1] != span[0]):
            break
        found.append(span)
        kept = rest
    return tuple(found)


def spread(records: Sequence[LayerRecord], places: Sequence[int]) -> tuple[LayerRecord, ...]:
    """The records of a pass whose keys are at `places`, by slots of the run.

    Slots between them are not there: no key, and hidden in the mask.
    """
    at = np.array(places)
    made: dict[int, Mask] = {}
    return tuple(_spread(record, at, made) for record in records)


def _spread(record: LayerRecord, at: np.ndarray, made: dict[int, Mask]) -> LayerRecord:
    if record.kind == "absent":
        return record
    seen = at[record.first_key :]  # (K,) slots of the keys
    first, end = int(seen[0]), int(seen[-1]) + 1
    gaps = np.flatnonzero(np.diff(seen) > 1)
    columns = seen - first
    moved = replace(record, first_key=first)
    if not len(gaps):
        return moved
    evicted = int(seen[gaps[0]]) + 1, int(seen[gaps[0] + 1])
    if record.mask is not None and id(record.mask) not in made:
        made[id(record.mask)] = _mask(record.mask, columns, end - first)
    keys = record.keys
    if keys is not None and len(keys) == len(seen):
        keys = np.zeros((end - first, *keys.shape[1:]), keys.dtype)
        keys[columns] = record.keys
    parts = {"weights": record.weights, "bias": record.bias}
    wide = {name: None if one is None else _wide(one, columns, end - first)
            for name, one in parts.items()}  # fmt: skip
    return replace(
        moved,
        evicted=evicted,
        keys=keys,
        mask=None if record.mask is None else made[id(record.mask)],
        weights=wide["weights"],
        bias=wide["bias"],
    )


def _mask(mask: Mask, columns: np.ndarray, keys: int) -> Mask:
    if mask.kind == "values":
        assert mask.data is not None
        values = _wide(mask.data, columns, keys, -np.inf)
        return Mask("values", mask.queries, keys, values)
    return Mask.of_bits(_wide(mask.allowed(), columns, keys))


def _wide(array: np.ndarray, columns: np.ndarray, keys: int, empty: float = 0) -> np.ndarray:
    """(…, K) at these columns of (…, keys)."""
    found = np.full((*array.shape[:-1], keys), empty, array.dtype)
    found[..., columns] = array
    return found
