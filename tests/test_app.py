"""The desktop program from outside: what it loads, what it says without a display, its pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from explorer.session.saving import recovery
from explorer.trace.files import dxt
from tests.session.scripted import played


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    clean.pop("QT_QPA_PLATFORM", None)
    return subprocess.run(
        [sys.executable, *arguments],
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def saved(folder: Path, steps: int = 3) -> Path:
    path = folder / "run.dxt"
    dxt.save(played(steps), path)
    return path


HEAVY = "torch, transformers, tiktoken"


@pytest.fixture(scope="module")
def first_window(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one process tells of itself from its first import to a window with a fault."""
    home = tmp_path_factory.mktemp("home")
    code = f"""
import json, sys
def heavy():
    return [m for m in "{HEAVY}".split(", ") if m in sys.modules]
told = {{}}
import explorer.ui, explorer.app, explorer.ui.window
told["heavy once imported"] = heavy()

from pathlib import Path
from explorer import app as program
app, window, session, close = program.compose(None, Path({str(home / "settings.ini")!r}))
window.show()
app.processEvents()
window.prompt.edit.insertPlainText("early")
told["typed"] = session.state.request.prompt
told["visible"] = window.isVisible()
told["filled"] = [type(p).__name__ for p in window.docks.panels if not p.empty]
told["heavy once typed in"] = heavy()

from PySide6.QtTest import QTest
from explorer.ui import window as windows
QTest.qWait(2 * windows._FRAMED_MS)
told["size"] = (window.width(), window.height())

program._start_log()
program._catch_surprises(window, session)
try:
    raise RuntimeError("deep inside")
except RuntimeError:
    sys.excepthook(*sys.exc_info())
session.set_prompt("the state changes")
told["error"] = window.notices.error.text
close()
print(json.dumps(told))
"""
    done = python("-c", code, QT_QPA_PLATFORM="offscreen", DECODER_EXPLORER_HOME=str(home))
    assert done.stdout.count("\n") == 1, done.stderr
    return {**json.loads(done.stdout), "log": (home / "log.txt").read_text("utf-8")}


def test_importing_the_window_loads_nothing_heavy(first_window: dict[str, Any]) -> None:
    assert first_window["heavy once imported"] == []


def test_the_window_is_painted_empty_and_typed_in_before_anything_heavy(
    first_window: dict[str, Any],
) -> None:
    assert (first_window["typed"], first_window["visible"]) == ("early", True)
    assert first_window["filled"] == ["TrainingPanel"], "the only one that needs no model"
    assert first_window["heavy once typed in"] == []


def test_without_a_window_manager_the_window_keeps_its_size(first_window: dict[str, Any]) -> None:
    """There is no frame to make room for, though the offscreen screen is small."""
    assert first_window["size"] == [1280, 720]


def test_a_surprise_becomes_one_sentence_and_a_line_in_the_log(
    first_window: dict[str, Any],
) -> None:
    assert first_window["error"].startswith("An unexpected error occurred")
    assert "RuntimeError: deep inside" in first_window["log"]


def test_without_a_display_there_is_one_sentence_and_exit_2(tmp_path: Path) -> None:
    code = (
        "import sys; sys.platform = 'linux'; from explorer.app import main; "
        "sys.exit(main(None, None, None))"
    )
    done = python("-c", code, DECODER_EXPLORER_HOME=str(tmp_path))
    assert done.returncode == 2
    assert "no display" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_windowed_build_without_stderr_does_not_stumble(tmp_path: Path) -> None:
    code = (
        "import sys; sys.stderr = None; from explorer.app import _refuse; "
        "print(_refuse('no window'))"
    )
    assert python("-c", code).stdout.strip() == "2"


