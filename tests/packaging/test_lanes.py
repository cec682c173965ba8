"""All checks in two lanes: every test is in one of them, and every failure is named."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """packaging/test.py; by its path, for Python has a `test` of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    spec = importlib.util.spec_from_file_location("all_checks", ROOT / "packaging" / "test.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_of_tests_is_in_one_lane(checks: ModuleType) -> None:
    paths = [ROOT / path for lane in checks.shares() for path in lane]
    found = [
        file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))
    ]
    assert sorted(found) == sorted((ROOT / "tests").rglob("test_*.py"))


def test_lanes_run_at_the_same_time_and_name_what_failed(
    checks: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
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
    assert checks.run_beside([lane(a, b, 0), lane(b, a, 3)], dict(os.environ)) == [b]
    printed = capfd.readouterr().out
    assert printed.index(f"said by {a}") < printed.index(f"said by {b}")
