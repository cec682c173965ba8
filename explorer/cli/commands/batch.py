"""`batch`: padded prompts in one pass, compared with each one run alone."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from explorer.cli.client import Client, require_possible
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.trace import form_of
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE, ENGINE_FAILED, CommandError
from explorer.cli.prompts import read_inputs
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.session.jobs.prompt_list import PromptListError, read_prompts
from explorer.trace.batch import BatchRequest, BatchResult, BatchRow
from explorer.trace.card import ModelCard
from explorer.trace.experiments import CheckInputs, InputsChecked
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from explorer.wording import percent

_VERDICTS = {
    "right": "right",
    "attention_mask": "attention_mask is wrong, first at slot {mask}",
    "position_ids": "position_ids are wrong, first at slot {position}",
    "both": "attention_mask is wrong from slot {mask}, position_ids from slot {position}",
    "neither": "differs, and correcting mask and positions does not help",
}


def run(arguments: argparse.Namespace) -> int:
    """Everything that can be refused is refused before the engine starts."""
    if arguments.inputs is not None:
        return _check_inputs(arguments)
    if arguments.padding is None:
        raise CommandError("--prompts needs a side to pad on: --padding left or right.")
    try:
        prompts = read_prompts(arguments.prompts)
    except PromptListError as error:
        raise CommandError(str(error)) from error
    request = BatchRequest(
        prompts=prompts,
        padding=arguments.padding,
        steps=arguments.steps,
        wrong=(arguments.wrong,) if arguments.wrong else (),
        chat=arguments.chat,
    )
    require_possible(request)
    command = engine_command(arguments.engine)
    with Client(command) as client:
        card = _loaded(client, arguments)
        result = _result(client, m.RunBatch(batch=request))
        client.note(result.decoded_apart)
    if arguments.json:
        print_json({**batch_document(result), "warnings": warnings.of_card(card)})
    else:
        _print(result)
    return DONE


def _loaded(client: Client, arguments: argparse.Namespace) -> ModelCard:
    how = (arguments.dtype or "float32", arguments.device or "cpu")
    return client.load(arguments.model, *how, form=form_of(arguments, by_torch=True))


def _check_inputs(arguments: argparse.Namespace) -> int:
    """The user's own tensors: is each row what it is alone, and if not, what is wrong?"""
    for option in ("padding", "wrong"):
        if getattr(arguments, option) is not None:
            raise CommandError(f"--{option} is for --prompts. The inputs are taken as they are.")
    if arguments.chat or arguments.steps != 1:
        raise CommandError("--chat and --steps are for --prompts. Leave them out.")
    given: dict[str, Any] = {**read_inputs(arguments.inputs)}
    with Client(engine_command(arguments.engine)) as client:
        card = _loaded(client, arguments)
        asked = CheckInputs(request=RunRequest(model=arguments.model), **given)
        found = msgspec.convert(client.facts(asked, InputsChecked), InputsChecked)
    document = {
        "tolerance": found.tolerance,
        "rows": [msgspec.to_builtins(row) for row in found.rows],
        "warnings": warnings.of_card(card),
    }
    if arguments.json:
        print_json(document)
    else:
        _print_inputs(found)
    return DONE


def _print_inputs(found: InputsChecked) -> None:
    rows = [
        (
            str(number),
            str(row.readout),
            f"{row.difference:.2g}",
            f"{row.last_slot_difference:.2g}",
            str(row.next_id),
            str(row.next_id_alone),
            _VERDICTS[row.verdict].format(
                mask=row.first_wrong_mask, position=row.first_wrong_position
            ),
        )
        for number, row in enumerate(found.rows)
    ]
    heads = ("row", "read", "difference", "at last slot", "next id", "alone", "")
    print_table(heads, rows, left={6})
    print(f"\nequal means within {found.tolerance:.2g} on the logits")
    late = [
        str(n) for n, row in enumerate(found.rows) if row.last_slot_difference > found.tolerance
    ]
    if late:
        print(f"Read row {', '.join(late)} at its own slot, not at the last one.")


def _result(client: Client, request: m.RunBatch) -> BatchResult:
    for event in client.answers(request):
        if isinstance(event, m.Batched):
            return event.result
    raise CommandError("The engine ran no batch.", ENGINE_FAILED)


def batch_document(result: BatchResult) -> dict[str, Any]:
    """The fields of design section 8, in its order."""
    return {
        "padding": result.request.padding,
        "pad_id": result.pad.id,
        "rows": [_row(row) for row in result.rows],
    }


def _row(row: BatchRow) -> dict[str, Any]:
    document: dict[str, Any] = {
        "prompt": row.prompt,
        "ids": [token.id for token in row.tokens],
        "attention_mask": list(row.attention_mask),
        "position_ids": list(row.position_ids),
        "readout": row.readout,
        "top": [
            {"id": one.token.id, "text": one.token.text, "probability": one.probability}
            for one in _read(row)
        ],
        "max_abs_diff_vs_alone": row.max_abs_diff_vs_alone,
        "verdict": row.verdict,
        "generated": [token.id for token in row.generated],
    }
    if row.immune:
        document["immune"] = True
    return document


def _read(row: BatchRow) -> tuple[Any, ...]:
    """The distribution that this run read: right, or at the last slot by mistake."""
    return (row.at_last_real if row.readout == row.last_real else row.at_last_slot).top


def _print(result: BatchResult) -> None:
    request = result.request
    wrong = f", wrong on purpose: {', '.join(request.wrong)}" if request.wrong else ""
    print(f"{result.model}: {len(result.rows)} prompts padded on the {request.padding}{wrong}")
    print(f"padding token {labels.written(result.pad)} (id {result.pad.id}). {result.pad_note}\n")
    rows = [
        (
            str(number),
            str(sum(row.real)),
            str(len(row.real) - sum(row.real)),
            f"{row.readout} of {len(row.real) - 1}",
            _best(_read(row)),
            _best(row.alone),
            f"{row.max_abs_diff_vs_alone:.2g}",
            row.verdict + (" (immune)" if row.immune else ""),
            " ".join(labels.written(token) for token in row.generated),
        )
        for number, row in enumerate(result.rows, 1)
    ]
    heads = ("row", "tokens", "pads", "read", "next", "alone", "max diff", "verdict", "goes on")
    print_table(heads, rows, left={4, 5, 7, 8})
    print(f"\nequal means within {result.tolerance:.2g} on the logits")


def _best(top: tuple[Any, ...]) -> str:
    return f"{labels.written(top[0].token)} {percent(top[0].probability)}"
