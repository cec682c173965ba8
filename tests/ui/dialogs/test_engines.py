"""The user's engines: added, tried, chosen in the list of models, remembered."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer.session.connection.chosen_engine import ChosenEngine
from explorer.session.session import Session
from explorer.ui.dialogs.engines import EnginesDialog
from explorer.ui.dialogs.model_picker import ModelPicker
from explorer.ui.settings.settings import KnownEngine, Settings
from explorer.ui.threads.bridge import Bridge
from tests.ui.waiting import wait_until

FAKE = Path(__file__).parents[2] / "session" / "fake_engine.py"


def command(behaviour: str) -> str:
    return shlex.join([sys.executable, str(FAKE), behaviour])


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))
    return Settings(tmp_path / "settings.ini")


@pytest.fixture
def session(qapp: QApplication) -> Iterator[Session]:
    bridge = Bridge(qapp)
    session = Session(ChosenEngine(), bridge.post)
    yield session
    session.close()
    bridge.close()


@pytest.fixture
def dialog(session: Session, memory: Settings) -> Iterator[EnginesDialog]:
    dialog = EnginesDialog(session, memory)
    dialog.show()
    yield dialog
    dialog.close()
    dialog.deleteLater()


def test_a_test_says_what_is_there(dialog: EnginesDialog) -> None:
    dialog.command.setText(command("models"))
    dialog.test.click()
    wait_until(lambda: dialog.test.isEnabled())
    words = dialog.said.text()
    assert "far-machine: Abacus, 64 cores, 512 GiB of memory, G1." in words
    assert "torch 1.0 (here" in words
    assert "Models there (1): big-one." in words


def test_a_test_is_not_shown_beside_another_command(dialog: EnginesDialog) -> None:
    dialog.command.setText(command("fails"))
    dialog.test.click()
    wait_until(lambda: dialog.test.isEnabled())
    assert dialog.said.text()
    dialog.command.setText(command("models"))
    assert dialog.said.text() == ""
    dialog.test.click()
    assert not dialog.test.isEnabled()
    dialog.command.setText(command("fails"))
    assert dialog.test.isEnabled()
    assert dialog.said.text() == ""


def test_a_test_that_fails_says_why(dialog: EnginesDialog) -> None:
    dialog.command.setText(command("fails"))
    dialog.test.click()
    wait_until(lambda: dialog.test.isEnabled())
    assert "Could not resolve hostname gpu-box" in dialog.said.text()


def test_what_is_no_command_line_is_not_offered(dialog: EnginesDialog) -> None:
    dialog.name.setText("odd")
    dialog.command.setText("ssh 'gpu-box")
    assert not dialog.test.isEnabled()
    assert not dialog.save.isEnabled()


def test_engines_are_kept_changed_and_removed(dialog: EnginesDialog, memory: Settings) -> None:
    for name, words in (("one", "a b"), ("two", "c"), ("one", "d")):
        dialog.name.setText(name)
        dialog.command.setText(words)
        dialog.save.click()
    assert memory.engines() == [KnownEngine("two", "c"), KnownEngine("one", "d")]
    dialog.remove.click()
    assert memory.engines() == [KnownEngine("two", "c")]


def test_the_one_that_is_chosen_runs_and_its_models_are_listed(
    session: Session, memory: Settings
) -> None:
    memory.keep_engines([KnownEngine("far", command("models"))])
    picker = ModelPicker(session, memory)
    picker.show()
    choose(picker, "far")
    wait_until(lambda: session.state.library is not None)
    assert session.state.host == "far-machine"
    assert [model.name for model in picker.table.models] == ["big-one"]
    assert picker.windowTitle() == "Models on far-machine"
    assert shlex.split(memory.chosen_engine()) == shlex.split(command("models"))
    assert session.engine_command == tuple(shlex.split(command("models")))
    picker.close()
    picker.deleteLater()


def test_models_of_another_machine_are_not_listed_for_one_that_fails(
    session: Session, memory: Settings
) -> None:
    known = [KnownEngine(name, command(name)) for name in ("models", "fails")]
    memory.keep_engines(known)
    picker = ModelPicker(session, memory)
    picker.show()
    choose(picker, "models")
    wait_until(lambda: session.state.library is not None)
    choose(picker, "fails")
    wait_until(lambda: session.state.status.activity == "lost")
    assert picker.table.models == ()
    assert picker.windowTitle() == "Models on this computer"
    assert session.state.host == ""
    picker.close()
    picker.deleteLater()


def choose(picker: ModelPicker, name: str) -> None:
    place = picker.engine.findText(name)
    picker.engine.setCurrentIndex(place)
    picker.engine.activated.emit(place)


def test_each_side_chooses_its_own(session: Session) -> None:
    session.choose_engine((sys.executable, str(FAKE), "echo"))
    second = session.another()
    assert second.engine_command == session.engine_command
    session.choose_engine(())
    assert second.engine_command != ()
    second.close()


def test_an_engine_of_the_command_line_is_in_the_list(
    session: Session, memory: Settings, qapp: QApplication
) -> None:
    given: Callable[[], object] = ChosenEngine(("ssh", "box", "run"))
    bridge = Bridge(qapp)
    other = Session(given, bridge.post)  # type: ignore[arg-type]
    picker = ModelPicker(other, memory)
    picker.show()
    assert picker.engine.currentText() == "ssh box run"
    picker.close()
    picker.deleteLater()
    other.close()
    bridge.close()
