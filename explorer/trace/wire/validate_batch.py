"""Do the parts of a padded batch fit each other?  Asked of every batch that comes from a file."""

from __future__ import annotations

from explorer.trace.batch import MISTAKES, BatchResult, BatchRow, Ranked
from explorer.trace.wire.bounds import require_bounded


def require_sound_batch(result: BatchResult) -> None:
    """ValueError naming the first row that does not fit."""
    require_bounded(result)
    _require(result.rows, "the batch has no rows")
    _require(len(result.rows) == len(result.request.prompts), "the batch has other rows")
    _require(result.request.extra < result.slots, "the batch asks for more padding than it has")
    for number, row in enumerate(result.rows, 1):
        _require(_fits(row, result.slots), f"row {number} of the batch does not fit the others")


def _require(true: object, words: str) -> None:
    if not true:
        raise ValueError(words)


def _fits(row: BatchRow, slots: int) -> bool:
    per_slot = (row.tokens, row.real, row.attention_mask, row.position_ids)
    read = (row.readout, row.last_real, row.at_last_real.slot, row.at_last_slot.slot)
    top: list[tuple[Ranked, ...]] = [row.alone, row.at_last_real.top, row.at_last_slot.top]
    return (
        slots > 0
        and all(len(part) == slots for part in per_slot)
        and set(row.real) <= {0, 1}
        and all(0 <= slot < slots for slot in read)
        and all(top)
        and set(row.effects) == set(MISTAKES)
        and _scores_fit(row, slots)
    )


def _scores_fit(row: BatchRow, slots: int) -> bool:
    if not row.scored and not row.unshifted_nats:
        return True
    in_order = [one.slot for one in row.scored] == list(range(slots - 1))
    return in_order and len(row.unshifted_nats) == slots
