"""`compare` and `heads`: on saved runs without an engine, and on the bundled model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from explorer.cli import client
from explorer.trace.files import dxt
from explorer.trace.step import Token
from tests.cli.conftest import Done
from tests.engine.local_engine import LocalEngine
from tests.session.scripted import played

Command = Callable[..., Done]


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A run, and one that takes another token at its second step."""
    trace = played(2)
    draw = msgspec.structs.replace(trace.steps[1].draw, token_id=33, how="forced", u=None)
    other = trace.forced(Token(33, b"other", "forced"), draw)
    paths = tmp_path / "a.dxt", tmp_path / "b.dxt"
    for path, one in zip(paths, (trace, other), strict=True):
        dxt.save(one, path)
    return paths


def test_two_saved_runs(command: Command, two: tuple[Path, Path]) -> None:
    done = command("compare", *two, "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert list(document) == ["left", "right", "alignment", "first_difference", "steps"]
    assert document["left"]["model"] == "tiny"
    first = document["first_difference"]
    assert document["alignment"][first]["left"] == [len(played().prompt) + 1]
    assert [one["same_choice"] for one in document["steps"]][:2] == [True, False]
    assert document["steps"][0]["kl_bits"] == 0
    assert document["steps"][0]["largest_map_difference"]["difference"] == 0
    read = command("compare", *two)
    assert "first difference: position 4 of the left" in read.out
    same = command("compare", two[0], two[0])
    assert "All tokens are the same on both sides." in same.out


def test_raw_text_beside_the_chat_template(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())
    words = "compare", "copycat", "copycat", "--prompt", "one two one"
    done = command(*words, "--steps", 2, "--json")
    document = json.loads(done.out)
    assert document["first_difference"] is None
    assert [one["kl_bits"] for one in document["steps"]] == [0, 0]
    half = json.loads(command(*words, "--dtype-right", "bfloat16", "--json").out)
    assert half["right"]["dtype"] == "bfloat16"
    assert 0 < half["steps"][0]["kl_bits"] < 0.01
    assert half["steps"][0]["largest_map_difference"]["difference"] < 0.05


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--prompt", "x"], "--prompt is of a model. Both sides are saved runs."),
        (["--chat-left"], "--chat-left is of a model. On the left is a saved run."),
        (["--steps", "2"], "--steps is of a model. Both sides are saved runs."),
    ],
)
def test_what_a_saved_run_does_not_take(
    command: Command, two: tuple[Path, Path], more: list[str], sentence: str
) -> None:
    done = command("compare", *two, *more)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_a_model_needs_a_prompt(command: Command, two: tuple[Path, Path]) -> None:
    done = command("compare", two[0], "copycat")
    assert (done.code, done.out) == (2, "")
    assert "Give a prompt for the model" in done.err


def test_heads_are_in_the_order_of_their_figures(command: Command, two: tuple[Path, Path]) -> None:
    for kind in ("induction", "previous", "first", "entropy"):
        document = json.loads(command("heads", two[0], "--by", kind, "--json").out)
        assert (document["by"], len(document["heads"])) == (kind, 4)
        values = [one["value"] for one in document["heads"] if one["value"] is not None]
        assert values == sorted(values, reverse=kind != "entropy")
    trace = played()
    cell = json.loads(command("heads", two[0], "--query", 2, "--key", 1, "--json").out)
    for one in cell["heads"]:
        weights = trace.weights(0, one["layer"], one["head"])
        assert one["value"] == pytest.approx(float(weights[2, 1]), abs=1e-6)
    assert "L" in command("heads", two[0], "--top", 2).out


def test_heads_that_cannot_be_had(command: Command, two: tuple[Path, Path]) -> None:
    for words, sentence in (
        (["--query", 1], "must be used together"),
        (["--query", 99, "--key", 0], "There is no position 99."),
        (["--step", 50], "There is no step 50."),
    ):
        done = command("heads", two[0], *words)
        assert (done.code, done.out) == (2, ""), words
        assert sentence in done.err
