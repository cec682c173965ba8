"""`models`: the local models that were found."""

from __future__ import annotations

import argparse
from typing import Any

import msgspec

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE
from explorer.trace.wire import messages as m


class _Found(msgspec.Struct):
    """What must be known of each model."""

    name: str
    architecture: str
    parameters: int | None
    bytes: int
    dtype: str
    fits: bool | None
    path: str


class _Library(msgspec.Struct):
    models: list[_Found]


def run(arguments: argparse.Namespace) -> int:
    with Client(engine_command(arguments.engine)) as client:
        facts = client.facts(m.FindModels(), _Library)
    if arguments.json:
        print_json({"models": facts["models"]})
        return DONE
    rows = [
        (
            str(model["name"]),
            str(model["architecture"]),
            _count(model["parameters"]),
            _count(model["bytes"]),
            str(model["dtype"]),
            "incomplete download"
            if model.get("incomplete")
            else {True: "yes", False: "no"}.get(model["fits"], "not known"),
            str(model["path"]),
        )
        for model in facts["models"]
    ]
    if not rows:
        print("No models were found on this computer. Give a folder or a .gguf file instead.")
        return DONE
    heads = ("name", "architecture", "parameters", "bytes", "dtype", "fits", "path")
    print_table(heads, rows, left={0, 1, 4, 5, 6})
    return DONE


def _count(number: Any) -> str:
    return f"{number:,}" if isinstance(number, int) else "not known"
