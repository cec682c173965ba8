"""Commands as processes: the real engine as a child, and engines that fail."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import folders

ROOT = Path(__file__).parents[2]
FAKE = ROOT / "tests" / "session" / "fake_engine.py"


@pytest.fixture(autouse=True)
def find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "explorer", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **more)  # type: ignore[call-overload,no-any-return]


def fake(behaviour: str) -> str:
    return shlex.join([sys.executable, str(FAKE), behaviour])


@pytest.mark.timeout(300)  # a child that imports torch, perhaps beside other work
def test_trace_through_the_real_child(tmp_path: Path) -> None:
    model = folders.write_folder(tmp_path / "tiny", folders.model("gpt2"))
    out = tmp_path / "a.dxt"
    # In a folder that holds a trap, as a user's may: the engine must not import from there.
    (tmp_path / "torch.py").write_text("raise SystemExit('this is not torch')")
    done = run(
        "trace", model, "--prompt", "the cat", "--steps", 3, "--json", "--out", out, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [step["phase"] for step in document["steps"]] == ["prefill", "decode", "decode"]
    shown = run("show", out, "--json")
    assert document.pop("path") == str(model), "which file was run"
    assert document["model"] == "tiny"
    assert json.loads(shown.stdout) == document
    assert str(tmp_path).encode() not in out.read_bytes()


def test_an_engine_that_dies_is_exit_3_and_one_sentence(tmp_path: Path) -> None:
    out = tmp_path / "a.dxt"
    words = ("trace", "m", "--prompt", "x", "--steps", 2, "--out", out, "--json")
    done = run(*words, "--engine", fake("echo"))
    assert (done.returncode, done.stdout) == (3, "")
    assert "stopped unexpectedly (exit code 7)" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize("engine", ["/nowhere/engine", fake("garbage")])
def test_what_is_no_engine_is_exit_3(engine: str) -> None:
    done = run("models", "--engine", engine)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


def test_interrupted_is_130_with_nothing_half_written(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    os.mkfifo(heard)
    reader = os.open(heard, os.O_RDONLY | os.O_NONBLOCK)
    engine = tmp_path / "engine.py"
    engine.write_text(
        "import os, sys, threading\n"
        "from pathlib import Path\n"
        "from explorer.trace.wire import framing as wire, messages as m\n"
        "out = os.fdopen(os.dup(1), 'wb')\n"
        "wire.write_event(out, m.Hello())\n"
        "wire.read_request(sys.stdin.buffer)\n"
        f"Path({str(heard)!r}).write_text(str(os.getpid()))\n"
        "threading.Event().wait()\n"
    )
    command = shlex.join([sys.executable, str(engine)])
    words = ["trace", "m", "--prompt", "x", "--steps", "2", "--out", str(tmp_path / "a.dxt")]
    child = subprocess.Popen(
        [sys.executable, "-m", "explorer", *words, "--engine", command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # as from a terminal, even where the tests run in the background and ignore it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert select.select([reader], [], [], 30)[0], "the engine was never asked"
    engine_pid = int(os.read(reader, 20))
    os.close(reader)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (130, "", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["engine.py", "heard"]
    with pytest.raises(ProcessLookupError):
        os.kill(engine_pid, 0)


def test_a_full_disk_behind_stdout_is_one_sentence(tmp_path: Path) -> None:
    from explorer.trace.files import dxt
    from tests.cli.commands.test_saved import made_trace

    dxt.save(made_trace(), tmp_path / "a.dxt")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "explorer", "show", str(tmp_path / "a.dxt")],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "The output could not be written: No space left on device.\n"


def test_no_traceback_even_for_a_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], data_folder: Path
) -> None:
    from explorer.cli import main
    from explorer.cli.commands.saved import show

    monkeypatch.setattr(show, "_opened", lambda name: 1 // 0)
    assert main(["show", "x"]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "ZeroDivisionError" in err
    assert "Traceback" in (data_folder / "log.txt").read_text()
