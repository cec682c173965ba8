"""`show`: what is in a saved run."""

from __future__ import annotations

import argparse

from explorer.cli.document import print_json, print_trace, trace_document
from explorer.cli.errors import DONE, CommandError
from explorer.trace import dxt
from explorer.trace.trace import Trace


def run(arguments: argparse.Namespace) -> int:
    trace = opened(arguments.file)
    if arguments.json:
        print_json(trace_document(trace))
    else:
        print_trace(trace)
    return DONE


def opened(name: str) -> Trace:
    """The trace of a file; CommandError with the reason if it can't be opened."""
    try:
        return dxt.load(name)
    except dxt.DxtError as error:
        raise CommandError(str(error)) from error
