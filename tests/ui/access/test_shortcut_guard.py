"""Single keys: they act on the window, and never while something else needs them."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from explorer.trace.wire import messages as m
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(stage: WindowStage) -> WindowStage:
    stage.loaded("x y")
    return stage


def press(stage: WindowStage, widget: QWidget, key: Qt.Key, *modifiers: object) -> None:
    widget.setFocus()
    stage.paint()
    assert widget.hasFocus()
    QTest.keyClick(widget, key, *modifiers)  # type: ignore[call-overload]
    stage.drain()
    stage.paint()


def steps_asked(stage: WindowStage) -> int:
    return stage.engine.count(m.Advance)


def test_space_steps(stage: WindowStage) -> None:
    press(stage, stage.window, Qt.Key.Key_Space)
    assert steps_asked(stage) == 1


def test_left_and_right_look_and_space_steps_only_at_the_end(stage: WindowStage) -> None:
    stage.ran(3)
    trace, asked = stage.state.trace, steps_asked(stage)
    for key, index in (
        (Qt.Key.Key_Left, 1),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_Space, 2),
        (Qt.Key.Key_Right, 2),
    ):
        press(stage, stage.window, key)
        assert (stage.state.trace, stage.state.step_index) == (trace, index)
        assert steps_asked(stage) == asked
    press(stage, stage.window, Qt.Key.Key_Space)
    assert steps_asked(stage) == asked + 1


def test_delete_cuts_home_resets_r_runs(stage: WindowStage) -> None:
    stage.ran(3)
    stage.session.select(step=1)
    press(stage, stage.window, Qt.Key.Key_Delete)
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 2
    press(stage, stage.window, Qt.Key.Key_Home)
    assert stage.state.trace is None
    press(stage, stage.window, Qt.Key.Key_R)
    assert stage.engine.last(m.Advance).steps > 1000


@pytest.mark.parametrize(
    "key", [Qt.Key.Key_Space, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_R, Qt.Key.Key_M]
)
def test_in_the_prompt_keys_are_text(stage: WindowStage, key: Qt.Key) -> None:
    before = stage.state.request
    press(stage, stage.window.prompt.edit, key)
    assert steps_asked(stage) == 0
    assert stage.state.request.causal_mask == before.causal_mask


def test_typing_in_the_prompt_writes(stage: WindowStage) -> None:
    edit = stage.window.prompt.edit
    edit.setFocus()
    edit.clear()
    QTest.keyClicks(edit, "a r m")
    assert edit.text() == "a r m"
    assert stage.state.request.prompt == "a r m"


def test_control_enter_steps_from_the_prompt(stage: WindowStage) -> None:
    press(stage, stage.window.prompt.edit, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert steps_asked(stage) == 1
    assert stage.window.prompt.edit.text() == "x y"


def test_escape_leaves_the_prompt_and_space_steps(stage: WindowStage) -> None:
    press(stage, stage.window.prompt.edit, Qt.Key.Key_Escape)
    focused = QApplication.focusWidget()
    assert focused is not stage.window.prompt.edit
    QTest.keyClick(focused or stage.window, Qt.Key.Key_Space)
    stage.drain()
    assert steps_asked(stage) == 1


def test_a_spin_box_keeps_its_keys(stage: WindowStage) -> None:
    pad = stage.window.topbar.findChild(QWidget, "pad")
    assert pad is not None
    stage.session.set_padding("left", 4)
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_Space):
        press(stage, pad, key)
    assert steps_asked(stage) == 0


def test_a_slider_keeps_arrows_but_not_space(stage: WindowStage) -> None:
    stage.ran(3)
    asked = steps_asked(stage)
    slider = stage.window.sequence.timeline.slider
    press(stage, slider, Qt.Key.Key_Left)
    assert stage.state.selection.step == 1
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 3
    assert steps_asked(stage) == asked
    for more in (0, 1):  # to the end of the run, then on
        press(stage, slider, Qt.Key.Key_Space)
        assert steps_asked(stage) == asked + more


def test_the_mouse_leaves_no_focus_on_a_switch(stage: WindowStage) -> None:
    switch = stage.window.topbar.mask_switch
    stage.window.setFocus()
    QTest.mouseClick(switch, Qt.MouseButton.LeftButton)
    assert not switch.hasFocus()


def test_space_on_a_focused_switch_switches_it(stage: WindowStage) -> None:
    switch = stage.window.topbar.cache_switch
    press(stage, switch, Qt.Key.Key_Space)
    assert not stage.state.request.cache
    assert steps_asked(stage) == 0


def test_in_the_bars_up_and_down_move_and_enter_forces(stage: WindowStage) -> None:
    stage.ran(1)
    panel = next(p for p in stage.window.docks.panels if p.ID == "next-token")
    bars = panel.views()["Next token"].widget
    press(stage, bars, Qt.Key.Key_Down)
    press(stage, bars, Qt.Key.Key_Down)
    wanted = stage.state.selection.token_id
    assert wanted is not None
    press(stage, bars, Qt.Key.Key_Return)
    assert stage.state.trace is not None
    assert stage.state.trace.chosen[-1].id == wanted
    assert stage.state.trace.chosen[-1].origin == "forced"


def test_enter_takes_what_is_chosen_in_an_open_list_each_time(stage: WindowStage) -> None:
    box = QComboBox(stage.window)
    box.addItems(["a", "b", "c"])
    box.show()
    for row in (1, 0, 2):
        box.setFocus()
        box.showPopup()
        stage.paint()
        view = box.view()
        view.setFocus()
        stage.paint()
        view.setCurrentIndex(box.model().index(row, 0))
        QTest.keyClick(view, Qt.Key.Key_Return)
        stage.paint()
        assert not view.isVisible()
        assert box.currentIndex() == row
