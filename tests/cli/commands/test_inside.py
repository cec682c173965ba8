"""`lens`, `layer` and `attribute` on a tiny model, the engine in this process."""

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
PROMPT = "the cat sat on"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama with random weights, as a folder."""
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def asked(command: Command, tiny: Path) -> Callable[..., Any]:
    """The JSON of a command about the prompt, or its exit code and sentence if it fails."""

    def run(name: str, *words: object) -> Any:
        done = command(name, tiny, "--prompt", PROMPT, "--json", *words)
        if done.code:
            return done.code, done.err
        assert done.err == ""
        return json.loads(done.out)

    return run


def test_lens_has_a_row_a_layer_and_a_cell_a_token(asked: Callable[..., Any]) -> None:
    found = asked("lens")
    assert set(found) == {"model", "tokens", "rows", "final_gap", "warnings"}
    tokens = found["tokens"]
    assert "".join(token["text"] for token in tokens) == PROMPT
    assert [row["name"] for row in found["rows"]] == ["embedding", "0", "1", "final"]
    for row in found["rows"]:
        assert [cell["slot"] for cell in row["positions"]] == list(range(len(tokens)))
        for cell in row["positions"]:
            shares = [one["probability"] for one in cell["top"]]
            assert len(shares) == 5
            assert shares == sorted(shares, reverse=True)
            assert set(cell) >= {"entropy_bits", "kl_to_final_bits", "rank_of_final"}
    assert {cell["rank_of_final"] for cell in found["rows"][-1]["positions"]} == {0}
    assert found["final_gap"] == 0


def test_lens_of_one_position_after_some_steps(asked: Callable[..., Any], command: Command,
                                               tiny: Path) -> None:  # fmt: skip
    done = command("trace", tiny, "--prompt", PROMPT, "--steps", 3, "--json")
    run = json.loads(done.out)
    whole = asked("lens", "--steps", 2, "--top", 1)
    ids = [token["id"] for token in whole["tokens"]]
    assert ids == [token["id"] for token in run["tokens"]][: len(ids)]
    last = len(ids) - 1
    best = whole["rows"][-1]["positions"][-1]["top"]
    assert [one["id"] for one in best] == [run["steps"][2]["chosen_id"]]
    one = asked("lens", "--steps", 2, "--top", 1, "--slot", last)
    assert [cell["slot"] for cell in one["rows"][0]["positions"]] == [last]


def test_lens_as_a_table(command: Command, tiny: Path) -> None:
    done = command("lens", tiny, "--prompt", PROMPT)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert "the model says" in lines[0]
    assert lines[2].startswith("layer")
    assert [line.split()[0] for line in lines[3:7]] == ["embedding", "0", "1", "final"]


@pytest.mark.parametrize("words", [("--slot", "999"), ("--top", "101"), ("--steps", "-1")])
def test_what_does_not_exist_is_one_sentence(
    asked: Callable[..., Any], words: tuple[str, ...]
) -> None:
    code, sentence = asked("lens", *words)
    assert code == 2
    assert sentence.count("\n") == 1


def test_attribute_adds_up_to_the_logit(asked: Callable[..., Any]) -> None:
    found = asked("attribute")
    assert set(found) == {"model", "slot", "target", "parts", "sum", "gap", "warnings"}
    assert set(found["target"]) == {"id", "text", "logit"}
    assert sum(part["value"] for part in found["parts"]) == pytest.approx(found["sum"])
    assert found["sum"] == pytest.approx(found["target"]["logit"], rel=1e-4)
    kinds = [part["kind"] for part in found["parts"]]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "embedding": 1, "head": 12, "mlp": 3, "bias": 1,
    }  # fmt: skip
    lead = asked("attribute", "--token", 5, "--against", 6, "--slot", 2)
    assert (lead["slot"], lead["target"]["id"], lead["against"]["id"]) == (2, 5, 6)
    wanted = lead["target"]["logit"] - lead["against"]["logit"]
    assert lead["sum"] == pytest.approx(wanted, abs=1e-3)


def test_attribute_as_a_table(command: Command, tiny: Path) -> None:
    done = command("attribute", tiny, "--prompt", PROMPT)
    assert (done.code, done.err) == (0, "")
    assert "embedding" in done.out
    assert "layer 2 mlp" in done.out
    assert "off by" in done.out.splitlines()[-1]


def test_a_token_that_does_not_exist_is_one_sentence(asked: Callable[..., Any]) -> None:
    code, sentence = asked("attribute", "--token", 10**6)
    assert code == 2
    assert "There is no token 1000000" in sentence


def test_layer_lists_its_stages_and_writes(asked: Callable[..., Any]) -> None:
    found = asked("layer", "--layer", 1)
    assert set(found) == {
        "model", "layer", "slot", "kind", "stages", "writes", "residual_gap", "experts", "warnings",
    }  # fmt: skip
    assert (found["layer"], found["kind"], found["experts"]) == (1, "attention", [])
    names = [stage["name"] for stage in found["stages"]]
    assert names[:5] == ["residual stream", "input norm", "Q", "K", "V"]
    assert names[-1] == "residual stream after"
    for stage in found["stages"]:
        assert set(stage) == {"name", "formula", "shape", "norm", "module", "gap"}
        assert stage["norm"] > 0
    assert [write["name"] for write in found["writes"]] == ["self_attn.o_proj", "mlp.down_proj"]
    assert found["residual_gap"] < 2e-5
    code, sentence = asked("layer", "--layer", 3)
    assert code == 2
    assert "There is no layer 3" in sentence


def test_layer_as_a_table(command: Command, tiny: Path) -> None:
    done = command("layer", tiny, "--prompt", PROMPT, "--layer", 0)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[2].split() == ["stage", "shape", "norm", "gap", "formula"]
    assert "added to the residual stream: self_attn.o_proj" in done.out
