"""A mask is drawn on the map: by mouse and keys, marked before and after a run, taken back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from explorer.figures.attention.strokes import CUT_NEXT, CUT_NOW, RESTORED_NEXT, Cell, MaskBrush
from explorer.trace.card import Capability
from explorer.trace.interventions.kinds import written
from explorer.trace.wire import messages as m
from explorer.ui.canvases.maps.heatmap import Heatmap
from explorer.ui.panels.attention.drawing import draw_mask
from explorer.ui.panels.attention.panel import AttentionPanel
from tests.ui import pointer
from tests.ui.stage import WindowStage

LEFT = Qt.MouseButton.LeftButton
SHIFT = Qt.KeyboardModifier.ShiftModifier
ABLE = tuple(
    Capability(name=name, offered=True, words="it can")
    for name in ("silence_heads", "cut_cells", "scale_scores")
)


@pytest.fixture
def drawing(stage: WindowStage) -> WindowStage:
    """With a run of three tokens, and the tool on."""
    stage.loaded().ran(1)
    stage.session.open_model("tiny")
    stage.answer_load(capabilities=ABLE)
    stage.session.select(layer=1, head=0)
    stage.window.actions_table.by_id["draw-mask"].trigger()
    stage.until_settled()
    return stage


def panel_of(stage: WindowStage) -> AttentionPanel:
    return next(p for p in stage.window.docks.panels if isinstance(p, AttentionPanel))


def map_of(stage: WindowStage) -> Heatmap:
    return panel_of(stage).pages.maps.maps[0]


def drag(stage: WindowStage, path: Sequence[Cell], drop: bool = True) -> None:
    one = map_of(stage)
    places = [one.cell_rect(*cell).center().toPoint() for cell in path]
    QTest.mousePress(one, LEFT, pos=places[0])
    for place in places[1:]:
        pointer.move(one, place, LEFT)
    if drop:
        QTest.mouseRelease(one, LEFT, pos=places[-1])


def lines(stage: WindowStage) -> list[str]:
    return written(stage.state.request.interventions)


def test_a_stroke_is_marked_while_it_is_drawn_and_is_in_the_next_request(
    drawing: WindowStage,
) -> None:
    panel = panel_of(drawing)
    assert panel.drawing.bar.isVisible()
    assert panel.tools.draw.isChecked()
    drag(drawing, [(1, 0), (2, 1)], drop=False)
    mask = map_of(drawing).drawn_mask
    assert mask is not None
    assert mask.state(2, 1) == CUT_NEXT
    assert lines(drawing) == []
    assert "L1 H0: 1 → 0 cut" in panel.drawing.bar.line
    drag(drawing, [(1, 0), (2, 1)])
    assert lines(drawing) == ["cut 1.0:1<-0", "cut 1.0:2<-1"]
    assert map_of(drawing).view.fitted  # it was not dragged
    panel.drawing.bar.choose(MaskBrush("cut", "columns", "all"))
    drag(drawing, [(2, 0)])
    assert lines(drawing) == ["cut 1.0:2<-1", "cut *.*:*<-0"]
    said = panel.drawing.bar.line
    assert "still to come" in said
    assert "Query 0 has no key left" in said
    panel.drawing.bar.choose(MaskBrush("allow", "rectangle", "layer"))
    drag(drawing, [(0, 1), (0, 2)])
    assert lines(drawing)[-1] == "allow 1.*:0<-1-2"
    assert "KV cache is off" in panel.drawing.bar.line
    chips = [chip.text() for chip in drawing.window.interventions.chips]
    assert chips[-1] == "L1: 0 → 1–2 allowed ✕"
    drawing.session.step()
    assert written(drawing.engine.last(m.Advance).request.interventions) == lines(drawing)


def test_strokes_are_undone_one_by_one_and_restored_cells_are_gone(drawing: WindowStage) -> None:
    bar = panel_of(drawing).drawing.bar
    drag(drawing, [(2, 0)])
    drag(drawing, [(2, 1)])
    drawing.session.undo()
    assert lines(drawing) == ["cut 1.0:2<-0"]
    drawing.session.redo()
    bar.choose(MaskBrush("restore", "rows", "head"))
    drag(drawing, [(2, 2)])
    assert lines(drawing) == []
    drawing.session.undo()
    assert lines(drawing) == ["cut 1.0:2<-0", "cut 1.0:2<-1"]


def test_marks_tell_what_the_run_has_from_what_the_next_one_will(drawing: WindowStage) -> None:
    drag(drawing, [(2, 0)])
    drawing.session.step()
    drawing.prompted()
    drawing.steps(1)
    drawing.finish()
    panel = panel_of(drawing)
    mask = map_of(drawing).drawn_mask
    assert panel.drawing.on  # a new run does not end it
    assert map_of(drawing).current is None  # while there was none, its map was not to be seen
    assert mask is not None
    assert mask.state(2, 0) == CUT_NOW
    drawing.window.interventions.chips[0].click()
    mask = map_of(drawing).drawn_mask
    assert mask is not None
    assert mask.state(2, 0) == RESTORED_NEXT
    map_of(drawing).go_to(2, 0)
    assert panel.readout.text().startswith("restored from the next run on")
    drawing.session.select(layer=0)
    mask = map_of(drawing).drawn_mask
    assert mask is not None
    assert mask.empty


def test_all_of_it_by_keys(drawing: WindowStage) -> None:
    one = map_of(drawing)
    one.setFocus()
    one.go_to(2, 0)
    QTest.keyClick(one, Qt.Key.Key_Return)
    assert lines(drawing) == ["cut 1.0:2<-0"]
    QTest.keyClick(one, Qt.Key.Key_Right, SHIFT)
    QTest.keyClick(one, Qt.Key.Key_Up, SHIFT)
    assert one.current == (1, 1)
    assert panel_of(drawing).drawing.pencil.path == ((2, 0), (2, 1), (1, 1))
    QTest.keyClick(one, Qt.Key.Key_Escape)
    assert panel_of(drawing).drawing.pencil.path == ()
    assert panel_of(drawing).drawing.on
    QTest.keyClick(one, Qt.Key.Key_Down, SHIFT)
    QTest.keyClick(one, Qt.Key.Key_Enter)
    assert lines(drawing) == ["cut 1.0:2<-0", "cut 1.0:1-2<-1"]
    QTest.keyClick(one, Qt.Key.Key_Escape)
    assert not panel_of(drawing).drawing.on
    assert not panel_of(drawing).drawing.bar.isVisible()
    QTest.keyClick(one, Qt.Key.Key_Return)  # picks a cell again
    assert len(lines(drawing)) == 2


def test_what_can_not_be_drawn_is_said(
    drawing: WindowStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    bar = panel_of(drawing).drawing.bar
    bar.choose(MaskBrush("cut", "diagonals", "head"))
    drag(drawing, [(0, 1), (0, 2)])
    assert lines(drawing) == []
    assert "No diagonal" in bar.line
    monkeypatch.setattr(draw_mask, "MOST_TOGETHER", 1)
    bar.choose(MaskBrush())
    drag(drawing, [(1, 0), (2, 1)])
    assert lines(drawing) == []
    assert "too many" in bar.line


def test_it_ends_where_no_single_head_is_drawn_and_is_not_offered_without_the_ability(
    drawing: WindowStage,
) -> None:
    panel = panel_of(drawing)
    panel.tools.figure.setCurrentIndex(panel.tools.figure.findData("mean_heads"))
    assert not panel.drawing.on
    assert map_of(drawing).drawn_mask is None
    drawing.window.actions_table.by_id["draw-mask"].trigger()
    assert panel.drawing.on
    assert panel.tools.chosen_figure == "head"
    drawing.session.open_model("tiny")
    drawing.answer_load(capabilities=(Capability(name="cut_cells", offered=False, words="no"),))
    assert not panel.drawing.on
    assert not panel.tools.draw.isEnabled()
    assert "no" in panel.tools.draw.toolTip()
    assert not drawing.window.actions_table.by_id["draw-mask"].isEnabled()
