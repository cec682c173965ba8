"""Undo takes back the last act, from wherever it is asked for, and its name says which."""

from __future__ import annotations

import ast
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

import explorer.session
from explorer.ui.menus.undo_words import REDO, UNDO
from tests.ui.stage import WindowStage

CTRL = Qt.KeyboardModifier.ControlModifier


def step(stage: WindowStage) -> None:
    stage.session.step()
    stage.prompted()
    stage.steps(1)
    stage.finish()


def steps(stage: WindowStage) -> int:
    return 0 if stage.state.trace is None else len(stage.state.trace.steps)


def test_ctrl_z_in_the_prompt_takes_back_steps_before_typing(stage: WindowStage) -> None:
    stage.loaded("")
    edit = stage.window.prompt.edit
    QTest.keyClicks(edit, "The cat")
    stage.paint()
    assert stage.state.request.prompt == "The cat"
    for _ in range(6):
        step(stage)
    edit.setFocus()
    for left in (5, 4, 3, 2, 1, 0):
        QTest.keyClick(edit, Qt.Key.Key_Z, CTRL)
        assert steps(stage) == left
        assert edit.text() == stage.state.request.prompt == "The cat"
    QTest.keyClick(edit, Qt.Key.Key_Z, CTRL)
    assert edit.text() == stage.state.request.prompt == ""
    QTest.keyClick(edit, Qt.Key.Key_Y, CTRL)
    assert edit.text() == stage.state.request.prompt == "The cat"
    assert edit.textCursor().position() == 7  # and typing goes on behind it
    QTest.keyClick(edit, Qt.Key.Key_Z, CTRL | Qt.KeyboardModifier.ShiftModifier)
    assert steps(stage) == 1


def test_ctrl_z_in_a_spin_box_takes_back_what_was_set(stage: WindowStage) -> None:
    stage.loaded().session.set_padding("left", 8)
    stage.paint()
    pad = stage.window.topbar.pad
    pad.setFocus()
    QTest.keyClick(pad, Qt.Key.Key_Up)
    assert stage.state.request.pad == 9
    QTest.keyClick(pad, Qt.Key.Key_Z, CTRL)
    assert stage.state.request.padding is None  # one gesture: the side and its number


def test_the_menu_names_the_act(stage: WindowStage) -> None:
    stage.loaded()
    undo, redo = (stage.window.actions_table.by_id[name] for name in ("undo", "redo"))
    assert (undo.text(), redo.text()) == ("Undo typing", "Redo")
    step(stage)
    assert undo.text() == "Undo step"
    stage.session.set_cache(False)
    assert undo.text() == "Undo KV cache"
    undo.trigger()
    assert (undo.text(), redo.text()) == ("Undo step", "Redo KV cache")


def test_every_kind_of_act_has_its_words() -> None:
    assert UNDO.keys() == REDO.keys()
    kinds: set[str] = set()
    folder = Path(explorer.session.__file__).parent
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr in ("make", "_change_request") and node.args:
                kind = node.args[0]
                kinds |= {kind.value} if isinstance(kind, ast.Constant) else set()
    assert len(kinds) > 10
    assert kinds | {"", "step", "run"} == UNDO.keys()
