"""A batch with the user's own ids, mask and positions: which of them is wrong?

Each row is compared with its tokens run alone.  Where it differs, the batch is run again with the
mask corrected, with the positions corrected, and with both: what makes the row right was wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.experiments.padded.batch_pass import BatchPass
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import BatchLayout, Layout, positions
from explorer.engine.passes.runner import Runner
from explorer.trace.batch import MOST_ROWS
from explorer.trace.experiments import CheckInputs, InputRow, InputsChecked, InputVerdict
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest, logit_tolerance

Rows = tuple[Layout, ...]


def check(
    runner: Runner, asked: CheckInputs, progress: Report, cancelled: Stop = never
) -> InputsChecked:
    """Every row; BadInput for tensors that do not fit each other or the model."""
    given = _given(runner, asked)
    right = tuple(_right(runner, row) for row in given)
    progress("Running the batch as it is", 0.2)
    lab = _GivenBatch(BatchPass(runner, cancelled), tuple(row.readout for row in right))
    read = lab.logits(given)
    progress("Running each row alone", 0.5)
    alone = [_alone(runner, row, cancelled) for row in right]
    tolerance = logit_tolerance(runner.loaded.card.dtype, np.stack(alone))
    gaps = [largest(row[0] - own) for row, own in zip(read, alone, strict=True)]
    verdicts: list[InputVerdict] = ["right" if gap <= tolerance else "neither" for gap in gaps]
    for name, corrected in _corrected(given, right):
        if "neither" not in verdicts:
            break
        progress(f"Running the batch with {name} corrected", 0.8)
        found = lab.logits(corrected)
        for row, own in enumerate(alone):
            if verdicts[row] == "neither" and largest(found[row][0] - own) <= tolerance:
                verdicts[row] = name
    rows = [
        InputRow(
            verdict=verdicts[row],
            readout=right[row].readout,
            attention_mask=right[row].attention_mask,
            position_ids=right[row].position_ids,
            first_wrong_mask=_first(given[row].attention_mask, right[row].attention_mask),
            first_wrong_position=_first_position(given[row], right[row]),
            difference=gaps[row],
            last_slot_difference=largest(read[row][1] - alone[row]),
            next_id=int(read[row][0].argmax()),
            next_id_alone=int(alone[row].argmax()),
        )
        for row in range(len(given))
    ]
    return InputsChecked(rows=tuple(rows), tolerance=tolerance)


@dataclass(frozen=True, slots=True)
class _GivenBatch:
    passes: BatchPass
    readouts: tuple[int, ...]

    def logits(self, rows: Rows) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each row (V,) at its readout, and at the last slot."""
        slots = sorted({*self.readouts, len(rows[0].ids) - 1})
        found = self.passes.logits(BatchLayout(rows, 0), slots)
        return [
            (found[row, slots.index(at)], found[row, -1]) for row, at in enumerate(self.readouts)
        ]


def _corrected(given: Rows, right: Rows) -> list[tuple[InputVerdict, Rows]]:
    pairs = list(zip(given, right, strict=True))
    return [
        ("position_ids", tuple(replace(a, position_ids=b.position_ids) for a, b in pairs)),
        ("attention_mask", tuple(replace(a, attention_mask=b.attention_mask) for a, b in pairs)),
        ("both", right),
    ]


def _given(runner: Runner, asked: CheckInputs) -> Rows:
    """The rows as they are; BadInput where shapes or values can't be."""
    ids = asked.input_ids
    slots = len(ids[0]) if ids else 0
    if not 1 <= len(ids) <= MOST_ROWS or not slots:
        raise BadInput(f"input_ids needs 1 to {MOST_ROWS} rows of tokens.")
    limit = runner.loaded.card.context
    if limit and slots > limit:
        raise BadInput(
            f"The rows take {slots:,} positions, but this model reads at most {limit:,}."
        )
    masks = asked.attention_mask or ((1,) * slots,) * len(ids)
    places = asked.position_ids or (tuple(range(slots)),) * len(ids)
    named = (("input_ids", ids), ("attention_mask", masks), ("position_ids", places))
    for name, rows in named:
        for number, row in enumerate(rows):
            if len(rows) != len(ids) or len(row) != slots:
                raise BadInput(
                    f"{name} must have the shape of input_ids, {len(ids)}×{slots}: row {number} "
                    f"of {len(rows)} has {len(row)}."
                )
    for row in ids:
        runner.require_ids(row)
    for number, mask in enumerate(masks):
        if set(mask) - {0, 1} or not any(mask):
            raise BadInput(f"Row {number} of attention_mask must hold 0 and 1, and at least one 1.")
    if limit and max(map(max, places)) >= limit:
        raise BadInput(f"position_ids go up to {max(map(max, places)):,}; the model has {limit:,}.")
    return tuple(Layout(*row) for row in zip(ids, masks, places, strict=True))


def _right(runner: Runner, row: Layout) -> Layout:
    """The mask that leaves out what is padding, and positions that count the tokens from 0."""
    mask = row.attention_mask if _is_sound(runner, row) else _by_padding(runner, row)
    return Layout(row.ids, mask, positions(mask))


def _is_sound(runner: Runner, row: Layout) -> bool:
    """True if a mask hides its ends alone, each with one token repeated, and no padding is left.

    One end token may be the text's own where it is the padding token, too.
    """
    mask, card = row.attention_mask, runner.loaded.card
    first, last = mask.index(1), len(mask) - 1 - mask[::-1].index(1)
    if 0 in mask[first : last + 1]:
        return False
    hidden = {*row.ids[:first], *row.ids[last + 1 :]}
    pad = card.pad_id
    own_end = pad in card.eos_ids and row.ids[last] == pad and row.ids[max(0, last - 1)] != pad
    at_ends = {row.ids[first]} | (set() if own_end else {row.ids[last]})
    return len(hidden) <= 1 and (pad not in at_ends or first == last)


def _by_padding(runner: Runner, row: Layout) -> tuple[int, ...]:
    """1 but for the padding token at both ends; all ones where that would leave nothing."""
    pad, ids = runner.loaded.card.pad_id, row.ids
    real = [slot for slot, token in enumerate(ids) if token != pad]
    if not real:
        return (1,) * len(ids)
    return tuple(int(real[0] <= slot <= real[-1]) for slot in range(len(ids)))


def _alone(runner: Runner, row: Layout, cancelled: Stop) -> np.ndarray:
    """(V,) after the row's tokens, without padding."""
    ids = tuple(row.real_ids())
    layout = Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
    return forward(runner, RunRequest(cache=False), layout, 0, None, cancelled).logits


def _first(given: Sequence[int], right: Sequence[int]) -> int | None:
    return next((i for i, (a, b) in enumerate(zip(given, right, strict=True)) if a != b), None)


def _first_position(given: Layout, right: Layout) -> int | None:
    """At padding any position will do."""
    rows = zip(given.position_ids, right.position_ids, right.attention_mask, strict=True)
    return next((i for i, (a, b, real) in enumerate(rows) if real and a != b), None)
