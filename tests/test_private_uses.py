"""Tests ask a thing what anyone may ask it: uses of private attributes are counted, to go down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
USES = 173  # may only go down


def private_uses(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes with one underscore in front, of anything but the test's own self or class."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
            continue
        own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if node.attr.startswith("_") and not own:
            yield node


def test_no_more_private_attributes_are_used_than_before() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno} {node.attr}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in private_uses(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert len(found) <= USES, "\n".join(found)


def test_only_single_underscores_of_others_are_counted() -> None:
    code = "self._a; cls._b; panel._c.d; panel.e; panel.__doc__; panel.f._g()"
    assert {node.attr for node in private_uses(ast.parse(code))} == {"_c", "_g"}
