"""`plan`: a model that is nowhere on the disk, as JSON and in words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli import client
from explorer.figures.cost.model_plan import NOTE
from tests.cli.conftest import Done
from tests.engine.local_engine import LocalEngine
from tests.engine.tiny import KINDS

Command = Callable[..., Done]


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config without weights."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "gemma3_text", **KINDS["gemma3_text"]}))
    return file


def test_json_has_the_documented_fields(command: Command, config: Path) -> None:
    done = command(
        "plan", config, "--tokens", 32, "--batch", 2, "--gpus", 2, "--gpu-memory", "1MB",
        "--bandwidth", "1GB", "--json",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert set(found) == {
        "model", "architecture", "parameters", "tokens", "batch", "dtype", "weights_bytes",
        "cache_bytes", "cache_bytes_per_layer", "activation_bytes", "captured_bytes",
        "total_bytes", "step_bound", "splits", "devices", "not_known",
    }  # fmt: skip
    row = 2 * 2 * 8 * 4 * 2  # keys and values, heads, width, bytes, sequences
    kinds = [(one["kind"], one["bytes"]) for one in found["cache_bytes_per_layer"]]
    assert kinds == [("sliding", 4 * row), ("sliding", 4 * row), ("full", 32 * row)]
    assert found["cache_bytes"] == 40 * row
    bound = found["step_bound"]
    assert bound["seconds"] == pytest.approx(bound["bytes_read"] / 1e9)
    assert [one["split"] for one in found["devices"]] == ["tensor"] * 2 + ["pipeline"] * 2
    assert all(one["memory_bytes"] == 10**6 and one["fits"] for one in found["devices"])


def test_words(command: Command, config: Path) -> None:
    done = command("plan", config, "--tokens", 32, "--gpus", 3, "--gpu-memory", "1kB")
    assert (done.code, done.err) == (0, "")
    for said in ("2 sliding layers", "can't be divided evenly among 3 GPUs. Choose 2 GPUs, or",
                 "bandwidth, which was not given", "0.977 KiB", NOTE):  # fmt: skip
        assert said in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tokens", "0"), "whole number from 1 up"),
        (("--tokens", "8", "--gpu-memory", "much"), "write it like 80GB"),
        (("--tokens", "99"), "was built for at most 64 tokens"),
    ],
)
def test_bad_use_is_one_sentence(
    command: Command, config: Path, words: tuple[str, ...], said: str
) -> None:
    done = command("plan", config, *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert done.err.count("\n") == 1
