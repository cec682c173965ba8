"""What a screen reader is told: names that change, purposes of lists, and each thing once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QAccessibleEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QLabel, QWidget

from explorer.trace.wire import messages as m
from explorer.ui.access import accessible
from explorer.ui.access.accessible import line_of
from explorer.ui.access.shortcut_guard import KEEPS_ARROWS
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until


@pytest.fixture
def stage(stage: WindowStage) -> WindowStage:
    stage.loaded("x y")
    return stage


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every announcement from now on, as if a screen reader were there."""
    said: list[str] = []

    def hear(event: QAccessibleEvent) -> None:
        assert isinstance(event, QAccessibleAnnouncementEvent)
        said.append(event.message())

    monkeypatch.setattr(accessible, "_send", hear)
    QAccessible.setActive(True)
    yield said
    QAccessible.setActive(False)


def name_of(widget: QWidget) -> str:
    return QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)


def test_every_list_has_a_label_that_says_what_it_is_for(stage: WindowStage) -> None:
    assert stage.window.docks.panels
    lists = stage.window.findChildren(QComboBox)
    assert len(lists) >= 11
    for box in lists:
        siblings = box.parentWidget().findChildren(QLabel)
        labels = [label.text() for label in siblings if label.buddy() is box]
        assert len(labels) == 1, box.accessibleName()
        assert labels[0].strip()


def named_by_what_they_show(stage: WindowStage) -> None:
    for button in stage.window.findChildren(QAbstractButton):
        text = button.text().replace("&", "")
        if text[:1].isalpha() and not button.isHidden():
            assert text in name_of(button), (text, name_of(button))


def test_controls_that_change_are_named_by_what_they_are_now(stage: WindowStage) -> None:
    named_by_what_they_show(stage)
    stage.session.run()
    stage.drain()
    stage.paint()
    named_by_what_they_show(stage)
    names = [name_of(b) for b in stage.window.topbar.findChildren(QAbstractButton)]
    assert "Pause" in names
    assert "Run" not in names
    stage.window.presenter.toggle()
    stage.paint()
    names = [name_of(b) for b in stage.window.topbar.findChildren(QAbstractButton)]
    assert "Leave (F11)" in names
    assert "Presenter mode" not in names
    stage.window.presenter.toggle()


def test_labels_are_read_with_what_they_say(stage: WindowStage) -> None:
    stage.ran(1)
    assert stage.window.docks.panels
    stage.until_settled()
    readout = stage.window.docks.docks[0].panel.readout  # type: ignore[attr-defined]
    assert "attends" in name_of(readout)
    for label in stage.window.findChildren(QLabel):
        if label.text() and label.textFormat() == Qt.TextFormat.PlainText:
            assert label.text() in name_of(label).replace("&", ""), label.text()


def test_what_happens_is_announced(stage: WindowStage, told: list[str]) -> None:
    stage.session.run()
    stage.drain()
    assert told == ["Running…"]
    stage.prompted()
    stage.steps(2)
    assert told == ["Running…"], "not each step"
    stage.finish("length")
    assert told[-1] == "Stopped: token limit reached"
    del told[:]
    stage.window.notices.error.say("No such file.")
    stage.window.notices.error.say("No such file.")
    assert told == ["No such file."]
    stage.say(m.Lost(sentence="The engine stopped unexpectedly."))
    assert told[-1].startswith("The engine stopped unexpectedly.")


def test_a_step_is_announced_by_its_token(stage: WindowStage, told: list[str]) -> None:
    stage.ran(1)
    assert told[-1].startswith("Token 1: ")


def test_each_move_of_a_cursor_is_told_once(stage: WindowStage, told: list[str]) -> None:
    stage.ran(2)
    stage.until_settled()
    del told[:]
    shown = stage.window.docks.docks[0].panel.pages.maps.maps[0]  # type: ignore[attr-defined]
    shown.setFocus()
    for key in (Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Left):
        QTest.keyClick(shown, key)
    assert len(told) == len(set(told)) == 3
    assert told[-1] == line_of(shown)


def test_whatever_takes_the_arrows_says_something_before_the_first_key(
    stage: WindowStage,
) -> None:
    stage.ran(2)
    stage.until_settled()
    seen = [
        widget
        for widget in stage.window.findChildren(QWidget)
        if widget.property(KEEPS_ARROWS) and widget.isVisible()
    ]
    assert len(seen) >= 6
    for widget in seen:
        face = QAccessible.queryAccessibleInterface(widget)
        assert face.text(QAccessible.Text.Name), widget
        assert face.text(QAccessible.Text.Description), face.text(QAccessible.Text.Name)


def test_the_mouse_leaves_no_focus_on_lists_and_buttons(stage: WindowStage) -> None:
    assert stage.window.docks.panels
    click = Qt.FocusPolicy.ClickFocus
    kinds = (*stage.window.findChildren(QAbstractButton), *stage.window.findChildren(QComboBox))
    left = [w.accessibleName() or name_of(w) for w in kinds if w.focusPolicy() & click == click]
    assert not left


def test_space_steps_after_a_choice_by_the_mouse(stage: WindowStage) -> None:
    stage.ran(1)
    stage.window.setFocus()
    asked = stage.engine.count(m.Advance)
    box = stage.window.docks.docks[0].panel.tools.view  # type: ignore[attr-defined]
    QTest.mouseClick(box, Qt.MouseButton.LeftButton)
    stage.paint()
    view = box.view()
    place = view.visualRect(box.model().index(1, 0)).center()

    def chosen() -> bool:  # a list that has just opened takes no click yet
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)
        return bool(box.currentIndex() == 1)

    wait_until(chosen)
    stage.paint()
    assert not box.hasFocus()
    QTest.keyClick(QApplication.focusWidget() or stage.window, Qt.Key.Key_Space)
    stage.drain()
    assert stage.engine.count(m.Advance) == asked + 1
