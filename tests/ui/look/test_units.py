"""Entropy and surprisal have one unit in the whole window: nats, or bits by one setting."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLabel

from explorer import wording
from tests.ui.stage import WindowStage

UI = Path(wording.__file__).parent / "ui"


@pytest.fixture(autouse=True)
def nats_again() -> Iterator[None]:
    yield
    wording.use_unit("nats")


def said(stage: WindowStage, word: str) -> list[str]:
    stage.paint()
    labels = stage.window.findChildren(QLabel)
    return [text for label in labels if word in (text := label.text())]


def test_information_names_its_unit() -> None:
    assert wording.information(1.0) == "1 nats"
    assert wording.information(math.inf) == "∞ nats"
    wording.use_unit("bits")
    assert wording.information(math.log(8)) == "3 bits"
    assert wording.information(math.log(2) * 10.9, ".1f") == "10.9 bits"


def test_the_setting_changes_what_is_on_screen(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    before = said(stage, "entropy")
    assert before
    assert all("nats" in text for text in before)
    stage.window.preferences.toggle("nats")
    after = said(stage, "entropy")
    assert len(after) == len(before)
    assert all("bits" in text and "nats" not in text for text in after)
    stage.window.preferences.toggle("nats")
    assert said(stage, "entropy") == before


def test_no_panel_writes_the_unit_by_itself() -> None:
    """But for the padding lab, where both units stand side by side, and names of columns."""
    found = []
    for file in UI.rglob("*.py"):
        if file.parent.name != "padding" and file.name != "padding.py":
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found += [node.value] * (" nats" in node.value)
    assert found == ["Entropy and surprisal in nats"]
