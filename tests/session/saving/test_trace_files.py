"""Opening and saving through the session, and the autosave."""

from __future__ import annotations

import os
import queue
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.session.saving import recovery
from explorer.session.saving.autosave import Autosave
from explorer.trace.files import dxt
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, card, stepped


def settle(stage: Stage) -> None:
    """Wait for what the file thread posts, then run it."""
    arrived = threading.Event()
    stage.session.saving.files.do(lambda: arrived.set, pytest.fail, "settling")
    while not arrived.is_set():
        stage.drain()


def made_trace(steps: int = 2) -> Trace:
    trace = Trace(request=RunRequest(model="tiny", prompt="saved"), card=card(), prompt=PROMPT)
    for i in range(steps):
        event = stepped(0, i)
        trace = trace.appended(event.step, event.token)
    return trace


def test_save_and_open_again(stage: Stage, tmp_path: Path) -> None:
    stage.loaded("prompt").ran(3)
    assert stage.state.unsaved
    stage.session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    assert not stage.state.unsaved
    assert stage.state.saved is not None
    assert stage.state.saved.path == str(tmp_path / "a.dxt")
    stage.session.reset()
    stage.session.set_prompt("something else")
    stage.session.saving.open(tmp_path / "a.dxt")
    settle(stage)
    assert stage.state.trace is not None
    assert stage.state.trace.chosen_ids == (10, 11, 12)
    assert stage.state.request.prompt == "prompt"
    assert not stage.state.request_changed
    stage.session.step()
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)


def test_a_saved_run_opens_without_any_engine_and_its_model_is_loaded_to_step(
    stage: Stage, tmp_path: Path
) -> None:
    dxt.save(made_trace(), tmp_path / "a.dxt")
    stage.session.saving.open(tmp_path / "a.dxt")
    settle(stage)
    assert stage.engines == []
    assert stage.state.trace is not None
    stage.session.step()
    stage.drain()
    assert stage.engine.last(m.Load).model == "tiny"
    stage.answer_load()
    assert stage.state.trace is not None
    stage.prove(stage.state.trace.steps[-1])
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_opening_can_be_undone(stage: Stage, tmp_path: Path) -> None:
    stage.loaded("mine").ran(1)
    mine = stage.state.trace
    dxt.save(made_trace(), tmp_path / "a.dxt")
    stage.session.saving.open(tmp_path / "a.dxt")
    settle(stage)
    stage.session.undo()
    assert stage.state.trace is mine
    assert stage.state.request.prompt == "mine"


def test_trouble_with_files_is_a_sentence(stage: Stage, tmp_path: Path) -> None:
    stage.session.saving.save(tmp_path / "a.dxt")
    assert "nothing to save" in stage.state.error
    stage.session.saving.open(tmp_path / "missing.dxt")
    settle(stage)
    assert "missing.dxt could not be opened" in stage.state.error
    stage.loaded().ran(1)
    stage.session.saving.save(tmp_path / "no folder" / "a.dxt")
    settle(stage)
    assert "could not be written" in stage.state.error
    assert stage.state.unsaved


def test_close_waits_for_a_save(stage: Stage, tmp_path: Path) -> None:
    stage.loaded().ran(3).session.saving.save(tmp_path / "a.dxt")
    stage.session.close()
    assert len(dxt.load(tmp_path / "a.dxt").steps) == 3


def test_no_thread_is_left_over(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    stage = Stage().loaded().ran(2)
    stage.session.saving.save(tmp_path / "a.dxt")
    stage.session.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)  # one that was told to end may still be on its way
    assert set(threading.enumerate()) <= before


