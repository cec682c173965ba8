"""`train`, with the engine in this process."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from explorer.cli import client
from explorer.engine.training import kept_training, training
from explorer.engine.training.training import Training
from explorer.trace.training.settings import TrainingSettings
from tests.cli.conftest import Done
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
SMALL = ("train", "--width", "16", "--heads", "2", "--layers", "1", "--steps", "6")


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


def test_figures_are_those_of_the_training(command: Command) -> None:
    done = command(*SMALL, "--seed", 5, "--wrong", "mask", "--wrong", "padding", "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    ours = Training(
        TrainingSettings(width=16, heads=2, layers=1, steps=6, seed=5, wrong=("mask", "padding"))
    )
    steps = [ours.advance() for _ in range(6)]
    assert found["parameters"] == ours.parameters
    assert [(one["step"], one["loss"]) for one in found["steps"]] == [
        (one.step, one.loss) for one in steps
    ]
    assert found["final_loss"] == steps[-1].loss
    assert found["copy_accuracy"] == ours.accuracy()
    assert found["accuracy_by_position"]["own"] == list(ours.accuracy_by_position()[0])
    assert found["wrong"] == ["mask", "padding"]
    assert found["seconds"] > 0


@pytest.mark.parametrize("build", ["encoder", "primitives", "modern"])
def test_what_is_saved_opens_in_transformers_and_in_the_program(
    command: Command, tmp_path: Path, build: str
) -> None:
    folder = tmp_path / "new" / "model"
    done = command(*SMALL, "--build", build, "--out", folder)
    assert done.code == 0
    assert f"Saved in {folder}" in done.out
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert f"{sum(w.numel() for w in model.parameters()):,} parameters" in done.out
    done = command("trace", folder, "--prompt", "machinesm", "--steps", 2, "--json")
    assert done.code == 0
    assert json.loads(done.out)["prompt_tokens"] == 9


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--layers", "40"), "--layers must be <= 12"),
        (("--rate", "0"), "--rate must be > 0.0"),
        (("--rate", "nan"), "--rate"),
        (("--heads", "3"), "even multiple"),
        (("--task", "no such file"), "Choose copy, previous, reverse or a text file"),
        (("--wrong", "everything"), "--wrong"),
        (("--out", ""), "--out is empty"),
    ],
)
def test_what_can_not_be_trained_is_one_sentence(
    command: Command, words: tuple[str, ...], named: str
) -> None:
    done = command(*SMALL, *words)
    assert (done.code, done.out) == (2, "")
    assert named in done.err
    assert done.err.count("\n") == 1


def test_a_folder_in_use_is_refused_before_anything_is_trained(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "EngineProcess", None)
    (tmp_path / "mine").write_text("keep")
    for out in (tmp_path, tmp_path / "mine", tmp_path / "mine" / "model"):
        done = command(*SMALL, "--out", out)
        assert (done.code, done.out) == (2, "")
        assert str(out) in done.err
    assert (tmp_path / "mine").read_text() == "keep"


@pytest.mark.parametrize("out", [True, False])
def test_ctrl_c_keeps_what_was_trained(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: bool
) -> None:
    pressed = iter([True])

    def impatient(self: client.Client, text: str, fraction: float | None = None) -> None:
        if next(pressed, False):
            raise KeyboardInterrupt

    monkeypatch.setattr(client.Client, "progress", impatient)
    folder = tmp_path / "model"
    words = ("--out", folder) if out else ()
    done = command(*SMALL, "--steps", 100_000, *words)
    assert (done.code, done.out) == (130, "")
    step = int(done.err.split()[2].replace(",", ""))
    assert 0 < step < 100_000
    if out:
        assert str(folder) in done.err
        AutoModelForCausalLM.from_pretrained(folder)
    else:
        assert "Training panel" in done.err
        assert kept_training.find().trainings[0].step == step


def test_a_loss_that_is_no_number_is_said(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverges(logits: torch.Tensor, labels: torch.Tensor, shift: bool) -> torch.Tensor:
        return logits.sum() * math.nan

    monkeypatch.setattr(training, "next_token_loss", diverges)
    done = command(*SMALL)
    assert (done.code, done.out) == (2, "")
    assert "learning rate is too high" in done.err
