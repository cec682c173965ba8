"""`batch`: padded prompts in one pass, beside each of them run alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from explorer.cli.client import Client
from explorer.cli.document import print_json, print_table
from explorer.cli.engine import engine_command
from explorer.cli.errors import DONE, ENGINE_FAILED, CommandError
from explorer.figures import tokens as labels
from explorer.figures.next_token import percent
from explorer.session.prompt import encoding_problem
from explorer.trace import messages as m
from explorer.trace.batch import MOST_ROWS, BatchRequest, BatchResult, BatchRow


def run(arguments: argparse.Namespace) -> int:
    """Everything that can be refused is refused before the engine starts."""
    request = BatchRequest(
        prompts=prompts(arguments.prompts),
        padding=arguments.padding,
        steps=arguments.steps,
        wrong=(arguments.wrong,) if arguments.wrong else (),
    )
    command = engine_command(arguments.engine)
    with Client(command) as client:
        client.load(arguments.model)
        result = _result(client, m.RunBatch(batch=request))
        client.note(result.decoded_apart)
    if arguments.json:
        print_json(batch_document(result))
    else:
        _print(result)
    return DONE


def prompts(name: str) -> tuple[str, ...]:
    """The prompts of a UTF-8 file: a JSON list of strings, or one a line."""
    try:
        text = Path(name).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{name} is not UTF-8 text (byte {error.start} can't be read); save it as UTF-8."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CommandError(f"{name} could not be read: {reason}.") from error
    found = _json_list(text)
    if found is None:
        # Not splitlines: a line may hold form feeds and other separators of its own.
        found = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if not 1 <= len(found) <= MOST_ROWS or found == [""]:
        count = 0 if found == [""] else len(found)
        raise CommandError(
            f"{name} holds {count} prompts, but a batch takes 1 to {MOST_ROWS}, one a line."
        )
    for prompt in found:
        problem = encoding_problem(prompt)
        if problem:
            raise CommandError(problem)
    return tuple(found)


def _json_list(text: str) -> list[str] | None:
    """The strings of a JSON list; None if the text is anything else."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if isinstance(found, list) and all(isinstance(entry, str) for entry in found):
        return found
    return None


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
