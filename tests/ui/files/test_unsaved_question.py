"""A run that is in no file: the title marks it, and nothing takes its place unasked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QFileDialog, QLabel, QMessageBox, QPushButton

from explorer.session.saving import recovery
from explorer.trace.files import dxt
from explorer.trace.wire import messages as m
from explorer.ui.files import save_dialog
from explorer.ui.inputs.sample_prompts import Sample
from explorer.ui.settings.settings import Settings
from tests.session.saving.test_trace_files import made_trace
from tests.session.scripted import cut_last
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

Buttons = QMessageBox.StandardButton


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def question(stage: WindowStage) -> QMessageBox | None:
    return next(iter(stage.window.findChildren(QMessageBox, "unsaved")), None)


def answer(stage: WindowStage, button: QMessageBox.StandardButton) -> None:
    box = question(stage)
    assert box is not None, "nothing was asked"
    box.button(button).click()
    settle(stage)
    stage.paint()
    wait_until(lambda: question(stage) is None)


def settle(stage: WindowStage) -> None:
    """Until the file thread has done what was asked of it."""
    arrived = threading.Event()
    stage.session.saving.files.do(lambda: arrived.set, pytest.fail, "settling")
    while not arrived.is_set():
        stage.drain()


def names_file(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", staticmethod(lambda *_, **__: (str(path), ""))
    )


def title(stage: WindowStage) -> tuple[str, bool]:
    return stage.window.windowTitle(), stage.window.isWindowModified()


def status(stage: WindowStage) -> str:
    return "\n".join(label.text() for label in stage.window.status.findChildren(QLabel))


def drop(stage: WindowStage, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    stage.window.dropEvent(
        QDropEvent(
            QPointF(9, 9), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
    )  # fmt: skip


def test_without_a_run_saving_says_what_the_session_says(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded()
    stage.session.saving.save(tmp_path / "a.dxt")
    said = stage.state.error
    stage.session.report("")
    stage.window.files.ask_save()
    assert stage.state.error == said == "There is nothing to save yet. Press Step first."


def test_the_title_names_the_file_and_marks_what_is_not_saved(
    stage: WindowStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.loaded()
    assert title(stage) == ("tiny[*] — Decoder Explorer", False)
    stage.ran(2)
    assert title(stage) == ("tiny[*] — Decoder Explorer", True)
    names_file(monkeypatch, tmp_path / "a[*]b")
    stage.window.files.ask_save()
    settle(stage)
    assert title(stage) == ("a[*][*]b.dxt[*] — tiny — Decoder Explorer", False)
    assert "Saved: a[*]b.dxt" in status(stage)
    stage.say(m.Finished(run=stage.engine.last(m.CheckTrace).run))  # it begins by itself
    assert "Saved: a[*]b.dxt" in status(stage)
    stage.session.step()
    stage.steps(1)
    stage.finish()
    assert title(stage) == ("a[*][*]b.dxt[*] — tiny — Decoder Explorer", True)
    cut_last(stage.session)
    assert title(stage)[1], "a branch still holds the step"
    stage.session.set_prompt("another")
    stage.ran(1)
    assert title(stage) == ("tiny[*] — Decoder Explorer", True)


def test_steps_that_change_no_mark_tell_the_window_manager_nothing(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    told: list[QEvent.Type] = []

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() in (QEvent.Type.ModifiedChange, QEvent.Type.WindowTitleChange):
                told.append(event.type())
            return False

    watch = Watch()
    stage.window.installEventFilter(watch)
    stage.session.step(3)
    stage.steps(3)
    stage.finish()
    stage.window.removeEventFilter(watch)
    assert told == []


def test_looking_checking_and_another_branch_change_nothing_that_is_saved(
    stage: WindowStage, tmp_path: Path
) -> None:
    stage.loaded().ran(3)
    stage.session.select(step=1)
    stage.session.force(20)
    assert stage.state.unsaved
    stage.session.saving.save(tmp_path / "a.dxt")
    settle(stage)
    assert not stage.state.unsaved
    stage.session.run_self_check()
    stage.say(m.Finished(run=stage.engine.last(m.CheckTrace).run))
    stage.session.show_branch(1)
    stage.session.select(step=0, layer=1)
    assert not stage.state.unsaved
    stage.session.force(21)
    assert stage.state.unsaved


def opening_a_file(stage: WindowStage, path: Path) -> None:
    stage.window.files.open(str(path))


def opening_a_model(stage: WindowStage, path: Path) -> None:
    stage.window.topbar.openModel.emit("other")


def dropping_a_file(stage: WindowStage, path: Path) -> None:
    drop(stage, path)


def closing(stage: WindowStage, path: Path) -> None:
    stage.window.close()


def quitting(stage: WindowStage, path: Path) -> None:
    stage.window.actions_table.by_id["quit"].trigger()


def reopening(stage: WindowStage, path: Path) -> None:
    stage.memory.remember_session(stage.state, str(path))
    stage.window.actions_table.by_id["reopen"].trigger()


WAYS = [opening_a_file, opening_a_model, dropping_a_file, closing, quitting, reopening]


@pytest.mark.parametrize("way", WAYS)
def test_over_an_unsaved_run_it_is_asked(
    stage: WindowStage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: Callable[[WindowStage, Path], None],
) -> None:
    dxt.save(made_trace(), tmp_path / "other.dxt")
    stage.loaded().ran(2)
    mine = stage.state.trace
    loads = stage.engine.count(m.Load)

    def went_on() -> bool:
        settle(stage)
        moved = stage.state.trace is not mine or stage.engine.count(m.Load) > loads
        return moved or not stage.window.isVisible()

    way(stage, tmp_path / "other.dxt")
    answer(stage, Buttons.Cancel)
    assert not went_on()
    way(stage, tmp_path / "other.dxt")
    way(stage, tmp_path / "other.dxt")
    assert len(stage.window.findChildren(QMessageBox, "unsaved")) == 1
    names_file(monkeypatch, Path())  # no name after all
    answer(stage, Buttons.Save)
    assert not went_on()
    way(stage, tmp_path / "other.dxt")
    names_file(monkeypatch, tmp_path / "missing" / "mine")
    answer(stage, Buttons.Save)
    assert "could not be written" in stage.state.error
    assert not went_on()
    way(stage, tmp_path / "other.dxt")
    names_file(monkeypatch, tmp_path / "mine")
    answer(stage, Buttons.Save)
    assert len(dxt.load(tmp_path / "mine.dxt").steps) == 2
    assert went_on()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_discarded_gives_way_and_what_is_saved_is_not_asked_about(
    stage: WindowStage, tmp_path: Path, way: Callable[[WindowStage, Path], None]
) -> None:
    dxt.save(made_trace(), tmp_path / "other.dxt")
    stage.loaded().ran(1)
    stage.session.saving.save(tmp_path / "mine.dxt")
    settle(stage)
    stage.session.step()
    stage.steps(1)
    way(stage, tmp_path / "other.dxt")
    box = question(stage)
    assert box is not None
    assert "mine.dxt" in box.text()
    answer(stage, Buttons.Discard)
    assert len(dxt.load(tmp_path / "mine.dxt").steps) == 1
    if stage.window.isVisible():
        stage.session.saving.save(tmp_path / "mine.dxt")
        settle(stage)
        way(stage, tmp_path / "other.dxt")
        assert question(stage) is None


def test_save_writes_the_file_that_the_question_named(stage: WindowStage, tmp_path: Path) -> None:
    stage.loaded().ran(1)
    stage.session.saving.save(tmp_path / "mine.dxt")
    settle(stage)
    stage.session.step()
    stage.steps(1)
    stage.window.close()
    answer(stage, Buttons.Save)
    assert not stage.window.isVisible()
    assert len(dxt.load(tmp_path / "mine.dxt").steps) == 2


@pytest.mark.parametrize("saved", [True, False])
def test_the_last_session_is_reopened_with_its_run(
    stage: WindowStage, tmp_path: Path, saved: bool
) -> None:
    stage.loaded("the prompt").ran(3)
    if saved:
        stage.session.saving.save(tmp_path / "mine.dxt")
        settle(stage)
    stage.session.set_causal_mask(False)
    stage.window.close_at_once()
    stage.session.close()
    assert (tmp_path / "last-session.dxt").exists() is not saved
    later = WindowStage(stage.app, tmp_path)
    later.window.files.reopen_last()
    settle(later)
    assert later.state.trace is not None
    assert later.state.trace.chosen_ids == (10, 11, 12)
    assert later.state.request.prompt == "the prompt"
    assert not later.state.request.causal_mask
    assert later.state.unsaved is not saved
    assert later.state.file == (str(tmp_path / "mine.dxt") if saved else "")
    assert later.engine.last(m.Load).model == "tiny"
    later.close()


def test_a_last_session_without_a_run_reopens_none(stage: WindowStage, tmp_path: Path) -> None:
    (tmp_path / "last-session.dxt").write_text("of an earlier time")
    stage.loaded("typed")
    stage.window.close_at_once()
    last = Settings(tmp_path / "settings.ini").last_session()
    assert last is not None
    assert last.file == ""
    assert not (tmp_path / "last-session.dxt").exists()


def test_runs_that_a_crash_left_are_offered_by_their_times(stage: WindowStage, home: Path) -> None:
    for name, steps in (("1", 1), ("2", 2)):
        dxt.save(made_trace(steps), home / f"autosave-{name}.dxt")
    (home / "autosave-3.dxt").write_text("half")
    bar = stage.window.recovery
    stage.session.saving.find_kept(stage.window.offer_kept)
    settle(stage)
    assert bar in stage.window.notices.waiting
    assert "2 unsaved" in bar.text
    assert recovery.UNREADABLE in stage.window.notices.error.text
    items = [bar.choice.itemText(i) for i in range(bar.choice.count())]
    assert ["2 tokens" in item for item in items].count(True) == 1
    assert all("tiny" in item and "saved" in item and ":" in item for item in items)
    bar.choice.setCurrentIndex(next(i for i, item in enumerate(items) if "2 tokens" in item))
    button(stage, "Open")
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 2
    assert not bar.choice.isVisible()
    assert "1 token" in bar.text
    button(stage, "Delete")
    assert not bar.isVisible()
    assert [one.tokens for one in recovery.found(home).sessions] == [], "one is open, one deleted"


def button(stage: WindowStage, text: str) -> None:
    found = stage.window.recovery.findChildren(QPushButton)
    next(b for b in found if b.text() == text).click()
    settle(stage)


def test_a_sample_prompt_over_an_unsaved_run_waits_for_the_answer(stage: WindowStage) -> None:
    stage.loaded("mine").ran(1)
    stage.window.take_sample(Sample(title="t", prompt="a sample", model="copycat", look_at=""))
    assert stage.state.request.prompt == "mine"
    answer(stage, Buttons.Discard)
    assert stage.state.request.prompt == "a sample"
    assert stage.engine.last(m.Load).model == "copycat"


def test_saving_while_the_prompt_is_read_says_when_it_can(stage: WindowStage) -> None:
    stage.loaded().session.run()
    stage.prompted()
    save = stage.window.actions_table.by_id["save"]
    assert save.isEnabled()
    save.trigger()
    stage.paint()
    assert stage.app.activeModalWidget() is None
    assert "after its first token" in stage.window.notices.error.text
    stage.steps(1)
    with patch.object(save_dialog, "ask") as ask:
        save.trigger()
    assert ask.call_count == 1
