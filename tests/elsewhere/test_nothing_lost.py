"""A command whose engine is lost on the way keeps the steps that came."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from explorer.cli import client, main
from explorer.session.connection.lost_words import ENDED
from explorer.trace.files import dxt
from tests.elsewhere.server import FAKE, ROOT, Server

WORDS = ("trace", "m", "--prompt", "x", "--steps")


@pytest.fixture(autouse=True)
def find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def here(*behaviour: str) -> str:
    return shlex.join([sys.executable, str(FAKE), *behaviour])


@pytest.mark.ssh
def test_the_steps_that_came_are_saved_and_counted(
    there: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.dxt"
    engine = shlex.join(there.command("gpu-box", "fake-engine", "runs", "3"))
    assert main([*WORDS, "20", "--out", str(out), "--json", "--engine", engine]) == 3
    said = capsys.readouterr()
    assert said.err == f"{ENDED} (exit code 9). 3 of 20 steps were saved to {out}.\n"
    document = json.loads(said.out)
    assert document["error"] == f"{ENDED} (exit code 9)."
    kept = dxt.load(out)
    assert [step.index for step in kept.steps] == [0, 1, 2]
    assert kept.chosen_ids == tuple(step["chosen_id"] for step in document["steps"])
    assert kept.weights(2, 0, 0).shape[0] == 1  # with what was recorded of them


def test_without_a_file_the_steps_that_came_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, "20", "--engine", here("runs", "2")]) == 3
    said = capsys.readouterr()
    assert "2 of 20 steps are above." in said.err
    assert "not yet" in said.out


def test_a_run_without_a_step_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.dxt"
    assert main([*WORDS, "20", "--out", str(out), "--engine", here("echo")]) == 3
    assert "saved" not in capsys.readouterr().err
    assert not out.exists()


def test_an_interrupted_run_is_saved_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def show(self: object, text: str, fraction: float | None = None) -> None:
        if text == "step" and fraction == 5 / 1000:  # as if Ctrl-C were pressed then
            raise KeyboardInterrupt

    monkeypatch.setattr(client.ProgressLine, "show", show)
    out = tmp_path / "a.dxt"
    assert main([*WORDS, "1000", "--out", str(out), "--engine", here("runs")]) == 130
    assert f"Interrupted. 4 of 1,000 steps were saved to {out}." in capsys.readouterr().err
    assert len(dxt.load(out).steps) == 4


def test_of_many_prompts_the_finished_ones_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("one\ntwo\n")
    words = ["trace", "m", "--prompts", str(prompts), "--json", "--engine", here("runs", "2")]
    assert main([*words, "--steps", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main([*words, "--steps", "9"]) == 3
    said = capsys.readouterr()
    line = json.loads(said.out)
    assert (line["prompt_index"], len(line["steps"])) == (0, 2)
    assert said.err.startswith("Prompt 1: ")
