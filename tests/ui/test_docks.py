"""The panels' docks: what stands at the start, and what is made only when it is seen."""

from __future__ import annotations

from explorer.session.state import State
from explorer.trace import messages as m
from explorer.ui.panels import PANELS
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
