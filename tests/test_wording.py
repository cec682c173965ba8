"""Figures in words: one function for each kind, and nobody words them otherwise."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import explorer
from explorer.wording import exact_percent, percent, progress_percent, round_percent, signed

ROOT = Path(explorer.__file__).parent


@pytest.mark.parametrize(
    ("share", "short", "exact"),
    [
        (0.0, "0 %", "0 %"),
        (-1e-9, "0 %", "0 %"),
        (1.0, "100 %", "100 %"),
        (1.0000000002, "100 %", "100 %"),
        (0.7713, "77.1 %", "77.1 %"),
        (0.8, "80.0 %", "80.0 %"),
        (0.1, "10.0 %", "10.0 %"),
        (0.09996, "10.0 %", "10.0 %"),
        (0.0996, "10.0 %", "9.96 %"),
        (0.012345, "1.2 %", "1.23 %"),
        (0.00999, "1.0 %", "0.999 %"),
        (0.005, "0.50 %", "0.500 %"),
        (0.001, "0.10 %", "0.100 %"),
        (0.000123, "< 0.1 %", "0.0123 %"),
        (1.234e-6, "< 0.1 %", "0.000123 %"),
        (9.876e-7, "< 0.1 %", "9.88×10⁻⁷"),
        (4.56e-11, "< 0.1 %", "4.56×10⁻¹¹"),
        (0.9994, "99.9 %", "99.9 %"),
        (0.99996, "> 99.9 %", "99.996 %"),
        (0.99999, "> 99.9 %", "99.9990 %"),
        (float("nan"), "not a number", "not a number"),
    ],
)
def test_a_share_has_two_forms(share: float, short: str, exact: str) -> None:
    assert percent(share) == short
    assert exact_percent(share) == exact


def test_only_nothing_is_0_and_only_certainty_is_100() -> None:
    near = [*10.0 ** -np.arange(1, 300), *(1 - 10.0 ** -np.arange(1, 16)), np.nextafter(1, 0)]
    for share in map(float, near):
        for words in (percent(share), exact_percent(share)):
            assert words not in ("0 %", "100 %", "100.0 %")
            assert words.strip("0. %<>")
            assert "%" not in words or "10⁻" not in words


def test_ticks_and_progress() -> None:
    assert [round_percent(p) for p in (0.25, 0.5, 1, 0.125)] == ["25 %", "50 %", "100 %", "12.5 %"]
    assert [progress_percent(p) for p in (0, 0.999, 1, 2)] == ["0 %", "99 %", "100 %", "100 %"]


def test_nothing_is_below_zero_by_rounding() -> None:
    assert [signed(x, ".2f") for x in (-0.004, 0.004, -0.0, -0.006)] == [
        "+0.00", "+0.00", "+0.00", "-0.01"
    ]  # fmt: skip
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in ROOT.rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"\{[^{}]*:\+,?\.", line)
    ]
    assert not found  # a sign without z says "-0.00": `signed` is the one formatter


def test_nobody_else_words_per_cents() -> None:
    """Two places that word a share would some day say "100 %" and "99.9990 %" of one figure."""
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in ROOT.rglob("*.py")
        if path.name != "wording.py"
        for line in worded_per_cents(ast.parse(path.read_text("utf-8")))
    ]
    assert not found


def worded_per_cents(tree: ast.AST) -> Iterator[int]:
    """Lines with a figure before a per cent sign: f"{x} %", f"{x:.0%}", "{0} %" to be filled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part, after in zip(node.values, [*node.values[1:], None], strict=True):
                spec = ast.unparse(part.format_spec) if _has_spec(part) else ""
                sign = isinstance(after, ast.Constant) and str(after.value).lstrip().startswith("%")
                if spec.rstrip("'\"").endswith("%") or (
                    isinstance(part, ast.FormattedValue) and sign
                ):
                    yield node.lineno
        elif isinstance(node, ast.Constant) and re.search(r"\} ?%", str(node.value)):
            yield node.lineno


def _has_spec(part: ast.expr) -> bool:
    return isinstance(part, ast.FormattedValue) and part.format_spec is not None
