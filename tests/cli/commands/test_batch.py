"""`batch` on a tiny model, the engine in this process."""

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
PROMPTS = ("the cat sat on the mat and the dog", "one two", "7 8 9")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama with random weights and 128 positions, as a folder."""
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.txt"
    path.write_text("\n".join(PROMPTS) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def batch(command: Command, tiny: Path, file: Path) -> Callable[..., dict[str, Any]]:
    def run(*words: object) -> dict[str, Any]:
        done = command("batch", tiny, "--prompts", file, "--json", *words)
        assert (done.code, done.err) == (0, ""), done.err
        document: dict[str, Any] = json.loads(done.out)
        return document

    return run


Batch = Callable[..., dict[str, Any]]
FIELDS = [
    "prompt", "ids", "attention_mask", "position_ids", "readout", "top", "max_abs_diff_vs_alone",
    "verdict", "generated",
]  # fmt: skip


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_fields_of_the_design(batch: Batch, side: str) -> None:
    document = batch("--padding", side, "--steps", 3)
    assert list(document) == ["padding", "pad_id", "rows", "warnings"]
    assert document["padding"] == side
    rows = document["rows"]
    assert [row["prompt"] for row in rows] == list(PROMPTS)
    slots = len(rows[0]["ids"])
    for row in rows:
        assert list(row) == FIELDS
        real = sum(row["attention_mask"])
        pads = slots - real
        ones, zeros = [1] * real, [0] * pads
        assert row["attention_mask"] == (zeros + ones if side == "left" else ones + zeros)
        numbers = list(range(real))
        assert row["position_ids"] == (zeros + numbers if side == "left" else numbers + zeros)
        assert row["readout"] == (slots - 1 if side == "left" else real - 1)
        padding = row["ids"][:pads] if side == "left" else row["ids"][real:]
        assert padding == [document["pad_id"]] * pads
        own = row["ids"][pads:] if side == "left" else row["ids"][:real]
        assert row["generated"] == folders.greedy(folders.model(), own, 3)
        assert row["top"][0]["id"] == row["generated"][0]
        assert list(row["top"][0]) == ["id", "text", "probability"]
        assert row["max_abs_diff_vs_alone"] < 1e-4
        assert row["verdict"] == "right"


def test_each_mistake_has_its_verdict_or_is_immune(batch: Batch) -> None:
    wrong = batch("--padding", "right", "--wrong", "readout")["rows"]
    slots = len(wrong[0]["ids"])
    assert [row["readout"] for row in wrong] == [slots - 1] * 3
    assert [row["verdict"] for row in wrong] == ["right", "wrong readout", "wrong readout"]
    assert [row.get("immune") for row in wrong] == [True, None, None]
    assert min(row["max_abs_diff_vs_alone"] for row in wrong[1:]) > 0.01
    assert wrong[1]["top"] != batch("--padding", "right")["rows"][1]["top"]
    no_mask = batch("--padding", "left", "--wrong", "mask")["rows"]
    assert [row["verdict"] for row in no_mask] == ["right", "wrong mask", "wrong mask"]
    assert all(row["attention_mask"] == [1] * slots for row in no_mask)
    immune = batch("--padding", "left", "--wrong", "positions")["rows"]
    assert all(row["immune"] and row["verdict"] == "right" for row in immune)
    assert all(row["position_ids"] == list(range(slots)) for row in immune)


def test_chat_puts_each_prompt_in_the_template(batch: Batch) -> None:
    raw, chat = batch("--padding", "left"), batch("--padding", "left", "--chat")
    for plain, asked in zip(raw["rows"], chat["rows"], strict=True):
        assert sum(asked["attention_mask"]) > sum(plain["attention_mask"])
        assert asked["verdict"] == "right"


def test_a_json_list_of_prompts(batch: Batch, file: Path) -> None:
    file.write_text(json.dumps(["a\nb", "c"]), encoding="utf-8")
    assert [row["prompt"] for row in batch("--padding", "left")["rows"]] == ["a\nb", "c"]
    file.write_bytes(b"[not json\r\nbut prompts")
    prompts = [row["prompt"] for row in batch("--padding", "left")["rows"]]
    assert prompts == ["[not json", "but prompts"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has 0 prompts"),
        (b"a\n" * 17, "has 17 prompts"),
        (b"fine\n\xff", "not UTF-8 text (byte 5"),
        (b'["\\ud800"]', "U+D800"),
        (b"one\n\nthree", "Prompt 2 has no tokens"),
        (b"one\n" + b"long " * 200, "at most 128"),
    ],
)
def test_prompts_that_cannot_be_run(
    command: Command, tiny: Path, file: Path, content: bytes, words: str
) -> None:
    file.write_bytes(content)
    done = command("batch", tiny, "--prompts", file, "--padding", "left")
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_file_that_is_not_there(command: Command, tiny: Path, tmp_path: Path) -> None:
    done = command("batch", tiny, "--prompts", tmp_path / "no.txt", "--padding", "left")
    assert done.code == 2
    assert "could not be read" in done.err


def test_the_table_names_the_padding_token_and_every_verdict(
    command: Command, tiny: Path, file: Path
) -> None:
    words = ("--prompts", file, "--padding", "right", "--wrong", "readout", "--steps", 2)
    done = command("batch", tiny, *words)
    assert done.code == 0
    assert "padding token <|endoftext|> (id 0)" in done.out
    assert "wrong on purpose: readout" in done.out
    assert done.out.count("wrong readout") == 2
    assert "right (immune)" in done.out
