"""What is translated is whole: a fragment that begins with a space can't be moved by a language."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import explorer.ui

ROOM = Path(explorer.ui.__file__).parent
FILES = sorted(ROOM.rglob("*.py"))


def translated(tree: ast.AST) -> Iterator[str]:
    """Every literal that is handed to tr()."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        text = node.args[0]
        if called in ("tr", "_tr") and isinstance(text, ast.Constant):
            yield str(text.value)


def glued(text: str) -> bool:
    """True for a piece that only makes sense behind or before another one."""
    return text != text.strip() or text[:1] in (",", ";", ":", "·")


@pytest.mark.parametrize("text", [" of {0}", ", and more", "From {0}. ", ": {0} at most", "· x"])
def test_a_fragment_is_known_as_one(text: str) -> None:
    assert glued(next(translated(ast.parse(f"self.tr({text!r})"))))


def test_no_fragment_is_translated() -> None:
    found = [
        (str(path.relative_to(ROOM)), text)
        for path in FILES
        for text in translated(ast.parse(path.read_text("utf-8")))
        if glued(text)
    ]
    assert sum(1 for path in FILES for _ in translated(ast.parse(path.read_text("utf-8")))) > 500
    assert found == []
