"""What is to be known of a model before its figures are read: on stderr and in --json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from explorer.cli import client
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.engine.text.test_tiktoken_folder import write_ranks

Command = Callable[..., Done]
Q = gguf.GGMLQuantizationType
TRACE = ("--prompt", "the cat", "--steps", 2)


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture
def quantised(tmp_path: Path) -> Path:
    """A file that is quantised, and whose rotary factors nobody knows."""

    def strange(writer: gguf.GGUFWriter) -> None:
        writer.add_tensor("rope_freqs.weight", np.linspace(1, 3, 8, dtype=np.float32))

    return folders.write_gguf(tmp_path / "tiny.gguf", folders.model(), Q.Q8_0, strange)


def pickled(folder: Path) -> Path:
    made = folders.model()
    folders.write_folder(folder, made)
    (folder / "model.safetensors").unlink()
    torch.save(made.state_dict(), folder / "pytorch_model.bin")
    return folder


def told(done: Done) -> list[str]:
    """The warnings of --json, which must be those on stderr."""
    assert done.code == 0, done.err
    document: dict[str, Any] = json.loads(done.out)
    found = document["warnings"]
    assert all(isinstance(line, str) for line in found)
    assert done.err.splitlines() == found
    return list(found)


def test_every_command_that_opens_a_model_warns(
    command: Command, quantised: Path, tmp_path: Path
) -> None:
    (tmp_path / "p.txt").write_text("one\ntwo words\n")
    out = tmp_path / "a.dxt"
    every = {
        "inspect, not converted": ("inspect", quantised),
        "trace": ("trace", quantised, *TRACE, "--as", "float32", "--out", out),
        "show": ("show", out),
        "inspect": ("inspect", quantised),
        "check": ("check", quantised, "--as", "float32"),
        "batch": ("batch", quantised, "--prompts", tmp_path / "p.txt", "--padding", "left"),
    }
    for name, words in every.items():
        found = told(command(*words, "--json"))
        assert "quantised (Q8_0)" in found[0], name
        assert "rotary factors" in found[1], name
        assert len(found) == 2, name


def test_a_file_that_runs_as_it_is_says_so(command: Command, quantised: Path) -> None:
    for words in (("trace", quantised, *TRACE), ("check", quantised)):
        (found,) = told(command(*words, "--json"))  # llama.cpp reads the rotary factors itself
        assert "quantised (Q8_0)" in found
        assert "as they are stored" in found


def test_pickles_are_told_by_trace_and_inspect(command: Command, tmp_path: Path) -> None:
    folder = pickled(tmp_path / "pickled")
    for words in (("trace", folder, *TRACE), ("inspect", folder)):
        assert any("pickle" in line for line in told(command(*words, "--json")))


def test_a_guessed_pattern_of_the_tokenizer_is_told_by_every_command(
    command: Command, tmp_path: Path
) -> None:
    folder = folders.write_folder(tmp_path / "tiktoken", folders.model(vocab_size=400))
    for path in (*folder.glob("tokenizer*"), *folder.glob("special_tokens*")):
        path.unlink()
    write_ranks(folder / "tokenizer.model")
    (tmp_path / "p.txt").write_text("one\ntwo words\n")
    batch = ("batch", folder, "--prompts", tmp_path / "p.txt", "--padding", "left")
    found = [
        told(command(*words, "--json"))
        for words in (("trace", folder, *TRACE), ("inspect", folder), batch)
    ]
    assert found[0] == found[1] == found[2]
    assert "the pattern of Llama 3 is used" in found[0][0]
    (folder / "tokenizer_config.json").write_text('{"pat_str": "a|.", "chat_template": ""}')
    assert told(command("inspect", folder, "--json")) == []


def test_without_json_the_warnings_are_on_stderr_alone(command: Command, quantised: Path) -> None:
    for words in (("trace", quantised, *TRACE, "--as", "float32"), ("inspect", quantised)):
        done = command(*words)
        assert len(done.err.splitlines()) == 2
        assert "quantised (" not in done.out


def test_the_dtype_of_the_files_stands_beside_the_one_that_runs(
    command: Command, quantised: Path, tmp_path: Path
) -> None:
    made = folders.model().to(torch.bfloat16)
    folder = folders.write_folder(tmp_path / "half", made)
    for model, stored in ((folder, "bfloat16"), (quantised, "Q8_0")):
        assert json.loads(command("inspect", model, "--json").out)["stored_dtype"] == stored
        converted = ("--as", "float32") if model == quantised else ()
        document = json.loads(command("trace", model, *TRACE, *converted, "--json").out)
        assert (document["stored_dtype"], document["dtype"]) == (stored, "float32")
        table = command("trace", model, *TRACE, *converted).out
        assert f"weights stored as {stored}, run in float32\n" in table


@pytest.fixture
def penalised(tmp_path: Path) -> Path:
    """A model whose makers ship a strong repetition penalty."""
    folder = folders.write_folder(tmp_path / "own", folders.model())
    settings = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(
        json.dumps({**settings, "repetition_penalty": 3.0})
    )
    return folder


def test_the_models_own_settings_are_applied_only_on_request(
    command: Command, penalised: Path, tmp_path: Path
) -> None:
    words = ("trace", penalised, "--prompt", "the cat sat", "--steps", 8, "--json")
    (line,) = told(command(*words, "--out", tmp_path / "a.dxt"))
    assert "repetition-penalty 3" in line
    assert told(command("show", tmp_path / "a.dxt", "--json")) == [line]
    done = command(*words, "--model-defaults", "--out", tmp_path / "b.dxt")
    assert told(done) == told(command("show", tmp_path / "b.dxt", "--json")) == []
    document = json.loads(done.out)
    assert document["sampling"]["repetition_penalty"] == 3.0
    ids = [token["id"] for token in document["tokens"]]
    made = folders.model()
    made.generation_config.repetition_penalty = 3.0
    assert ids[-8:] == folders.greedy(made, ids[:-8])


def test_a_setting_that_is_given_comes_before_the_models_own(
    command: Command, penalised: Path
) -> None:
    words = ("trace", penalised, *TRACE, "--json", "--model-defaults")
    sampling = json.loads(command(*words, "--temperature", 0.5).out)["sampling"]
    assert (sampling["greedy"], sampling["temperature"]) == (False, 0.5)
    assert sampling["repetition_penalty"] == 3.0


def test_own_settings_that_cannot_be_are_refused_by_name(command: Command, penalised: Path) -> None:
    (penalised / "generation_config.json").write_text('{"repetition_penalty": -1.0}')
    done = command("trace", penalised, *TRACE, "--model-defaults")
    assert (done.code, done.out) == (2, "")
    assert "model's recommended settings" in done.err