class Saves:
    """Lets a test wait for the autosave's writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lengths: list[int] = []
        self._done = threading.Semaphore(0)
        real = dxt.save

        def save(trace: Trace, path: Path, beside: SavedExtras) -> None:
            real(trace, path, beside)
            self.lengths.append(len(trace.steps))
            self._done.release()

        monkeypatch.setattr(dxt, "save", save)

    def wait(self) -> None:
        assert self._done.acquire(timeout=30)


def test_autosave_writes_the_latest_and_a_clean_end_removes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saves = Saves(monkeypatch)
    autosave = Autosave(pytest.fail, tmp_path, interval=0.2)
    for steps in (1, 2, 3):
        autosave.note(made_trace(steps))
    saves.wait()
    assert saves.lengths == [3]
    assert len(dxt.load(autosave.path).steps) == 3
    assert recovery.found(tmp_path) == recovery.Found()  # its owner lives
    autosave.close()
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_before_the_interval(tmp_path: Path) -> None:
    autosave = Autosave(pytest.fail, tmp_path, interval=3600)
    autosave.note(made_trace(1))
    autosave.close()
    assert os.listdir(tmp_path) == []


def test_a_file_with_impossible_sampling_is_refused(stage: Stage, tmp_path: Path) -> None:
    made = made_trace(2)
    odd = replace(made.steps[1], sampling=Sampling(greedy=False, top_p=7.0))
    dxt.save(replace(made, steps=(made.steps[0], odd)), tmp_path / "odd.dxt")
    stage.session.saving.open(tmp_path / "odd.dxt")
    settle(stage)
    assert stage.state.trace is None
    assert "odd.dxt is damaged: Top-p" in stage.state.error


def test_autosave_trouble_is_told_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    told: list[str] = []
    heard = threading.Event()

    def tell(problem: str) -> None:
        told.append(problem)
        heard.set()

    autosave = Autosave(tell, blocked, interval=0.01)
    autosave.note(made_trace(1))
    assert heard.wait(30)
    autosave.note(made_trace(2))
    autosave.close()
    assert len(told) == 1
    assert "Automatic saving failed" in told[0]
    assert str(blocked) in told[0]
    assert "[Errno" not in told[0]


def test_autosave_goes_on_after_any_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saves, save = Saves(monkeypatch), dxt.save
    told: queue.SimpleQueue[str] = queue.SimpleQueue()

    def no_memory(trace: Trace, path: Path, beside: SavedExtras) -> None:
        monkeypatch.setattr(dxt, "save", save)
        raise MemoryError

    monkeypatch.setattr(dxt, "save", no_memory)
    autosave = Autosave(told.put, tmp_path, interval=0.01)
    autosave.note(made_trace(1))
    assert told.get(timeout=30) == (
        "Automatic saving failed (there is not enough memory). Your run is still here. Save the "
        "session yourself."
    )
    autosave.note(made_trace(2))
    saves.wait()
    assert saves.lengths == [2]
    autosave.close()


def test_files_are_opened_and_saved_after_any_fault(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, real = tmp_path / "a.dxt", (dxt.save, dxt.load_whole, recovery.found)

    def no_memory(*given: object) -> None:
        raise MemoryError

    monkeypatch.setattr(dxt, "save", no_memory)
    monkeypatch.setattr(dxt, "load_whole", no_memory)
    monkeypatch.setattr(recovery, "found", no_memory)
    reason = "there is not enough memory. See the log for details."
    stage.loaded().ran(2)
    ended: list[str] = []
    stage.session.saving.save(path, lambda: ended.append("saved"))
    settle(stage)
    assert stage.state.error.endswith(f"a.dxt could not be written: {reason}")
    stage.session.saving.open(path, failed=lambda: ended.append("not opened"))
    settle(stage)
    assert stage.state.error.endswith(f"a.dxt could not be opened: {reason}")
    stage.session.saving.find_kept(pytest.fail)
    settle(stage)
    assert reason in stage.state.error
    assert "MemoryError" in caplog.text
    for place, name, one in zip(
        (dxt, dxt, recovery), ("save", "load_whole", "found"), real, strict=True
    ):
        monkeypatch.setattr(place, name, one)
    stage.session.saving.save(path, lambda: ended.append("saved"))
    settle(stage)
    assert ended == ["not opened", "saved"]


def test_the_session_feeds_the_autosave(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.session.saving import autosave

    monkeypatch.setattr(autosave, "INTERVAL_SECONDS", 0.05)
    saves = Saves(monkeypatch)
    stage = Stage().loaded().ran(2)
    saves.wait()
    assert saves.lengths[-1] in (1, 2)
    assert len(list(data_folder.glob("autosave-*.dxt"))) == 1
    stage.session.close()
    assert list(data_folder.glob("autosave-*")) == []
