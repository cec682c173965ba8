"""The logits of `--reference`: read from a file, and compared with a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from explorer import disk
from explorer.cli.document import print_table
from explorer.cli.errors import CommandError
from explorer.figures.comparing import reference
from explorer.figures.comparing.reference import ReferenceStep
from explorer.trace.trace import Trace


def read_reference(name: str) -> np.ndarray:
    """(S, V) numbers of a .npy file; CommandError if it holds anything else."""
    try:
        disk.opened(name).close()  # a pipe or a device is refused
        found = np.load(name, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise CommandError(f"{name} can't be read as a .npy file: {disk.why(error)}.") from error
    if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
        raise CommandError(f"{name} holds no floating-point numbers. Save the logits as a .npy.")
    if found.ndim == 3 and len(found) == 1:
        found = found[0]
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or not found.size:
        raise CommandError(
            f"{name} has the shape {'×'.join(map(str, found.shape))}. Give one row of logits for "
            "each step: (steps, vocabulary)."
        )
    return found


def compared(trace: Trace, logits: np.ndarray, name: str) -> list[ReferenceStep]:
    """The run against the file's rows; CommandError where they can't be of this model."""
    width = len(trace.steps[0].logits) if trace.steps else 0
    if width != logits.shape[1]:
        raise CommandError(
            f"{name} has {logits.shape[1]:,} logits in a row, and this model gives {width:,}."
        )
    for index, row in enumerate(logits[: len(trace.steps)]):
        if np.isnan(row).any() or not np.isfinite(row.max()):
            raise CommandError(f"Row {index} of {name} holds no usable numbers (NaN or infinite).")
    return reference.steps(trace, logits)


def reference_document(found: list[ReferenceStep]) -> dict[str, Any]:
    """The steps that were compared, and the first that rounding does not explain."""
    return {
        "first_difference": reference.first_difference(found),
        "steps": [{**asdict(one), "equal": one.equal} for one in found],
    }


def print_reference(found: list[ReferenceStep], trace: Trace) -> None:
    """The same as a table and a sentence."""
    rows = [
        (
            str(one.index),
            f"{one.largest:.3g}",
            f"{one.tolerance:.3g}",
            f"{one.kl_bits:.3g}",
            "yes" if one.same_choice else "NO",
        )
        for one in found
    ]
    print()
    heads = ("step", "largest logit difference", "rounding explains", "KL bits", "same best token")
    print_table(heads, rows)
    first = reference.first_difference(found)
    if first is None:
        print(f"\nThe reference and the run are equal in {len(found)} steps, within rounding.")
    else:
        print(f"\nThe reference and the run part at step {first}.")
    if len(found) < len(trace.steps) and found and not found[-1].same_choice:
        print("Later steps follow other tokens, so they are not compared.")
