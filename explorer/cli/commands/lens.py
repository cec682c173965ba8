"""`lens`: what the model would say if it ended after each of its layers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.trace import run_loaded, run_request
from explorer.cli.document import print_json, print_table, token_document
from explorer.cli.errors import DONE, ENGINE_FAILED, CommandError
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.trace.card import ModelCard
from explorer.trace.experiments import Experiment, Result, UnfitAnswer, read_result
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from explorer.wording import percent

_R = TypeVar("_R", bound=Result)


@dataclass(frozen=True)
class OpenRun:
    """A model that is open, and the tokens of the run that is looked into."""

    client: Client
    card: ModelCard
    request: RunRequest
    tokens: tuple[Token, ...]
    chosen: tuple[int, ...]

    @classmethod
    def of(cls, client: Client, arguments: argparse.Namespace, request: RunRequest) -> OpenRun:
        """Open the model and continue the prompt by --steps tokens; CommandError if that fails."""
        card = client.load_for(request)
        if arguments.steps:
            trace = run_loaded(client, card, request, arguments.steps, Sampling())
            return cls(client, card, request, trace.tokens, trace.chosen_ids)
        for event in client.answers(m.Tokenize(request=request)):
            if isinstance(event, m.Tokens):
                client.note(" ".join(filter(None, (event.problem, event.note))))
                return cls(client, card, request, event.tokens, ())
        raise CommandError("The engine gave no tokens.", ENGINE_FAILED)

    def find(self, question: Experiment, kind: type[_R]) -> _R:
        """The answer to a question about this run."""
        try:
            return read_result(self.client.facts(question), kind)  # type: ignore[arg-type]
        except UnfitAnswer as error:
            raise CommandError(str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    request = run_request(arguments)
    slots = () if arguments.slot is None else (arguments.slot,)
    with Client(engine_command(arguments.engine)) as client:
        opened = OpenRun.of(client, arguments, request)
        if not slots and not arguments.json:
            slots = (len(opened.tokens) - 1,)
        asked = ReadLens(request=request, chosen=opened.chosen, slots=slots, top=arguments.top)
        board = opened.find(asked, LensBoard)
    if arguments.json:
        print_json(_document(arguments.model, opened, board))
    else:
        _print(opened, board)
    return DONE


def _document(model: str, opened: OpenRun, board: LensBoard) -> dict[str, Any]:
    """The fields that scripts rely on, row by row."""
    rows = range(len(board.rows))
    return {
        "model": model,
        "tokens": [token_document(token) for token in opened.tokens],
        "rows": [
            {
                "name": board.rows[row],
                "positions": [_position(board, row, place) for place in range(len(board.slots))],
            }
            for row in rows
        ],
        "final_gap": board.final_gap,
        "warnings": warnings.of_card(opened.card),
    }


def _position(board: LensBoard, row: int, place: int) -> dict[str, Any]:
    return {
        "slot": board.slots[place],
        "top": [
            {"id": token.id, "text": token.text, "probability": share}
            for token, share in _top(board, row, place)
        ],
        "entropy_bits": float(board.entropy_bits[row, place]),
        "kl_to_final_bits": float(board.kl_to_final_bits[row, place]),
        "rank_of_final": int(board.rank_of_final[row, place]),
        "probability_of_final": float(board.probability_of_final[row, place]),
    }


def _top(board: LensBoard, row: int, place: int) -> list[tuple[Token, float]]:
    ids, shares = board.ids[row, place].tolist(), board.probabilities[row, place].tolist()
    spelling = board.spelling
    return [(Token(i, spelling[i], "generated"), p) for i, p in zip(ids, shares, strict=True)]


def _print(opened: OpenRun, board: LensBoard) -> None:
    place = len(board.slots) - 1
    slot = board.slots[place]
    best, share = _top(board, len(board.rows) - 1, place)[0]
    print(
        f"position {slot}, {labels.written(opened.tokens[slot])}: the model says "
        f"{labels.written(best)} {percent(share)}\n"
    )
    rows = [
        (
            board.rows[row],
            percent(float(board.probability_of_final[row, place])),
            str(board.rank_of_final[row, place]),
            f"{board.entropy_bits[row, place]:z.2f}",
            f"{board.kl_to_final_bits[row, place]:z.2f}",
            _in_words(_top(board, row, place)),
        )
        for row in range(len(board.rows))
    ]
    heads = ("layer", labels.written(best), "rank", "entropy bits", "KL bits", "most probable")
    print_table(heads, rows, left={0, 5})
    print(
        "\nEach row: the output of that layer, read through the model's own final norm and head. "
        "An early layer's\nrow is a reading, not a belief. The last row differs from the model's "
        f"own logits by {board.final_gap:.2g}."
    )


def _in_words(top: Sequence[tuple[Token, float]]) -> str:
    return "  ".join(f"{labels.written(token)} {percent(share)}" for token, share in top)
