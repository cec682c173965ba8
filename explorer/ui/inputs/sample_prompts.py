"""The sample prompts that come with the program, and a menu of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import msgspec
from PySide6.QtWidgets import QMenu

from explorer import smollm2
from explorer.places import asset


class Sample(msgspec.Struct, frozen=True):
    """One prompt worth trying: on which bundled model, and what to look at."""

    title: str
    model: str
    prompt: str
    look_at: str


def samples() -> list[Sample]:
    """All of them, in the order of the file."""
    text = asset("prompts.json").read_text(encoding="utf-8")
    return msgspec.convert(json.loads(text), list[Sample])


def fitting(model: str) -> list[Sample]:
    """Those for this model; for one that is not bundled, those for any model of language."""
    made_for = model if model == "copycat" else smollm2.NAME
    return [sample for sample in samples() if sample.model == made_for]


def fill(menu: QMenu, take: Callable[[Sample], None]) -> None:
    """An entry for each; what to look at is its tip and goes to the status line."""
    menu.setToolTipsVisible(True)
    for sample in samples():
        action = menu.addAction(f"{sample.title}  ({sample.model})", partial(take, sample))
        action.setToolTip(sample.look_at)
        action.setStatusTip(sample.look_at)
