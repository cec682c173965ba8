"""Sessions that a crash left: which are offered, and what is cleared away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

import pytest

from explorer.session.saving import autosave, recovery
from explorer.session.saving.autosave import Autosave
from explorer.trace.files import dxt
from tests.session.saving.test_trace_files import Saves, made_trace, settle
from tests.session.scripted import Stage


def left(folder: Path, name: str, steps: int = 2, age: float = 0.0) -> Path:
    """A session as a program that died `age` seconds ago leaves it."""
    path = folder / f"autosave-{name}.dxt"
    dxt.save(made_trace(steps), path)
    recovery.lock_path(path).touch()
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def offered(stage: Stage) -> tuple[recovery.UnsavedSession, ...]:
    told: list[recovery.Found] = []
    stage.session.saving.find_kept(told.append)
    settle(stage)
    return told[0].sessions


@pytest.fixture
def home(data_folder: Path) -> Path:
    data_folder.mkdir()
    return data_folder


def test_a_program_that_crashed_leaves_its_session(tmp_path: Path) -> None:
    code = (
        "import sys, os, time\n"
        "from pathlib import Path\n"
        "from explorer.session.saving.autosave import Autosave\n"
        "from tests.session.saving.test_trace_files import made_trace\n"
        "autosave = Autosave(print, Path(sys.argv[1]), interval=0.05)\n"
        "autosave.note(made_trace(2))\n"
        "while not autosave.path.exists(): time.sleep(0.01)\n"
        "os._exit(9)\n"
    )
    root = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": root}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=environment, check=False)
    (found,) = recovery.found(tmp_path).sessions
    assert (found.model, found.prompt, found.tokens) == ("tiny", "saved", 2)
    assert abs(found.saved_at - time.time()) < 60
    recovery.discard(found.path)
    assert names(tmp_path) == []


def test_a_damaged_newest_session_hides_no_sound_older_one(tmp_path: Path) -> None:
    older, sound = left(tmp_path, "1", age=900), left(tmp_path, "2", age=600)
    for name, age in (("3", 300.0), ("4", 0.0)):
        damaged = left(tmp_path, name, age=age)
        damaged.write_bytes(damaged.read_bytes()[:-100])
    found = recovery.found(tmp_path)
    assert [one.path for one in found.sessions] == [sound, older]
    assert found.unreadable == tmp_path / recovery.UNREADABLE
    # Of those that can't be read one stays, out of the way.
    assert names(tmp_path) == ["autosave-1.dxt", "autosave-2.dxt", recovery.UNREADABLE]
    assert [one.path for one in recovery.found(tmp_path).sessions] == [sound, older]


def test_what_is_stale_is_cleared_and_what_lives_is_not(tmp_path: Path) -> None:
    (tmp_path / "autosave-1-a.lock").touch()
    (tmp_path / ".autosave-2-b.dxt.77-88.part").write_bytes(b"half")
    alive = tmp_path / "autosave-3-c.dxt"
    part = tmp_path / f".{alive.name}.1-2.part"
    part.touch()
    lock = recovery.Lock.take(alive)
    assert lock is not None
    (tmp_path / "log.txt").touch()
    assert recovery.found(tmp_path) == recovery.Found()
    assert names(tmp_path) == [part.name, "autosave-3-c.lock", "log.txt"]
    lock.release()


def test_only_so_many_wait(tmp_path: Path) -> None:
    paths = [left(tmp_path, str(i), 1, age=i) for i in range(recovery.MOST + 3)]
    assert [one.path for one in recovery.found(tmp_path).sessions] == paths[: recovery.MOST]
    assert sorted(tmp_path.glob("*.dxt")) == sorted(paths[: recovery.MOST])


def test_nothing_is_found_where_there_is_no_folder(tmp_path: Path) -> None:
    assert recovery.found(tmp_path / "never made") == recovery.Found()


def test_what_was_opened_and_closed_is_not_offered_again(stage: Stage, home: Path) -> None:
    path = left(home, "1")
    (one,) = offered(stage)
    stage.session.saving.open(one.path, own=True)
    settle(stage)
    assert stage.state.unsaved, "it is in no file of the user's yet"
    assert stage.state.file == ""
    assert path.exists(), "until it is kept anew"
    assert offered(Stage()) == (), "it belongs to this program now"
    stage.session.close()
    assert names(home) == []


def test_a_session_that_was_opened_goes_once_the_new_program_keeps_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autosave, "INTERVAL_SECONDS", 0.05)
    path = left(home, "1")
    saves = Saves(monkeypatch)
    stage = Stage()
    stage.session.saving.open(path, own=True)
    settle(stage)
    saves.wait()
    stage.session.saving.leave()
    assert not path.exists()
    (one,) = recovery.found(home).sessions
    assert one.tokens == 2


def test_a_run_that_is_in_a_file_is_not_kept_beside_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(autosave, "INTERVAL_SECONDS", 0.05)
    saves = Saves(monkeypatch)
    stage = Stage().loaded().ran(2)
    saves.wait()
    kept_file = stage.session.saving._autosave.path
    stage.session.saving.save(tmp_path / "mine.dxt")
    settle(stage)
    end = time.monotonic() + 20
    while kept_file.exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not kept_file.exists()
    stage.session.saving.open(tmp_path / "mine.dxt")
    settle(stage)
    assert not stage.state.unsaved
    stage.session.saving.leave()
    assert list(home.glob("autosave-*.dxt")) == []


def test_a_program_that_is_told_to_end_leaves_its_run(stage: Stage, home: Path) -> None:
    stage.loaded("typed").ran(3)
    stage.session.saving.leave()
    stage.session.close()
    (one,) = recovery.found(home).sessions
    assert (one.prompt, one.tokens) == ("typed", 3)


def test_a_lock_that_cannot_be_had_is_tried_again(tmp_path: Path) -> None:
    mine = Autosave(pytest.fail, tmp_path, interval=3600)
    theirs = recovery.Lock.take(mine.path)
    assert theirs is not None
    assert recovery.Lock.take(mine.path) is None
    theirs.release()
    mine.leave(made_trace(1))
    assert len(recovery.found(tmp_path).sessions) == 1


def test_a_lock_whose_file_was_cleared_away_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = tmp_path / "autosave-1.dxt"
    first = recovery.Lock.take(session)
    assert first is not None
    real = recovery._locked

    def after_release(stream: BinaryIO) -> bool:
        monkeypatch.setattr(recovery, "_locked", real)
        first.release()  # between the opening of its file and the lock on it
        return real(stream)

    monkeypatch.setattr(recovery, "_locked", after_release)
    second = recovery.Lock.take(session)
    assert second is not None
    assert recovery.Lock.take(session) is None, "one owner at a time"
    second.release()
    assert names(tmp_path) == []


def test_a_list_of_sessions_needs_their_headers_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = left(tmp_path, "1", steps=3)
    whole = dxt.load(path)
    monkeypatch.setattr(dxt, "load_whole", pytest.fail)
    (one,) = recovery.found(tmp_path).sessions
    assert (one.model, one.prompt, one.tokens) == (whole.card.name, whole.request.prompt, 3)
    with path.open("r+b") as stream:  # what the arrays hold is looked at when it is opened
        stream.seek(-8, os.SEEK_END)
        stream.write(b"\xff" * 8)
    assert len(recovery.found(tmp_path).sessions) == 1
