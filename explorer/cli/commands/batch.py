"""`batch`: padded prompts in one pass, compared with each one run alone."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.cli.client import Client, require_possible
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.trace import form_of
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE, ENGINE_FAILED, CommandError
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.session.jobs.prompt_list import PromptListError, read_prompts
from explorer.trace.batch import BatchRequest, BatchResult, BatchRow
from explorer.trace.wire import messages as m
from explorer.wording import percent


def run(arguments: argparse.Namespace) -> int:
    """Everything that can be refused is refused before the engine starts."""
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
        card = client.load(arguments.model, form=form_of(arguments, by_torch=True))
        result = _result(client, m.RunBatch(batch=request))
        client.note(result.decoded_apart)
    if arguments.json:
        print_json({**batch_document(result), "warnings": warnings.of_card(card)})
    else:
        _print(result)
    return DONE


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
