"""The panels' docks: what stands at the start, and what is made only when it is seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QCursor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.session.state import State
from explorer.trace.wire import messages as m
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.panel_dock import PanelDock
from explorer.ui.panels import PANELS
from explorer.ui.settings.settings import Settings
from explorer.ui.window import Window
from tests.session.scripted import Stage, stepped
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until


def test_a_panel_behind_a_tab_is_made_when_it_is_first_seen(stage: WindowStage) -> None:
    docks = stage.window.docks.docks
    assert [dock.made for dock in docks] == [not dock.place.beside for dock in docks]
    stage.loaded().ran(1)
    (hidden,) = (dock for dock in docks if dock.place.id == "sampling")
    assert not hidden.made
    stage.window.look.set_theme("dark")
    hidden.toggleViewAction().trigger()
    stage.paint()
    assert hidden.made
    assert not hidden.panel.empty  # it shows what went on before there was one
    assert hidden.panel.theme.name == "dark"
    assert [dock.place.id for dock in docks if dock.place.beside and dock.made] == ["sampling"]


def test_a_dock_knows_its_panel_before_there_is_one() -> None:
    for place in PANELS:
        kind = place.load()
        known = (place.id, place.kind, place.title, place.beside)
        assert known == (kind.ID, kind.__name__, kind.TITLE, kind.BESIDE)


def test_a_panel_that_waits_for_its_turn_is_not_drawn_by_the_check_that_follows(
    stage: WindowStage,
) -> None:
    """A run's end and its self-check come in one go: all panels in it would hold the mouse up."""
    stage.loaded()
    stage.session.step()
    run = stage.prompted()
    (dock,) = (dock for dock in stage.window.docks.docks if dock.place.id == "timings")
    drawn: list[str] = []
    show = dock.panel.show_state

    def noted(old: State | None, new: State) -> None:
        drawn.append(new.status.activity)
        show(old, new)

    dock.panel.show_state = noted  # type: ignore[method-assign]
    Stage.say(stage, stepped(run, 0), m.Finished(run=run, reason="steps"))
    assert stage.session.state.status.activity == "checking"
    assert drawn == []
    stage.until_settled()
    wait_until(lambda: "checking" in drawn)


def places(docks: Docks) -> dict[str, QRect]:
    return {dock.place.id: dock.geometry() for dock in docks.docks if dock.in_front}


def by_button(dock: PanelDock) -> None:
    QTest.mouseClick(dock._enlarge, Qt.MouseButton.LeftButton)


def by_header(dock: PanelDock) -> None:
    QTest.mouseDClick(dock.panel.header, Qt.MouseButton.LeftButton, pos=QPoint(90, 5))


@pytest.mark.parametrize("ask", [by_button, by_header])
def test_a_panel_takes_the_place_of_all_and_gives_it_back(
    stage: WindowStage, ask: Callable[[PanelDock], None]
) -> None:
    docks = stage.window.docks
    before = places(docks)
    (dock,) = (dock for dock in docks.docks if dock.place.id == "kv-cache")
    ask(dock)
    stage.paint()
    assert places(docks) == {"kv-cache": docks.rect()}
    ask(dock)
    stage.paint()
    assert places(docks) == before
    assert not dock.isFloating()


def test_what_is_remembered_is_the_layout_without_the_enlarging(stage: WindowStage) -> None:
    docks = stage.window.docks
    before, state = places(docks), docks.layout_state()
    docks.enlarge(docks.docks[3])
    stage.paint()
    assert docks.layout_state() == state
    docks.restore_layout(docks.layout_state())  # as the next start does
    stage.paint()
    assert places(docks) == before


def test_a_panel_that_is_asked_for_is_not_hidden_behind_an_enlarged_one(
    stage: WindowStage,
) -> None:
    docks = stage.window.docks
    docks.enlarge(docks.docks[3])
    docks.bring_up("attention")
    stage.paint()
    assert list(places(docks)) == ["attention"]
    (sampling,) = (dock for dock in docks.docks if dock.place.id == "sampling")
    sampling.toggleViewAction().trigger()  # from the menu: beside the others
    assert docks.enlarged is None
    seen = ["next-token", "kv-cache", "timings", "sampling"]
    wait_until(lambda: list(places(docks)) == seen)


def test_the_panel_at_hand_is_the_one_used_last_wherever_the_mouse_rests(
    stage: WindowStage,
) -> None:
    docks = stage.loaded().ran(1).window.docks
    stage.until_settled()
    by_name = {dock.place.id: dock for dock in docks.docks}
    under = by_name["timings"].panel
    QCursor.setPos(under.mapToGlobal(under.rect().center()))
    stage.window.prompt.edit.setFocus()
    stage.paint()
    assert docks.at_hand() is by_name["attention"], "nothing was used yet"
    stage.window.actions_table.by_id["export-view"].trigger()
    menu = QApplication.activePopupWidget()
    assert menu is not None
    assert menu.parent() is by_name["attention"].panel
    menu.close()
    next(iter(by_name["kv-cache"].panel.views().values())).widget.setFocus()
    stage.window.prompt.edit.setFocus()
    assert docks.at_hand() is by_name["kv-cache"], "had the focus last"
    QTest.mouseClick(by_name["next-token"].panel.header, Qt.MouseButton.LeftButton)
    assert docks.at_hand() is by_name["next-token"], "was clicked"
    by_name["padding"].toggleViewAction().trigger()
    stage.window.prompt.edit.setFocus()
    assert docks.at_hand() is by_name["padding"], "was just opened"
    by_name["attention"].raise_()
    wait_until(lambda: by_name["attention"].in_front)
    assert docks.at_hand() is by_name["attention"], "took its place"


def test_a_panel_taken_out_comes_back_in_front_of_its_window(
    stage: WindowStage, tmp_path: Path
) -> None:
    (dock,) = (dock for dock in stage.window.docks.docks if dock.place.id == "timings")
    dock.setFloating(True)
    stage.paint()
    stage.window.close_at_once()
    later = Window(stage.session, stage.look, Settings(tmp_path / "settings.ini"))
    (dock,) = (dock for dock in later.docks.docks if dock.place.id == "timings")
    assert dock.isFloating()
    # What is on screen before its window stays behind it.
    assert not dock.isVisible()
    later.show()
    wait_until(dock.isVisible)
    assert dock.isFloating()
    later.close_at_once()
    later.deleteLater()
