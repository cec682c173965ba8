"""`attribute`: a token's logit as the sum of what each part of the model adds to it."""

from __future__ import annotations

import argparse
from typing import Any

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.lens import OpenRun
from explorer.cli.commands.trace import run_request
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.trace.inside.attribution import Attribute, Attribution, LogitPart, Target
from explorer.trace.step import Token
from explorer.wording import signed

LISTED = 20  # parts in the table, the largest first


def run(arguments: argparse.Namespace) -> int:
    request = run_request(arguments, by_torch=True)
    with Client(engine_command(arguments.engine)) as client:
        opened = OpenRun.of(client, arguments, request)
        asked = Attribute(
            request=request,
            chosen=opened.chosen,
            slot=arguments.slot,
            token=arguments.token,
            against=arguments.against,
        )
        found = opened.find(asked, Attribution)
    if arguments.json:
        document = {"model": arguments.model, **attribution_document(found)}
        print_json({**document, "warnings": warnings.of_card(opened.card)})
    else:
        _print(opened, found)
    return DONE


def attribution_document(found: Attribution) -> dict[str, Any]:
    """The fields that scripts rely on."""
    document: dict[str, Any] = {
        "slot": found.slot,
        "target": _target(found.target),
        "parts": [
            {"kind": part.kind, "layer": part.layer, "head": part.head, "value": part.value}
            for part in found.parts
        ],
        "sum": found.sum,
        "gap": found.gap,
    }
    if found.against is not None:
        document["against"] = _target(found.against)
    return document


def _target(target: Target) -> dict[str, Any]:
    return {
        "id": target.id,
        "text": target.raw.decode("utf-8", errors="replace"),
        "logit": target.logit,
    }


def _print(opened: OpenRun, found: Attribution) -> None:
    what = f"logit {found.target.logit:z.3f} of {_written(found.target)}"
    if found.against is not None:
        what += f", {signed(found.wanted, '.3f')} ahead of {_written(found.against)}"
    print(f"position {found.slot}, {labels.written(opened.tokens[found.slot])}: {what}\n")
    ranked = sorted(found.parts, key=lambda part: -abs(part.value))
    rows = [(_name(part), signed(part.value, ".3f")) for part in ranked[:LISTED]]
    if ranked[LISTED:]:
        rest = sum(part.value for part in ranked[LISTED:])
        rows.append((f"{len(ranked[LISTED:])} more parts", signed(rest, ".3f")))
    rows.append(("sum", signed(found.sum, ".3f")))
    print_table(("part", "adds"), rows, left={0})
    print(
        "\nThe final norm's scale is held at its actual value, so the parts add up to the logit "
        f"(off by {found.gap:.2g})."
    )


def _name(part: LogitPart) -> str:
    if part.head is not None:
        return f"layer {part.layer} head {part.head}"
    return part.kind if part.layer is None else f"layer {part.layer} {part.kind}"


def _written(target: Target) -> str:
    return labels.written(Token(target.id, target.raw, "generated"))
