"""`plan`: the memory that a model takes on hardware that need not be here."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from explorer.cli.client import Client
from explorer.cli.commands.engine import engine_command
from explorer.cli.document import print_json, print_table
from explorer.cli.errors import DONE
from explorer.figures.cost import model_plan as words
from explorer.trace.cost.model_plan import ModelPlan
from explorer.trace.wire import messages as m


def run(arguments: argparse.Namespace) -> int:
    asked = m.PlanModel(
        model=arguments.model,
        tokens=arguments.tokens,
        batch=arguments.batch,
        dtype=arguments.dtype,
        gpus=arguments.gpus,
        gpu_memory=arguments.gpu_memory,
        bytes_per_second=arguments.bandwidth,
    )
    with Client(engine_command(arguments.engine)) as client:
        facts = client.facts(asked, ModelPlan)
    if arguments.json:
        print_json(facts)
    else:
        _print(msgspec.convert(facts, ModelPlan))
    return DONE


def _print(plan: ModelPlan) -> None:
    print(words.headline(plan), end="\n\n")
    print_table(("part", "memory", ""), list(words.parts(plan)), left={0, 2})
    print()
    print_table(("captured, by dtype and policy", "memory"), list(words.captured(plan)), left={0})
    for sentence in _sentences(plan):
        print(f"\n{sentence}")
    for split in plan.splits or (None,):
        name = "whole" if split is None else split.split
        rows = [(*words.device_row(o), words.room(o)) for o in plan.devices if o.split == name]
        if rows:
            print(f"\n{words.SPLITS[name]}:")
            print_table(words.DEVICE_HEADS, rows, left={0, 1})
    print(f"\n{words.NOTE}")


def _sentences(plan: ModelPlan) -> Iterator[str]:
    yield words.bound(plan)
    yield from plan.not_known
    yield from (f"{words.SPLITS[one.split]}: {one.reason}" for one in plan.splits if one.reason)
    yield from filter(None, (words.split_bound(one) for one in plan.splits))
