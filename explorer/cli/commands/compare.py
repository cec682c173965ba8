"""`compare`: two runs beside each other, saved ones or one prompt on two models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.saved.show import opened
from explorer.cli.commands.trace import run_loaded, run_request
from explorer.cli.document import print_json, print_table, trace_document
from explorer.cli.errors import DONE, CommandError
from explorer.cli.terminal import complain
from explorer.figures.comparing import alignment, differences
from explorer.figures.comparing.alignment import Piece
from explorer.figures.comparing.differences import StepDifference
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace
from explorer.wording import percent

_SIDES = ("left", "right")
_OF_MODELS = ("prompt", "prompt_file", "steps", "engine")  # options that a saved run does not take


def run(arguments: argparse.Namespace) -> int:
    """What can be refused is refused before an engine starts."""
    saved = {side: Path(getattr(arguments, side)).suffix == ".dxt" for side in _SIDES}
    _require_sense(arguments, saved)
    left, right = (
        opened(getattr(arguments, side)) if saved[side] else _run(arguments, side)
        for side in _SIDES
    )
    if all(saved.values()):  # a model's own warnings were printed when it was opened
        for line in dict.fromkeys([*warnings.of_trace(left), *warnings.of_trace(right)]):
            complain(line)
    shared = alignment.one_vocabulary(left, right)
    pieces = alignment.aligned(left.tokens, right.tokens, by_id=shared)
    found = differences.steps(left, right)
    if arguments.json:
        print_json(_document(left, right, pieces, found))
    else:
        _print(left, right, pieces, found, shared)
    return DONE


def _require_sense(arguments: argparse.Namespace, saved: dict[str, bool]) -> None:
    """CommandError for an option that has nothing to work on, and for a prompt that lacks."""
    for side in _SIDES:
        for option in (f"chat_{side}", f"dtype_{side}", f"as_{side}"):
            if saved[side] and getattr(arguments, option):
                raise CommandError(
                    f"--{option.replace('_', '-')} is of a model. On the {side} is a saved run."
                )
    if all(saved.values()):
        for option in _OF_MODELS:
            if getattr(arguments, option) is not None:
                raise CommandError(
                    f"--{option.replace('_', '-')} is of a model. Both sides are saved runs."
                )
    elif arguments.prompt is None and arguments.prompt_file is None:
        raise CommandError("Give a prompt for the model: --prompt or --prompt-file.")


def _run(arguments: argparse.Namespace, side: str) -> Trace:
    """The prompt on the model of one side, in an engine of its own."""
    asked = argparse.Namespace(
        model=getattr(arguments, side),
        prompt=arguments.prompt,
        prompt_file=arguments.prompt_file,
        chat=getattr(arguments, f"chat_{side}"),
        dtype=getattr(arguments, f"dtype_{side}"),
        device=None,
        form=getattr(arguments, f"as_{side}") or "",
    )
    request = run_request(asked)
    with Client(engine_command(arguments.engine)) as client:
        card = client.load_for(request)
        return run_loaded(client, card, request, arguments.steps or 1, Sampling())


def _document(
    left: Trace, right: Trace, pieces: tuple[Piece, ...], found: list[StepDifference]
) -> dict[str, Any]:
    return {
        "left": trace_document(left),
        "right": trace_document(right),
        "alignment": [
            {"text": one.text, "left": list(one.left), "right": list(one.right)} for one in pieces
        ],
        "first_difference": alignment.first_difference(pieces),
        "steps": [_step(one) for one in found],
    }


def _step(one: StepDifference) -> dict[str, Any]:
    largest = one.maps
    return {
        "index": one.index,
        "kl_bits": one.kl_bits,
        "same_choice": one.same_choice,
        "total_variation": one.total_variation,
        "largest_logit_difference": one.logits,
        "largest_map_difference": largest
        and {"layer": largest.layer, "head": largest.head, "difference": largest.difference},
        "why_no_maps": one.why_no_maps,
    }


def _print(
    left: Trace,
    right: Trace,
    pieces: tuple[Piece, ...],
    found: list[StepDifference],
    shared: bool,
) -> None:
    for side, trace in zip(_SIDES, (left, right), strict=True):
        print(f"{side}: {_named(trace)}")
        print(f"  {' '.join(labels.written(token) for token in trace.tokens)}")
    print(
        "tokens are matched by id: one vocabulary\n"
        if shared
        else "tokens are matched by their text: the vocabularies differ\n"
    )
    _print_first_difference(left, right, pieces)
    rows = [
        (
            str(one.index),
            labels.written(left.chosen[one.index]),
            labels.written(right.chosen[one.index]),
            "–" if one.kl_bits is None else f"{one.kl_bits:.3g}",
            "–" if one.total_variation is None else percent(one.total_variation),
            "–" if one.logits is None else f"{one.logits:.3g}",
            _map_words(one),
        )
        for one in found
    ]
    heads = ("step", "left", "right", "KL bits", "total variation", "largest logit difference",
             "largest map difference")  # fmt: skip
    print_table(heads, rows, left={1, 2, 6})


def _named(trace: Trace) -> str:
    card = trace.card
    form = "as it is" if card.form == "as-is" else card.dtype
    return ", ".join(part for part in (trace.model_name, card.architecture, form) if part)


def _print_first_difference(left: Trace, right: Trace, pieces: tuple[Piece, ...]) -> None:
    first = alignment.first_difference(pieces)
    if first is None:
        print("All tokens are the same on both sides.\n")
        return
    one = pieces[first]
    side, trace, slots = ("left", left, one.left) if one.left else ("right", right, one.right)
    where = f"position {slots[0]} of the {side}, {labels.written(trace.tokens[slots[0]])}"
    print(f"first difference: {where}\n")


def _map_words(one: StepDifference) -> str:
    if one.maps is None:
        return f"– ({one.why_no_maps})"
    return f"{percent(one.maps.difference)} in L{one.maps.layer} H{one.maps.head}"
