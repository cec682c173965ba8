"""What `trace` reads and lists beside a prompt: ids, positions, many prompts, own logits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing

from explorer.cli import client
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
IDS = (5, 60, 70, 80, 90)


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture(scope="module")
def model() -> Any:
    """Positions are learned, so that an offset changes the logits."""
    return folders.model("gpt2")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory, model: Any) -> Path:
    """Its tokenizer puts a start token in front."""
    folder = folders.write_folder(tmp_path_factory.mktemp("tiny"), model)
    backend = folders.byte_level()
    backend.post_processor = TemplateProcessing(
        single=f"{folders.SPECIAL[0]} $A", special_tokens=[(folders.SPECIAL[0], 0)]
    )
    folders.write_tokenizer(folder, backend)
    return folder


@pytest.fixture
def trace(command: Command, tiny: Path) -> Callable[..., dict[str, Any]]:
    def run(*words: object, steps: int = 1) -> dict[str, Any]:
        done = command("trace", tiny, *words, "--steps", steps, "--json")
        assert done.code == 0, done.err
        document: dict[str, Any] = json.loads(done.out)
        return document

    return run


Trace = Callable[..., dict[str, Any]]


def logits_of(model: Any, ids: tuple[int, ...], offset: int = 0) -> np.ndarray:
    """(V,) after these tokens, by the model itself."""
    places = torch.arange(offset, offset + len(ids))[None]
    with torch.inference_mode():
        found = model(input_ids=torch.tensor([list(ids)]), position_ids=places).logits[0, -1]
    return np.asarray(found.float().numpy())


def listed(ids: tuple[int, ...]) -> str:
    return ",".join(map(str, ids))


def read(document: dict[str, Any]) -> list[int]:
    return [one["id"] for one in document["tokens"][: document["prompt_tokens"]]]


def test_ids_are_taken_as_they_are_and_alternatives_are_the_models(
    trace: Trace, model: Any, tmp_path: Path
) -> None:
    document = trace("--input-ids", listed(IDS), "--top", 3)
    assert read(document) == list(IDS)
    expected = logits_of(model, IDS)
    best = np.argsort(-expected)[:3]
    top = document["steps"][0]["top"]
    assert [one["id"] for one in top] == best.tolist()
    assert [one["logit"] for one in top] == pytest.approx(expected[best].tolist(), abs=1e-4)
    p = np.exp(expected - expected.max()) / np.exp(expected - expected.max()).sum()
    assert [one["probability"] for one in top] == pytest.approx(p[best].tolist(), abs=1e-5)
    (tmp_path / "ids").write_text("[5, 60\n70 80,90]")
    assert read(trace("--input-ids", tmp_path / "ids")) == list(IDS)
    assert "top" not in trace("--input-ids", listed(IDS))["steps"][0]


def test_the_start_token_is_there_or_not(trace: Trace, command: Command, tiny: Path) -> None:
    usual = read(trace("--prompt", "the cat"))
    assert usual[0] == 0
    assert read(trace("--prompt", "the cat", "--no-bos")) == usual[1:]
    assert read(trace("--prompt", "the cat", "--add-bos")) == usual
    assert read(trace("--input-ids", "7,8", "--add-bos")) == [0, 7, 8]
    done = command("trace", tiny, "--prompt", "a", "--add-bos", "--steps", 1)
    assert "already begins with <|endoftext|>" in done.err


def test_positions_are_counted_from_the_offset(
    trace: Trace, model: Any, command: Command, tiny: Path
) -> None:
    ids = ("--input-ids", listed(IDS), "--top", 1)
    document = trace(*ids, "--position-offset", 40, steps=3)
    sequence = IDS
    for step in document["steps"]:
        expected = logits_of(model, sequence, 40)
        assert step["top"][0]["id"] == int(expected.argmax())
        assert step["top"][0]["logit"] == pytest.approx(float(expected.max()), abs=1e-3)
        sequence = (*sequence, step["chosen_id"])
    plain = trace(*ids)["steps"][0]["top"][0]["logit"]
    assert abs(document["steps"][0]["top"][0]["logit"] - plain) > 1e-2
    done = command("trace", tiny, *ids, "--position-offset", 125, "--steps", 1)
    assert done.code == 2
    assert "5 positions after 125, but this model reads at most 128" in done.err


def test_many_prompts_share_one_start_and_what_is_equal(
    command: Command, tiny: Path, tmp_path: Path
) -> None:
    file = tmp_path / "prompts.json"
    talk = [{"role": "user", "content": "the cat"}]
    file.write_text(json.dumps(["the cat sat", "the cat sat on the mat", "x" * 400, talk]))
    words = ("--prompts", file, "--steps", 2, "--json", "--reuse-prefix", "check")
    done = command("trace", tiny, *words)
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["prompt_index"] for line in lines] == [0, 1, 2, 3]
    assert done.code == 2
    assert "reads at most 128" in lines[2]["error"]
    assert done.err.startswith("Prompt 3: ")
    first, second, last = lines[0], lines[1], lines[3]
    assert first["reused_tokens"] == 0
    assert second["reused_tokens"] == second["reuse"]["tokens"] == first["prompt_tokens"]
    assert second["reuse"]["equal"]
    assert second["reuse"]["same_tokens"]
    assert second["reuse"]["fresh_prefill_ms"] > 0
    assert "tokens from the cache" in second["steps"][0]["note"]
    assert [turn["role"] for turn in last["turns"]] == ["user", "assistant"]

    (tmp_path / "lines").write_text("[the] cat\nthe dog\n")
    plain = command("trace", tiny, "--prompts", tmp_path / "lines", "--steps", 1, "--json")
    assert [json.loads(line)["reused_tokens"] for line in plain.out.splitlines()] == [0, 0]
    table = command("trace", tiny, "--prompts", tmp_path / "lines", "--steps", 1)
    assert table.code == 0
    assert "prompt 2" in table.out

    file.write_text('["the cat", [')
    broken = command("trace", tiny, "--prompts", file, "--steps", 1)
    assert (broken.code, "starts as a JSON list but is none" in broken.err) == (2, True)


def test_own_logits_part_where_they_were_changed(
    trace: Trace, model: Any, tmp_path: Path, command: Command, tiny: Path
) -> None:
    run = ("--input-ids", listed(IDS))
    chosen = [step["chosen_id"] for step in trace(*run, steps=3)["steps"]]
    own = np.stack([logits_of(model, (*IDS, *chosen[:i])) for i in range(3)])
    file = tmp_path / "own.npy"
    np.save(file, own)
    same = trace(*run, "--reference", file, steps=3)["reference"]
    assert same["first_difference"] is None
    assert len(same["steps"]) == 3
    assert all(one["same_choice"] and one["largest"] < 1e-4 for one in same["steps"])

    own[1, 7] += own[1].max() - own[1, 7] + 1  # another best token
    np.save(file, own)
    parted = trace(*run, "--reference", file, steps=3)["reference"]
    assert parted["first_difference"] == 1
    assert [one["same_choice"] for one in parted["steps"]] == [True, False]
    shown = command("trace", tiny, *run, "--reference", file, "--steps", 3)
    assert "part at step 1" in shown.out

    np.save(file, own[:, :-1])
    assert "this model gives 320" in command("trace", tiny, *run, "--reference", file,
                                             "--steps", 1).err  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--input-ids", ""), "names no token"),
        (("--input-ids", "5,-1"), "could not be read"),
        (("--input-ids", "999"), "There is no token 999"),
        (("--input-ids", "5", "--chat"), "taken as they are"),
        (("--prompt", "x", "--top", 101), "at most 100"),
        (("--prompt", "x", "--reuse-prefix", "on"), "is for --prompts"),
        (("--prompt", "x", "--position-offset", 2**40), "not allowed"),
        (("--prompt", "x", "--reference", "there-is-none.npy"), "can't be read"),
        (("--prompts", "there-is-none"), "could not be read"),
        (("--prompts", "there-is-none", "--out", "a.dxt"), "is of one run"),
        (("--prompt", "x", "--add-bos", "--no-bos"), "not allowed with"),
    ],
)
def test_bad_input_is_one_sentence(
    command: Command, tiny: Path, words: tuple[object, ...], said: str
) -> None:
    done = command("trace", tiny, *words, "--steps", 1)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
