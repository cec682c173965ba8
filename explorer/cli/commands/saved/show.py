"""`show`: what is in a saved run."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.cli.commands.batch import batch_document
from explorer.cli.document import print_json, print_trace, trace_document
from explorer.cli.errors import DONE, CommandError
from explorer.cli.terminal import complain
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.figures.text.sentences import name
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.trace import Trace


def run(arguments: argparse.Namespace) -> int:
    trace, beside = _opened(arguments.file)
    for line in warnings.of_trace(trace):
        complain(line)
    if arguments.json:
        print_json({**trace_document(trace), **_beside_document(beside)})
    else:
        print_trace(trace)
        _print_beside(beside)
    return DONE


def opened(name: str) -> Trace:
    """The trace of a file; CommandError with the reason if it can't be opened."""
    return _opened(name)[0]


def require_step(trace: Trace, step: int) -> None:
    """CommandError naming the steps that there are, if this is none of them."""
    steps = len(trace.steps)
    if step >= steps:
        there = f"steps 0 to {steps - 1}" if steps else "no steps"
        raise CommandError(f"This run has {there}. There is no step {step}.")


def _opened(name: str) -> tuple[Trace, SavedExtras]:
    try:
        return dxt.load_whole(name)
    except dxt.DxtError as error:
        raise CommandError(str(error)) from error


def _beside_document(beside: SavedExtras) -> dict[str, Any]:
    """Fields that only files have which hold more than one run."""
    found: dict[str, Any] = {}
    if beside.branches:
        found["branches"] = [
            {"name": one.name, "chosen_ids": list(one.trace.chosen_ids)} for one in beside.branches
        ]
    if beside.batch is not None:
        found["batch"] = batch_document(beside.batch)
    return found


def _print_beside(beside: SavedExtras) -> None:
    if len(beside.branches) > 1:
        print(f"\n{len(beside.branches)} branches:")
        for one in beside.branches:
            text = " ".join(labels.written(token) for token in one.trace.chosen)
            print(f"  {name(one.name)}: {text}")
    if beside.batch is not None:
        side = beside.batch.request.padding
        print(f"\na batch of {len(beside.batch.rows)} prompts, padded on the {side}")
