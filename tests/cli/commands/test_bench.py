"""Saved benches: what is compared, what is refused; the window measured in a child process."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from explorer.cli.commands import bench
from explorer.cli.dispatch import main

DOCUMENT: dict[str, Any] = {
    "model": "tiny",
    "threads": 1,
    "machine": {"processor": "an abacus", "cores": 2},
    "ratios": {"decode_capture_over_plain": 1.02, "eager_over_ours": {"1024": 1.9}},
    "spread": {"decode_capture_over_plain": [0.98, 1.07], "eager_over_ours": {"1024": [1.8, 2.1]}},
    "figures": {"decode_ms": 80.0, "repeats": {"decode": 9, "1024": 5}},
}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_measured", lambda arguments: json.loads(json.dumps(DOCUMENT)))


def test_results_are_saved_and_compared(
    measured: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    assert main(["bench", "tiny", "--no-window", "--out", str(file), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(file.read_text())
    assert printed["figures"]["window"] == {"not_measured": "left out by --no-window"}
    slower = json.loads(file.read_text())
    slower["ratios"]["decode_capture_over_plain"] = 2.04
    file.write_text(json.dumps(slower))
    assert main(["bench", "tiny", "--no-window", "--against", str(file), "--json"]) == 0
    against = json.loads(capsys.readouterr().out)["against"]
    assert against["decode_capture_over_plain"] == {"then": 2.04, "now": 1.02, "now_over_then": 0.5}
    assert against["eager_over_ours 1024"]["now_over_then"] == 1
    assert main(["bench", "tiny", "--no-window", "--against", str(file)]) == 0
    table = capsys.readouterr().out
    assert "2.04 (× 0.50)" in table
    assert "0.98-1.07 (9)" in table
    assert "1.80-2.10 (5)" in table
    assert "an abacus, 2 cores" in table


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ratios": {"x": {"y": "z"}}}'])
def test_what_is_no_saved_bench_is_refused_before_anything_runs(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    assert main(["bench", "tiny", "--against", str(file)]) == 2
    assert "not a saved bench" in capsys.readouterr().err
    assert main(["bench", "tiny", "--against", str(tmp_path / "gone")]) == 2
    assert main(["bench", "tiny", "--out", str(tmp_path / "no" / "folder.json")]) == 2


def test_a_window_that_cannot_be_measured_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def arguments(model: str, engine: str | None = None) -> Namespace:
        return Namespace(model=model, engine=engine)

    assert "with --engine" in bench._window(arguments("tiny", "ssh there"))["not_measured"]
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    found = bench._window(arguments("no such model"))
    assert "no such model" in found["not_measured"]
