"""`layer`: what one layer computes for one token, stage by stage."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.commands.lens import OpenRun
from explorer.cli.commands.trace import run_request
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE
from explorer.figures.text import tokens as labels
from explorer.figures.text import warnings
from explorer.trace.inside.walk import LayerWalk, WalkLayer


def run(arguments: argparse.Namespace) -> int:
    request = run_request(arguments, by_torch=True)
    with Client(engine_command(arguments.engine)) as client:
        opened = OpenRun.of(client, arguments, request)
        asked = WalkLayer(
            request=request, chosen=opened.chosen, layer=arguments.layer, slot=arguments.slot
        )
        found = opened.find(asked, LayerWalk)
    if arguments.json:
        document = {"model": arguments.model, **walk_document(found)}
        print_json({**document, "warnings": warnings.of_card(opened.card)})
    else:
        _print(opened, found)
    return DONE


def walk_document(found: LayerWalk) -> dict[str, Any]:
    """The fields that scripts rely on."""
    return {
        "layer": found.layer,
        "slot": found.slot,
        "kind": found.kind,
        "stages": [
            {
                "name": stage.name,
                "formula": stage.formula,
                "shape": list(stage.shape),
                "norm": stage.norm,
                "module": stage.module,
                "gap": stage.gap,
            }
            for stage in found.stages
        ],
        "writes": [{"name": write.name, "norm": write.norm} for write in found.writes],
        "residual_gap": found.residual_gap,
        "experts": [
            {"slot": one.slot, "ids": list(one.ids), "weights": list(one.weights)}
            for one in found.experts
        ],
    }


def _print(opened: OpenRun, found: LayerWalk) -> None:
    token = labels.written(opened.tokens[found.slot])
    print(f"layer {found.layer} ({found.kind}), position {found.slot}, {token}\n")
    rows = [
        (
            stage.name,
            " × ".join(map(str, stage.shape)),
            f"{stage.norm:z.4g}",
            "" if stage.gap is None else f"{stage.gap:.1e}",
            stage.formula,
        )
        for stage in found.stages
    ]
    print_table(("stage", "shape", "norm", "gap", "formula"), rows, left={0, 4})
    print("\ngap: how far the model's own numbers are from the formula on the stage before.")
    if found.writes:
        written = ", ".join(f"{write.name} (norm {write.norm:z.4g})" for write in found.writes)
        print(f"added to the residual stream: {written}. Off by {found.residual_gap:z.2g}.")
    else:
        print(found.residual_reason)
    if found.experts:
        own = next((one for one in found.experts if one.slot == found.slot), found.experts[-1])
        chosen = ", ".join(
            f"{number} ({weight:z.3g})" for number, weight in zip(own.ids, own.weights, strict=True)
        )
        load = Counter(number for one in found.experts for number in one.ids)
        print(f"experts of this token: {chosen}")
        print("tokens per expert: " + ", ".join(f"{n}: {load[n]}" for n in sorted(load)))
