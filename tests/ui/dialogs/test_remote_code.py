"""A model that brings code: the window asks, No is the default, and a yes counts once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.trace.wire import messages as m
from explorer.ui.dialogs.remote_code import CodeDialog
from tests.ui.stage import WindowStage

SENTENCE = "own brings its own program code (a.py, b.py)."


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    stage = WindowStage(qapp, tmp_path)
    stage.loaded()
    yield stage
    stage.close()


def asked(stage: WindowStage) -> CodeDialog:
    stage.session.open_model("/models/own")
    run = stage.engine.last(m.Load).run
    assert not stage.engine.last(m.Load).allow_code
    stage.say(m.Failed(run=run, sentence=SENTENCE, own_code=("a.py", "b.py")))
    (dialog,) = stage.window.findChildren(CodeDialog)
    assert dialog.isVisible()
    return dialog


def test_it_names_the_model_and_the_files_and_is_no_error_yet(stage: WindowStage) -> None:
    dialog = asked(stage)
    assert "/models/own" in dialog.text()
    assert "a.py, b.py" in dialog.informativeText()
    assert stage.state.error == ""
    assert dialog.focusWidget() is dialog.no


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Escape])
def test_enter_and_escape_mean_no_wherever_the_focus_is(
    stage: WindowStage, key: Qt.Key, elsewhere: bool
) -> None:
    dialog = asked(stage)
    if elsewhere:
        stage.look.set_theme("dark")
        dialog.yes.setFocus()
        stage.paint()
    QTest.keyClick(dialog.focusWidget(), key)
    stage.paint()
    stage.look.set_theme("light")
    assert not stage.engine.last(m.Load).allow_code
    assert stage.state.error == SENTENCE
    assert stage.state.code_question is None


def test_yes_opens_it_once_and_the_next_time_asks_again(stage: WindowStage) -> None:
    asked(stage).yes.click()
    stage.paint()
    load = stage.engine.last(m.Load)
    assert (load.model, load.allow_code) == ("/models/own", True)
    stage.answer_load(name="own")
    assert stage.state.card is not None
    stage.session.open_model("/models/own")
    assert not stage.engine.last(m.Load).allow_code
    stage.session.restart_engine()
    assert not stage.engine.last(m.Load).allow_code
