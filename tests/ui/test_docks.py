"""The panels' docks: what stands at the start, and what is made only when it is seen."""

from __future__ import annotations

from explorer.ui.panels import PANELS
from tests.ui.stage import WindowStage


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
