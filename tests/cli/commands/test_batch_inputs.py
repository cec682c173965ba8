"""`batch --inputs`: the user's own tensors, and which of them is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer.cli import client
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
PAD = 0
IDS = [[PAD, PAD, PAD, 60, 70, 80], [10, 20, 30, 40, 50, 61]]
MASK = [[0, 0, 0, 1, 1, 1], [1] * 6]
POSITIONS = [[0, 0, 0, 0, 1, 2], [0, 1, 2, 3, 4, 5]]
COUNTED = [list(range(6))] * 2


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learned positions, so that wrong ones are seen."""
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model("gpt2"))


@pytest.fixture
def checked(command: Command, tiny: Path, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    def run(*words: str, **given: Any) -> list[dict[str, Any]]:
        file = tmp_path / "inputs.json"
        file.write_text(json.dumps(given))
        done = command("batch", tiny, "--inputs", file, "--json", *words)
        assert done.code == 0, done.err
        rows: list[dict[str, Any]] = json.loads(done.out)["rows"]
        return rows

    return run


Checked = Callable[..., list[dict[str, Any]]]


def test_right_inputs_are_right(checked: Checked) -> None:
    rows = checked(input_ids=IDS, attention_mask=MASK, position_ids=POSITIONS)
    assert [row["verdict"] for row in rows] == ["right", "right"]
    assert all(row["difference"] < 1e-4 for row in rows)
    assert all(row["next_id"] == row["next_id_alone"] for row in rows)
    assert [row["readout"] for row in rows] == [5, 5]


@pytest.mark.parametrize(
    ("given", "verdict", "mask", "position"),
    [
        ({"attention_mask": MASK, "position_ids": COUNTED}, "position_ids", None, 3),
        ({"attention_mask": MASK}, "position_ids", None, 3),
        ({"attention_mask": [[1] * 6] * 2, "position_ids": POSITIONS}, "attention_mask", 0, None),
        ({"attention_mask": [[0, 0, 1, 1, 1, 1], [1] * 6], "position_ids": POSITIONS},
         "attention_mask", 2, None),
        ({}, "both", 0, 3),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    checked: Checked, given: Any, verdict: str, mask: int | None, position: int | None
) -> None:
    padded, full = checked(input_ids=IDS, **given)
    assert padded["verdict"] == verdict
    assert (padded["first_wrong_mask"], padded["first_wrong_position"]) == (mask, position)
    assert padded["attention_mask"] == MASK[0]
    assert padded["position_ids"][3:] == POSITIONS[0][3:]
    assert padded["difference"] > 1e-3
    assert full["verdict"] == "right"


def test_padding_on_the_right_is_read_before_the_last_slot(
    checked: Checked, command: Command, tiny: Path, tmp_path: Path
) -> None:
    ids, mask = [[60, 70, 80, PAD, PAD]], [[1, 1, 1, 0, 0]]
    row = checked(input_ids=ids, attention_mask=mask, position_ids=[[0, 1, 2, 0, 0]])[0]
    assert (row["verdict"], row["readout"]) == ("right", 2)
    assert row["last_slot_difference"] > 1e-3
    shown = command("batch", tiny, "--inputs", tmp_path / "inputs.json")
    assert "Read row 0 at its own slot" in shown.out


def test_a_dtype_has_its_own_tolerance(
    checked: Checked, command: Command, tiny: Path, tmp_path: Path
) -> None:
    given = {"input_ids": IDS, "attention_mask": MASK, "position_ids": POSITIONS}
    rows = checked("--dtype", "bfloat16", **given)
    assert [row["verdict"] for row in rows] == ["right", "right"]
    words = ("batch", tiny, "--inputs", tmp_path / "inputs.json", "--json", "--dtype", "bfloat16")
    assert json.loads(command(*words).out)["tolerance"] >= 0.5


def test_check_takes_a_dtype(command: Command, tiny: Path) -> None:
    done = command("check", tiny, "--dtype", "bfloat16", "--json")
    assert done.code == 0, done.err
    checks = {one["name"]: one for one in json.loads(done.out)["checks"]}
    assert checks["cached_equals_uncached"]["tolerance"] >= 0.5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[1]", "must hold an object"),
        ('{"input_ids": [[5, 6]], "labels": [[1]]}', "has 'labels'"),
        ('{"input_ids": [[5, -6]]}', "whole numbers from 0 up"),
        ('{"input_ids": [[5, 6], [7]]}', "must have the shape of input_ids, 2×2"),
        ('{"input_ids": [[5, 6]], "attention_mask": [[1]]}', "attention_mask must have the shape"),
        ('{"input_ids": [[5, 6]], "attention_mask": [[0, 0]]}', "at least one 1"),
        ('{"input_ids": [[5, 6]], "position_ids": [[0, 128]]}', "the model has 128"),
        ('{"input_ids": [[5, 999]]}', "There is no token 999"),
    ],
)
def test_bad_input_is_one_sentence(
    command: Command, tiny: Path, tmp_path: Path, given: str, said: str
) -> None:
    file = tmp_path / "inputs.json"
    file.write_text(given)
    done = command("batch", tiny, "--inputs", file)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_options_that_do_not_fit(command: Command, tiny: Path) -> None:
    for words, said in (
        (("--inputs", "x", "--padding", "left"), "--padding is for --prompts"),
        (("--inputs", "x", "--steps", 2), "are for --prompts"),
        (("--prompts", "x"), "needs a side"),
    ):
        done = command("batch", tiny, *words)
        assert done.code == 2
        assert said in done.err
