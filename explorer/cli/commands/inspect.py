"""`inspect`: what a model is, from its config alone."""

from __future__ import annotations

import argparse
from itertools import groupby
from typing import Any

import msgspec

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.document import CELL, print_json
from explorer.cli.errors import DONE
from explorer.figures.text import warnings
from explorer.figures.text.sentences import fitting
from explorer.trace.wire import messages as m


class _InspectedModel(msgspec.Struct):
    """What must be in the engine's answer, whatever else is."""

    source: str
    warnings: list[str]


def run(arguments: argparse.Namespace) -> int:
    with Client(engine_command(arguments.engine)) as client:
        facts = client.facts(m.Inspect(model=arguments.model), _InspectedModel)
        facts["warnings"] = warnings.of_model(facts["source"], facts["warnings"])
        client.warn(facts["warnings"])
    if arguments.json:
        print_json(facts)
    else:
        for name, value in facts.items():
            if name != "warnings" and value != "":  # the warnings are on stderr already
                print(f"{name.replace('_', ' ')}: {_words(value)}")
    return DONE


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)  # years and sizes stay plain
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        lines = [(_words(part), len(list(same))) for part, same in groupby(value)]
        return "".join(f"\n  {words}" + f" × {n}" * (n > 1) for words, n in lines)
    return fitting(str(value), word=CELL)
