"""Download from the Hub: nothing without a click, progress, stop, going on, offline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.trace.wire import messages as m
from explorer.ui.dialogs.hub import HubDialog
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
    assert "Searching" in shown.offer.text()


def test_what_would_come_is_told_before_it_is_fetched(stage: WindowStage) -> None:
    shown = offered(stage)
    assert shown.offer.text() == "2 files, 1 GiB. Free disk space: 16 GiB."
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
    assert "25 %" in shown.file.text()
    assert stage.state.status.activity == "running"
    shown.stop.click()
    assert stage.engine.last(m.Cancel).run == run
    stage.say(m.Progress(run=run, text="late", fraction=0.9))
    assert shown.bar.isHidden()
    assert shown.fetch.text() == "Resume"
    shown.fetch.click()
    again = stage.engine.last(m.Download)
    assert (again.repo, again.run != run) == (REPO, True)


def test_done_is_opened_with_a_click(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    shown.close()  # it goes on without the dialog
    stage.say(m.Facts(run=stage.engine.last(m.Download).run, facts={"repo": REPO, "path": "/x"}))
    shown = dialog(stage)
    assert "now in the Hugging Face cache" in shown.offer.text()
    shown.open_button.click()
    assert stage.engine.last(m.Load).model == REPO
    assert not shown.isVisible()


def test_what_has_arrived_is_looked_for_at_once(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    assert not shown.fetch.isVisible()
    stage.say(m.Facts(run=stage.engine.last(m.Download).run, facts={"repo": REPO, "path": "/x"}))
    assert stage.engine.count(m.FindModels) == 1
    assert shown.open_button.isVisible()


def test_what_went_wrong_is_said_there_and_can_be_tried_again(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    run = stage.engine.last(m.Download).run
    stage.say(m.Failed(run=run, sentence="The Hub could not be reached."))
    assert shown.problem.text() == "The Hub could not be reached."
    assert stage.state.error == ""
    assert shown.fetch.isEnabled()


def test_a_word_is_searched_for_and_a_find_is_looked_up(stage: WindowStage) -> None:
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, "smol")
    assert shown.look.text() == "Search"
    shown.look.click()
    asked = stage.engine.last(m.SearchHub)
    assert asked.repo == "smol"
    assert shown.offer.text() == "Searching…"
    stage.say(m.Facts(run=asked.run, facts={"repos": ["a/smol", REPO]}))
    assert shown.results.isVisible()
    shown.results.itemClicked.emit(shown.results.item(1))
    stage.paint()
    assert stage.engine.last(m.LookOnHub).repo == REPO
    assert shown.repo.text() == REPO
    assert shown.results.count() == 2  # still there, to take another
    shown.repo.setText("nothing")
    stage.session.downloads.cancel()
    shown.look.click()
    stage.say(m.Facts(run=stage.engine.last(m.SearchHub).run, facts={"repos": []}))
    assert "No text model" in shown.offer.text()
    assert not shown.results.isVisible()


def test_one_of_several_gguf_files_is_chosen_fetched_and_opened(stage: WindowStage) -> None:
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, REPO)
    shown.look.click()
    forms = [["tiny.Q4_0.gguf", 2**20], ["tiny.F32.gguf", 2**23]]
    facts = {**OFFER, "form": "tiny.Q4_0.gguf", "forms": forms, "files": [forms[0]], "bytes": 2**20}
    stage.say(m.Facts(run=stage.engine.last(m.LookOnHub).run, facts=facts))
    assert [shown.form.itemText(row) for row in range(2)] == [
        "tiny.Q4_0.gguf · 1 MiB", "tiny.F32.gguf · 8 MiB",
    ]  # fmt: skip
    assert shown.offer.text().startswith("1 file, 1 MiB.")
    shown.form.setCurrentIndex(1)
    shown.form.activated.emit(1)
    asked = stage.engine.last(m.LookOnHub)
    assert (asked.repo, asked.form) == (REPO, "tiny.F32.gguf")
    assert not shown.fetch.isEnabled()
    facts |= {"form": "tiny.F32.gguf", "files": [forms[1]], "bytes": 2**23}
    stage.say(m.Facts(run=asked.run, facts=facts))
    assert shown.form.currentData() == "tiny.F32.gguf"
    shown.fetch.click()
    fetched = stage.engine.last(m.Download)
    assert (fetched.repo, fetched.form) == (REPO, "tiny.F32.gguf")
    done = {"repo": REPO, "path": "/hub/tiny.F32.gguf", "open": "/hub/tiny.F32.gguf"}
    stage.say(m.Facts(run=fetched.run, facts=done))
    shown.open_button.click()
    assert stage.engine.last(m.Load).model == "/hub/tiny.F32.gguf"


def test_pickles_are_warned_of_before_they_are_fetched(stage: WindowStage) -> None:
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, REPO)
    shown.look.click()
    facts = {**OFFER, "form": "pickle", "forms": [["pickle", 9]]}
    stage.say(m.Facts(run=stage.engine.last(m.LookOnHub).run, facts=facts))
    assert "can contain programs" in shown.offer.text()
    assert not shown.form.isVisible()
    assert shown.fetch.isEnabled()


def test_a_lost_engine_ends_it_with_a_sentence(stage: WindowStage) -> None:
    shown = offered(stage)
    shown.fetch.click()
    stage.say(m.Lost(sentence="gone"))
    assert "kept" in shown.problem.text()
    assert not shown.stop.isVisible()


def test_offline_mode_is_said_and_nothing_can_be_asked(stage: WindowStage) -> None:
    stage.session.models.find()
    words = "Offline mode is set (HF_HUB_OFFLINE), so nothing is downloaded."
    facts = {"models": [], "offline": words}
    stage.say(m.Facts(run=stage.engine.last(m.FindModels).run, facts=facts))
    shown = dialog(stage)
    QTest.keyClicks(shown.repo, REPO)
    QTest.keyClick(shown.repo, Qt.Key.Key_Return)
    assert shown.problem.text() == words
    assert not shown.look.isEnabled()
    assert stage.engine.count(m.LookOnHub) == 0
