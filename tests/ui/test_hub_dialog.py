"""Download from the Hub: nothing without a click, progress, stop, going on, offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.trace import messages as m
from explorer.ui.models.hub import HubDialog
from tests.ui.stage import WindowStage

REPO = "someone/tiny"
OFFER: dict[str, Any] = {
    "repo": REPO, "files": [["config.json", 600], ["model.safetensors", 2**30]],
    "bytes": 2**30 + 600, "free_bytes": 2**34, "revision": "abc",
}  # fmt: skip


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.loaded()
    yield stage
    stage.close()


def dialog(stage: WindowStage) -> HubDialog:
    stage.window.download_model()
    found = stage.window.findChild(HubDialog)
    assert isinstance(found, HubDialog)
    return found


def offered(stage: WindowStage) -> HubDialog:
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, REPO)
    QTest.keyClick(shown.repo, Qt.Key.Key_Return)
    stage.say(m.Facts(run=stage.engine.last(m.LookOnHub).run, facts=OFFER))
    return shown


def test_a_name_is_looked_up_only_when_asked(stage: WindowStage) -> None:
    shown = dialog(stage)
    assert not shown.look.isEnabled()
    QTest.keyClicks(shown.repo, REPO)
    assert stage.engine.count(m.LookOnHub) == 0
    shown.look.click()
    assert stage.engine.last(m.LookOnHub).repo == REPO
    assert "Looking it up" in shown.offer.text()


def test_what_would_come_is_told_before_it_is_fetched(stage: WindowStage) -> None:
    shown = offered(stage)
    assert shown.offer.text() == "2 files, 1 GiB; 16 GiB are free on the disk of the cache."
    assert stage.engine.count(m.Download) == 0
    assert shown.fetch.isEnabled()
    QTest.keyClicks(shown.repo, "2")  # another name: nothing is known of that
    assert not shown.fetch.isEnabled()
    assert shown.offer.text() == ""


def test_progress_stop_and_going_on_beside_a_run(stage: WindowStage) -> None:
    shown = offered(stage)
    stage.session.run()
    shown.fetch.click()
    run = stage.engine.last(m.Download).run
    stage.say(m.Progress(run=run, text="Downloading: model.safetensors", fraction=0.25))
    assert shown.bar.value() == 250
    assert "25%" in shown.file.text()
    assert stage.state.status.activity == "running"
    shown.stop.click()
    assert stage.engine.last(m.Cancel).run == run
    stage.say(m.Progress(run=run, text="late", fraction=0.9))
    assert shown.bar.isHidden()
    assert shown.fetch.text() == "Go on"
    shown.fetch.click()
    again = stage.engine.last(m.Download)
    assert (again.repo, again.run != run) == (REPO, True)


def test_done_is_opened_with_a_click(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    shown.close()  # it goes on without the dialog
    stage.say(m.Facts(run=stage.engine.last(m.Download).run, facts={"repo": REPO, "path": "/x"}))
    shown = dialog(stage)
    assert "in the Hugging Face cache now" in shown.offer.text()
    shown.open.click()
    assert stage.engine.last(m.Load).model == REPO
    assert not shown.isVisible()


def test_what_has_arrived_is_looked_for_at_once(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    assert not shown.fetch.isVisible()
    stage.say(m.Facts(run=stage.engine.last(m.Download).run, facts={"repo": REPO, "path": "/x"}))
    assert stage.engine.count(m.FindModels) == 1
    assert shown.open.isVisible()


def test_what_went_wrong_is_said_there_and_can_be_tried_again(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    run = stage.engine.last(m.Download).run
    stage.say(m.Failed(run=run, sentence="The Hub could not be reached."))
    assert shown.problem.text() == "The Hub could not be reached."
    assert stage.state.error == ""
    assert shown.fetch.isEnabled()


def test_a_lost_engine_ends_it_with_a_sentence(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    stage.say(m.Lost(sentence="gone"))
    assert "kept" in shown.problem.text()
    assert not shown.stop.isVisible()


def test_offline_mode_is_said_and_nothing_can_be_asked(stage: WindowStage) -> None:
    stage.session.find_models()
    words = "Offline mode is set (HF_HUB_OFFLINE), so nothing is downloaded."
    facts = {"models": [], "offline": words}
    stage.say(m.Facts(run=stage.engine.last(m.FindModels).run, facts=facts))
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, REPO)
    QTest.keyClick(shown.repo, Qt.Key.Key_Return)
    assert shown.problem.text() == words
    assert not shown.look.isEnabled()
    assert stage.engine.count(m.LookOnHub) == 0
