"""`--as`: how a .gguf file is opened from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli import client
from explorer.engine.relay import gpu, llama_process, relay
from tests.cli.conftest import Done
from tests.engine.local_engine import LocalEngine
from tests.llama_engine import tiny_gguf

Command = Callable[..., Done]
ROOT = Path(__file__).parents[3]
RUN = ("--prompt", "x", "--steps", 2)


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = (sys.executable, str(ROOT / "tests/engine/relay/fake_llama.py"))
    monkeypatch.setattr(llama_process, "COMMAND", command)
    monkeypatch.setattr(relay, "PACKAGE", "json")


def file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.gguf"
    path.write_bytes(b"GGUF")
    return path


def test_a_run_as_it_is_says_so(command: Command, tmp_path: Path) -> None:
    done = command("trace", file(tmp_path, "good"), *RUN, "--as", "as-is", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["form"] == "as-is"
    assert "llama.cpp runs them as they are stored" in said["warnings"][0]
    assert len(said["steps"]) == 2


def test_a_crash_of_llama_cpp_is_exit_3_and_one_sentence(command: Command, tmp_path: Path) -> None:
    done = command("check", file(tmp_path, "crashes"), "--as", "as-is")
    assert done.code == 3
    assert done.err.strip() == (
        "llama.cpp stopped unexpectedly (signal 11) while it opened crashes.gguf. Open the file as "
        "float32."
    )


@pytest.mark.parametrize("given", [("--dtype", "float32"), ("--device", "cpu")])
def test_a_dtype_or_a_device_is_that_of_a_converted_file(
    command: Command, tmp_path: Path, given: tuple[str, str]
) -> None:
    done = command("trace", file(tmp_path, "good"), *RUN, *given, "--as", "as-is")
    assert done.code == 2
    assert "can't be combined with --dtype or --device" in done.err
    converted = command("trace", file(tmp_path, "good"), *RUN, *given)
    assert "good.gguf is not a whole GGUF file" in converted.err, "torch's own words"


@pytest.mark.parametrize("name", ["trace", "check", "bench", "lens"])
def test_gpu_layers_are_those_of_a_file_run_as_it_is(
    command: Command, tmp_path: Path, name: str
) -> None:
    rest = {"trace": RUN, "lens": RUN[:2]}.get(name, ())
    words = (name, file(tmp_path, "good"), *rest, "--gpu-layers", 3)
    done = command(*words, "--as", "float32")
    assert done.code == 2
    assert "--gpu-layers is for a .gguf file run as it is" in done.err
    done = command(name, "copycat", *rest, "--gpu-layers", 3)
    assert done.code == 2
    assert "copycat is not a .gguf file" in done.err


def test_gpu_layers_and_the_type_of_keys_reach_llama_cpp(command: Command, tmp_path: Path) -> None:
    path = file(tmp_path, "good")
    done = command("trace", path, *RUN, "--gpu-layers", 3, "--cache-type-k", "q8_0", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert (said["cache_type_k"], said["gpu_layers"]) == ("q8_0", 3)


def test_gpu_layers_without_a_gpu_are_exit_2_and_one_sentence(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        llama_process, "COMMAND", (sys.executable, "-m", "explorer", "llama-engine")
    )
    path = tiny_gguf.write(tmp_path / "tiny.gguf", "llama")
    done = command("trace", path, *RUN, "--gpu-layers", 3)
    if gpu.can_use_gpu():
        pytest.skip("there is a GPU")
    assert done.code == 2
    assert done.err.strip() == (
        "llama.cpp has no GPU support here, or finds no GPU. Open the file with 0 GPU layers."
    )


def test_a_folder_is_never_as_it_is(command: Command) -> None:
    done = command("trace", "copycat", *RUN, "--as", "as-is")
    assert done.code == 2
    assert "copycat is not a .gguf file" in done.err
