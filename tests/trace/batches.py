"""Results of padded batches made by hand."""

from __future__ import annotations

from typing import Any

from explorer.trace.batch import BatchRequest, BatchResult, BatchRow, Ranked, Reading, Scored
from explorer.trace.step import Token

PAD = Token(0, b"<|end|>", "padding", special=True)
RIGHT = (
    Ranked(Token(7, b" Paris", "generated"), 0.75),
    Ranked(Token(8, b" Rome", "generated"), 0.25),
)
WRONG = (Ranked(Token(9, b"\n", "generated"), 0.5), Ranked(Token(7, b" Paris", "generated"), 0.5))
SLOTS = 4


def row(length: int, side: str = "right", **more: Any) -> BatchRow:
    """A row of `length` tokens in 4 slots that behaves as real models do."""
    pads = SLOTS - length
    words = tuple(Token(10 + i, f" w{i}".encode()) for i in range(length))
    ones, zeros = (1,) * length, (0,) * pads
    positions = tuple(range(length))
    left = side == "left"
    last = SLOTS - 1 if left else length - 1
    reads_pad = last != SLOTS - 1
    mask = zeros + ones if left else ones + zeros
    fields: dict[str, Any] = {
        "prompt": "".join(f" w{i}" for i in range(length)),
        "tokens": (PAD,) * pads + words if left else words + (PAD,) * pads,
        "real": mask,
        "attention_mask": mask,
        "position_ids": zeros + positions if left else positions + zeros,
        "readout": last,
        "last_real": last,
        "at_last_real": Reading(slot=last, top=RIGHT, max_abs_diff=1e-5),
        "at_last_slot": Reading(
            slot=SLOTS - 1,
            top=WRONG if reads_pad else RIGHT,
            max_abs_diff=12.5 if reads_pad else 1e-5,
        ),
        "alone": RIGHT,
        "max_abs_diff_vs_alone": 1e-5,
        "step_diffs": (1e-5,),
        "verdict": "right",
        "effects": {"readout": 12.5 if reads_pad else 1e-5, "positions": 1e-5, "mask": 3.25},
        "generated": (RIGHT[0].token,),
        "generated_alone": (RIGHT[0].token,),
        "scored": tuple(
            Scored(slot=i, nats=2.0 if mask[i] and mask[i + 1] else 9.0, rank=i, top=RIGHT)
            for i in range(SLOTS - 1)
        ),
        "unshifted_nats": tuple(0.5 if real else 7.0 for real in mask),
        "alone_nats": (2.0,) * (length - 1),
    }
    return BatchRow(**{**fields, **more})


def result(*rows: BatchRow, **more: Any) -> BatchResult:
    """A batch of these rows, padded on the right unless said."""
    asked = BatchRequest(prompts=tuple(r.prompt for r in rows), padding="right", loss=True)
    fields: dict[str, Any] = {
        "request": asked, "model": "tiny", "pad": PAD, "pad_note": "The model's own.",
        "tolerance": 1e-4, "rows": rows,
    }  # fmt: skip
    return BatchResult(**{**fields, **more})
