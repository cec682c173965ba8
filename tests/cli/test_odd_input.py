"""What no command may hang on, fall over or take gigabytes for: one sentence, exit 2, at once."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.cli import client
from explorer.session.connection.remote import EngineProcess
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine

Command = Callable[..., Done]
ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "session" / "fake_engine.py"
ENGINE = shlex.join([sys.executable, str(FAKE), "echo"])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())


@pytest.fixture
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


def refused(done: Done, *words: str) -> None:
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "explorer", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}  # type: ignore[dict-item]
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment,
        **{"stdout": subprocess.PIPE, **more},
    )  # fmt: skip


@pytest.mark.timeout(60)
def test_a_pipe_is_no_file_and_nobody_waits_for_it(
    command: Command, tmp_path: Path, tiny: Path, local_engine: None
) -> None:
    pipe, gguf = tmp_path / "pipe", tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    os.mkfifo(gguf)
    for words in (
        ("show", pipe),
        ("attention", pipe, "--layer", 0, "--head", 0, "--out", tmp_path / "a.npy"),
        ("trace", tiny, "--prompt-file", pipe, "--steps", 1),
        ("trace", pipe, "--prompt", "x", "--steps", 1),
        ("trace", gguf, "--prompt", "x", "--steps", 1),
        ("trace", tiny, "--prompt", "x", "--steps", 1, "--out", pipe),
        ("batch", tiny, "--prompts", pipe, "--padding", "left"),
        ("bench", tiny, "--against", pipe),
        ("bench", tiny, "--out", pipe),
        ("inspect", pipe),
    ):
        refused(command(*words), "pipe")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(
    "device", ["cpu:99", "cpu:", "cpu:x", "cuda:7", "cuda:x", "mps:²", "cpu:1:2"]
)
def test_a_device_that_is_not_there(
    command: Command, tiny: Path, local_engine: None, device: str
) -> None:
    refused(command("trace", tiny, "--prompt", "x", "--steps", 1, "--device", device), "device")


@pytest.mark.parametrize("text", ['["a", "b"', '[\n "a",\n', "[", '["a" "b"]'])
def test_half_a_json_list_is_no_list_of_prompts(
    command: Command, tmp_path: Path, text: str
) -> None:
    (tmp_path / "p.json").write_text(text)
    words = ("batch", "m", "--prompts", tmp_path / "p.json", "--padding", "left")
    refused(command(*words), "starts as a JSON list but is none")


@pytest.mark.parametrize("words", [("--padding", "left", "--pad", 2 * 10**9), ("--prompt", "")])
def test_what_can_be_refused_is_refused_before_a_model_loads(
    command: Command, words: tuple[object, ...]
) -> None:
    prompt = () if "--prompt" in words else ("--prompt", "x")
    refused(command("trace", "no-such-model", *prompt, "--steps", 1, *words), "p")
    assert "no-such-model" not in command("trace", "m", *prompt, "--steps", 1, *words).err


@pytest.mark.parametrize(
    ("option", "value", "name"),
    [
        ("--top-k", 2**63 - 1, "top_k"),
        ("--temperature", 1e308, "temperature"),
        ("--repetition-penalty", 1e308, "repetition_penalty"),
        ("--capture-every", 2**63 - 1, "capture_every"),
    ],
)
def test_what_no_frame_can_hold_is_refused_before_a_model_loads(
    command: Command, option: str, value: float, name: str
) -> None:
    done = command("trace", "m", "--prompt", "x", "--steps", 1, option, value)
    refused(done, f"This value is not allowed: {name} is ")


def test_a_batch_of_more_steps_than_a_frame_can_hold(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("a\n")
    words = ("--prompts", tmp_path / "p.txt", "--padding", "left", "--steps", 2**40)
    refused(command("batch", "m", *words), "steps is 1,099,511,627,776")


def test_a_prompt_file_without_end_is_refused(command: Command, tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.touch()
    os.truncate(endless, 2**40)  # a hole: it takes no room
    refused(command("trace", "m", "--prompt-file", endless, "--steps", 1), "too long")


def test_a_batch_with_an_id_beyond_the_embedding(
    command: Command, tmp_path: Path, local_engine: None
) -> None:
    model = folders.model(vocab_size=300)
    folder = folders.write_folder(tmp_path / "narrow", model)
    folders.write_tokenizer(folder, folders.byte_level(320))
    text = folders.byte_level(320).decode(list(range(300, 320)))
    (tmp_path / "p.txt").write_text(f"{text}\nthe\n")
    done = command("batch", folder, "--prompts", tmp_path / "p.txt", "--padding", "left")
    refused(done, "this model's ids end at 299")
    refused(command("trace", folder, "--prompt", text, "--steps", 1), "ids end at 299")


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd {shlex.quote(str(gone))} && rmdir {shlex.quote(str(gone))} && exec "$@"'
    for words in (
        ("models",),
        ("show", "a.dxt"),
        ("trace", "copycat", "--prompt", "x", "--steps", "1"),
    ):
        done = subprocess.run(
            ["sh", "-c", script, "sh", sys.executable, "-m", "explorer", *words],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        gone.mkdir()
        assert (done.returncode, done.stdout) == (2, "")
        assert "has been deleted; change to another one" in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("--help",), ("trace", "--help"), ("--version",)])
def test_help_to_a_full_disk_says_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    except PermissionError:
        full = Path("/dev/full")  # nobody may make devices here, so nobody can harm this one
    with full.open("w") as stream:
        done = run(*words, stdout=stream)
    assert done.returncode == 2
    assert done.stderr == "The output could not be written: No space left on device.\n"


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}])
def test_arguments_are_utf8_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    from explorer.trace.files import dxt
    from tests.cli.commands.test_saved import made_trace

    dxt.save(made_trace(), tmp_path / "grüße.dxt")
    assert run("show", tmp_path / "grüße.dxt", env=locale).returncode == 0
    done = run("trace", "m", "--prompt", "é", "--steps", 1, "--engine", ENGINE, env=locale)
    assert "stopped unexpectedly" in done.stderr, "it got as far as the engine"


@pytest.mark.timeout(60)
def test_a_python_that_is_told_otherwise_is_started_anew_once(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "explorer", "show", tmp_path / "none.dxt"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, env=environment)
    assert done.returncode == 2
    assert b"No such file" in done.stderr


def test_a_path_that_is_not_utf8_is_called_a_path(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/m\xff")
    for words in (("trace", name, "--prompt", "x", "--steps", 1), ("inspect", name)):
        done = run(*words, "--engine", ENGINE)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"The path {tmp_path}/m")
        assert "is not UTF-8. Rename" in done.stderr


def test_figures_that_are_no_numbers_are_null(command: Command, tmp_path: Path) -> None:
    from dataclasses import replace

    from explorer.trace.card import Check, SelfCheck
    from explorer.trace.files import dxt
    from tests.cli.commands.test_saved import made_trace

    odd = Check(name="x", passed=False, measured=float("inf"), tolerance=float("nan"))
    trace = replace(made_trace(), self_check=SelfCheck(passed=False, checks=(odd,)))
    dxt.save(trace, tmp_path / "a.dxt")
    done = command("show", tmp_path / "a.dxt", "--json")
    (check,) = json.loads(done.out)["self_check"]["checks"]
    assert (check["measured"], check["tolerance"]) == (None, None)


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "m", "--prompt", "x", "--steps", 1),
        ("check", "m"),
        ("inspect", "m"),
        ("models",),
        ("bench", "m", "--no-window"),
    ],
)
def test_an_engine_that_stalls_ends_every_command(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stalls = [sys.executable, str(FAKE), "stalls"]
    monkeypatch.setattr(client, "EngineProcess", lambda _: EngineProcess(stalls, silence=0.4))
    done = command(*words, "--json")
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert "Nothing has come from the engine" in done.err


@pytest.mark.parametrize("share", [1e308, float("nan"), float("inf"), -7.0])
def test_a_progress_that_is_no_share_is_a_broken_frame(share: float) -> None:
    import io

    import msgspec

    from explorer.trace.wire import framing
    from explorer.trace.wire.messages import Progress

    whole = io.BytesIO()
    framing.write_event(whole, Progress(text="x", fraction=0.125))
    sent = whole.getvalue().replace(msgspec.msgpack.encode(0.125), msgspec.msgpack.encode(share))
    with pytest.raises(framing.WireError, match="no share"):
        framing.read_event(io.BytesIO(sent))
    assert Progress(text="x", fraction=1.0000001).fraction == 1.0
