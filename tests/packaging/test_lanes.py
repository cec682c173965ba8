"""All checks in two lanes: every test is in one of them, and every failure is named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def test_every_file_of_tests_is_in_one_lane(script: Callable[[str], ModuleType]) -> None:
    paths = [ROOT / path for lane in script("test").shares() for path in lane]
    found = [
        file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    ]
    assert sorted(found) == sorted((ROOT / "tests").rglob("test_*.py"))


def test_lanes_run_at_the_same_time_and_name_what_failed(
    script: Callable[[str], ModuleType], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each waits for a file that the other makes."""

    def lane(mine: str, other: str, code: int) -> list[tuple[str, list[str]]]:
        script = (
            f"import pathlib, sys; pathlib.Path({mine!r}).touch()\n"
            f"while not pathlib.Path({other!r}).exists(): pass\n"
            f"print('said by', {mine!r}); sys.exit({code})"
        )
        return [(mine, [sys.executable, "-c", script]), ("next", [sys.executable, "-c", ""])]

    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert script("test").run_beside([lane(a, b, 0), lane(b, a, 3)], dict(os.environ)) == [b]
    printed = capfd.readouterr().out
    assert printed.index(f"said by {a}") < printed.index(f"said by {b}")


def test_arguments_go_to_pytest_and_everything_else_is_checked_too(
    script: Callable[[str], ModuleType],
) -> None:
    arguments = ["--run-big", "tests/llama_engine/test_big.py"]
    (lane,) = script("test").lanes("python", [], arguments)
    assert lane[-1][1][-3:] == ["-q", *arguments]
    assert [name for name, _ in lane[:-1]] == ["ruff check", "ruff format", "types", "import rules"]
