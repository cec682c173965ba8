"""Menus by the keyboard: a letter for each row, Escape out of what fills the window, F10."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMenu

from explorer.ui.access.mnemonics import marked
from tests.ui.stage import WindowStage


@pytest.fixture
def stage(stage: WindowStage) -> WindowStage:
    stage.loaded("x y")
    return stage


def test_each_row_has_a_letter_that_no_other_has() -> None:
    assert marked(["Run", "Reset", "Redo\tCtrl+Y", "R&&D"]) == [
        "R&un", "R&eset", "Re&do\tCtrl+Y", "&R&&D",
    ]  # fmt: skip
    assert marked(["ab", "a", "b c"]) == ["a&b", "&a", "b &c"], "one gives way to another"
    assert marked(["Step back", "Step"]) == ["&Step back", "S&tep"]


def test_every_menu_of_the_window_can_be_walked_by_letters(stage: WindowStage) -> None:
    stage.ran(1)
    menus = [menu for menu in stage.window.findChildren(QMenu) if menu.actions()]
    assert len(menus) >= 9
    for menu in menus:
        menu.aboutToShow.emit()
        rows = [row.text() for row in menu.actions() if row.text() and row.isVisible()]
        letters = [row.replace("&&", "").partition("&")[2][:1].lower() for row in rows]
        assert all(letters), (menu.title(), rows)
        assert len(set(letters)) == len(letters), (menu.title(), rows)
    assert stage.window.topbar.mask_switch.text() == "Causal mask", "no mark beside the menus"


def test_f10_takes_the_panel_with_the_focus_not_the_one_under_the_mouse(
    stage: WindowStage,
) -> None:
    stage.ran(1)
    under, focused = stage.window.docks.docks[:2]
    QCursor.setPos(under.mapToGlobal(under.rect().center()))
    focused.panel.views()["Next token"].widget.setFocus()
    stage.paint()
    QTest.keyClick(stage.window, Qt.Key.Key_F10)
    assert stage.window.docks.enlarged is focused


def test_escape_leaves_presenter_mode_then_what_was_enlarged_before(stage: WindowStage) -> None:
    stage.ran(1)
    stage.window.docks.enlarge(stage.window.docks.docks[0])
    stage.window.presenter.toggle()
    stage.paint()
    widget = stage.window.docks.docks[0].panel.pages.maps.maps[0]  # type: ignore[attr-defined]
    widget.setFocus()
    QTest.keyClick(widget, Qt.Key.Key_Escape)
    assert not stage.window.look.presenting
    assert stage.window.docks.enlarged is stage.window.docks.docks[0]
    QTest.keyClick(widget, Qt.Key.Key_Escape)
    assert stage.window.docks.enlarged is None


def test_escape_belongs_to_the_innermost_first(stage: WindowStage) -> None:
    stage.ran(1)
    panel = stage.window.docks.docks[0].panel
    stage.window.docks.enlarge(stage.window.docks.docks[0])
    panel.begin_go_to()  # type: ignore[attr-defined]
    box = panel.heads.go_to  # type: ignore[attr-defined]
    stage.paint()
    QTest.keyClick(box.query, Qt.Key.Key_Escape)
    assert not box.isVisible()
    assert stage.window.docks.enlarged is not None