def test_pictures_of_a_saved_session(tmp_path: Path) -> None:
    file = saved(tmp_path)
    folder = tmp_path / "pictures"
    done = python(
        "-m", "explorer.app", "--pictures", str(folder), str(file),
        DECODER_EXPLORER_HOME=str(tmp_path / "home"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    named = [Path(line) for line in done.stdout.splitlines()]
    assert sorted(named) == sorted(folder.iterdir())
    names = {path.name for path in named}
    for theme in ("light", "dark"):
        assert f"window-{theme}.png" in names
        for panel in ("attention", "next-token", "kv-cache", "timings"):
            assert f"{panel}-{theme}.png" in names
    assert all(path.stat().st_size > 2000 for path in named)
    assert not (tmp_path / "home" / "settings.ini").exists()  # the user's own look stays


def test_pictures_of_nothing_are_refused_in_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "broken.dxt"
    broken.write_bytes(b"not a session")
    files = [str(broken), str(tmp_path / "missing.dxt")]
    code = f"""
from explorer.app import _pictures
for file in {files!r}:
    print(_pictures(["--pictures", {str(tmp_path)!r}, file]))
"""
    done = python("-c", code, DECODER_EXPLORER_HOME=str(tmp_path / "home"))
    assert (done.stdout.split(), done.returncode) == (["2", "2"], 0), done.stderr
    assert "Traceback" not in done.stderr
    assert "broken.dxt" in done.stderr
    assert "missing.dxt" in done.stderr
    assert python("-m", "explorer.app", "--what").returncode == 2


def test_the_bindings_count_references_right() -> None:
    """PySide6 6.12 on Python 3.10 and 3.11 drops a reference to None with each void call."""
    from PySide6.QtCore import QObject

    from explorer.app import _bindings_problem

    assert _bindings_problem() == ""
    before = sys.getrefcount(None)
    thing = QObject()
    for _ in range(64):
        thing.setObjectName("x")
    assert sys.getrefcount(None) > before - 32


@pytest.mark.parametrize("used_before", [False, True])
def test_a_first_start_is_simple_stays_open_and_closes_cleanly_on_a_signal(
    tmp_path: Path, used_before: bool
) -> None:
    """The whole program: window, engine process, a prompt; SIGTERM closes all of it with 0."""
    home = tmp_path / "home"
    home.mkdir()
    if used_before:
        (home / "settings.ini").write_text("[General]\ntheme=dark\n")
    code = f"""
import os, signal, sys
from explorer import app as program
compose = program.compose
def watched(*arguments):
    app, window, session, close = compose(*arguments)
    def look(old, new):
        if old.status.activity == "starting" and new.status.activity != "starting":
            print(window.isVisible(), session.state.request.prompt)
            print(window.preferences.on("full"), window.try_this.isVisible(), flush=True)
            os.kill(os.getpid(), signal.SIGTERM)
    session.subscribe(look)
    return app, window, session, close
program.compose = watched
sys.exit(program.main({str(tmp_path)!r}, "given", None))
"""
    done = python("-c", code, QT_QPA_PLATFORM="offscreen", DECODER_EXPLORER_HOME=str(home))
    assert done.returncode == 0, done.stderr
    simple = "True False" if used_before else "False True"
    assert done.stdout.splitlines() == ["True given", simple]


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_an_unsaved_run_for_the_next_start(tmp_path: Path, name: str) -> None:
    file = saved(tmp_path)
    code = f"""
import os, signal, sys
from explorer import app as program
compose = program.compose
def watched(*arguments):
    app, window, session, close = compose(*arguments)
    end = lambda: os.kill(os.getpid(), signal.{name})
    session.saving.open({str(file)!r}, own=True, then=end)
    return app, window, session, close
program.compose = watched
sys.exit(program.main({str(tmp_path)!r}, None, None))
"""
    home = tmp_path / "home"
    done = python("-c", code, QT_QPA_PLATFORM="offscreen", DECODER_EXPLORER_HOME=str(home))
    assert done.returncode == 0, done.stderr
    (left,) = recovery.found(home).sessions
    assert left.tokens == 3
    assert sorted(home.glob("*.lock")) == []


def test_the_window_is_measured_on_a_real_model() -> None:
    code = """
import json, sys, time
from explorer.app import _pace
from explorer.ui.offscreen import window_bench
window_bench.STEPS = 4
window_bench.WORDS = "the cat sat on the mat"
sys.exit(_pace("copycat", str(time.time())))
"""
    done = python("-c", code, QT_QPA_PLATFORM="offscreen")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["platform"] == "offscreen"
    assert 0 < found["start_to_window_ms"] < found["start_to_first_token_ms"]
    assert found["longest_gap_ms"] > 0
    assert found["steps"] == 3 >= found["steps_painted"] >= 1  # the newest step overtakes others
