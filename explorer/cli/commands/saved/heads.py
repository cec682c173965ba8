"""`heads`: the heads of a saved run, ordered by what they do."""

from __future__ import annotations

import argparse
import math

from explorer.cli.commands.saved.show import opened, require_step
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE, CommandError
from explorer.figures.attention import head_scores, strongest_heads
from explorer.figures.text import tokens as labels
from explorer.trace.trace import Trace
from explorer.wording import percent

_Row = tuple[int, int, float | None]  # layer, head, figure; None where no row has what is asked
_MEANS = {
    "induction": "mean weight on the token after an earlier copy",
    "previous": "mean weight on the token before",
    "first": "mean weight on the first token",
    "entropy": "mean entropy of a row, in nats",
}


def run(arguments: argparse.Namespace) -> int:
    if (arguments.query is None) != (arguments.key is None):
        raise CommandError("--query and --key must be used together: name both positions.")
    trace = opened(arguments.file)
    step = _step(trace, arguments.step)
    if arguments.query is None:
        kind = arguments.by
        rows, words = _by_kind(trace, step, kind), _MEANS[kind]
    else:
        kind = "weight"
        rows = _by_cell(trace, step, arguments.query, arguments.key)
        words = "weight from {1}, {0}, on {3}, {2}".format(
            *(part for at in (arguments.query, arguments.key)
              for part in (labels.written(trace.tokens[at]), at))
        )  # fmt: skip
    rows = rows[: arguments.top]
    if arguments.json:
        heads = [{"layer": layer, "head": head, "value": value} for layer, head, value in rows]
        print_json({"by": kind, "step": step, "heads": heads})
    else:
        print(f"{words}\n")
        write = "{:.3f}".format if kind == "entropy" else percent
        shown = [
            (f"L{layer}", f"H{head}", "–" if value is None else write(value))
            for layer, head, value in rows
        ]
        print_table(("layer", "head", kind), shown)
    return DONE


def _step(trace: Trace, asked: int | None) -> int:
    if not trace.steps:
        raise CommandError("This run has no steps, so no head has read anything.")
    if asked is None:
        return len(trace.steps) - 1
    require_step(trace, asked)
    return asked


def _by_kind(trace: Trace, step: int, kind: head_scores.Kind) -> list[_Row]:
    found = list(head_scores.scores(trace, step, kind))[-1]
    means = found.means
    if not any(found.heads):
        raise CommandError("No layer of this run was recorded.")
    figures = ((layer, head, float(means[layer, head])) for layer, head in found.order())
    return [(layer, head, None if math.isnan(value) else value) for layer, head, value in figures]


def _by_cell(trace: Trace, step: int, query: int, key: int) -> list[_Row]:
    slots = trace.read_slots(step)
    for position in (query, key):
        if position >= slots:
            raise CommandError(
                f"Step {step} reads positions 0 to {slots - 1}. There is no position {position}."
            )
    every = sum(record.heads for record in trace.steps[step].layers)
    found = list(strongest_heads.rank(trace, step, query, key, every))[-1]
    if not isinstance(found, strongest_heads.Ranking) or found.why:
        raise CommandError(getattr(found, "why", "") or "No layer of this run was recorded.")
    return [(one.layer, one.head, one.weight) for one in found.heads]
