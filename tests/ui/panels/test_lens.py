"""The logit lens: what is read by itself, what on request, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.wire import messages as m
from explorer.ui.panels.lens.panel import LensPanel
from tests.figures.inside.boards import facts
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until
from tests.ui.window.test_real_model import Program

LAST = len(PROMPT) - 1


def opened(stage: WindowStage) -> LensPanel:
    panel = stage.window.docks.bring_up("lens")
    stage.paint()
    assert isinstance(panel, LensPanel)
    return panel


def words(panel: LensPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def known(panel: LensPanel) -> list[int]:
    figure = panel.board.figure
    return [c for c in range(len(figure.columns)) if figure.cell(0, c) is not None]


def test_nothing_is_read_while_the_panel_is_closed(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    assert stage.engine.count(ReadLens) == 0
    opened(stage)
    asked = stage.engine.last(ReadLens)
    assert (asked.slots, asked.chosen) == ((LAST + 1,), (10,))


def test_the_position_looked_at_is_read_by_itself_and_once(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([LAST])))
    assert stage.engine.count(ReadLens) == 1
    assert known(panel) == [LAST]
    assert f"Position {LAST} '\u2068p{LAST}\u2069': '\u2068␣a\u2069' 75.0 %" in words(panel)
    stage.session.select(query=0)
    stage.paint()
    assert stage.engine.last(ReadLens).slots == (0,)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([0])))
    assert known(panel) == [0, LAST]
    assert "It stays first from layer 0 on." in words(panel)
    stage.session.select(query=LAST)
    stage.paint()
    assert stage.engine.count(ReadLens) == 2


def test_the_whole_board_comes_in_parts_and_those_read_stay_when_it_is_stopped(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([LAST])))
    assert not panel.stop_button.isVisible()
    panel.whole_button.click()
    asked = stage.engine.last(ReadLens)
    assert asked.slots == tuple(range(LAST))
    stage.say(m.PartFacts(run=asked.run, facts=facts([0], asked=LAST)))
    assert known(panel) == [0, LAST]
    assert f"2 of {len(PROMPT)} tokens so far" in words(panel)
    panel.stop_button.click()
    assert stage.engine.last(m.Cancel).run == asked.run
    stage.paint()
    assert known(panel) == [0, LAST]
    assert not panel.stop_button.isVisible()


def test_a_click_goes_to_the_layer_and_the_token(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([LAST])))
    for row, layer in ((2, 1), (1, 0)):
        place = panel.board.cell_rect((row, LAST)).center().toPoint()
        QTest.mouseClick(panel.board.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert (stage.state.selection.layer, stage.state.selection.query) == (layer, LAST)
    panel.one_token.setChecked(True)
    stage.paint()
    chart = panel.charts.pair.first
    QTest.mouseClick(chart, Qt.MouseButton.LeftButton, pos=chart.point_of(2).toPoint())
    assert stage.state.selection.layer == 1


def test_a_cell_says_its_tokens_and_how_far_it_is_from_the_final_choice(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([LAST])))
    said = panel.board.figure.words(0, LAST)
    assert said.startswith(f"Embedding, position {LAST}")
    assert "↵ 75.0 %, ␣a 25.0 %; final choice ␣a: rank 2, 25.0 %" in said
    assert "entropy 1.39 nats, KL 2.08 nats" in said
    assert "not read yet" in panel.board.figure.words(0, 0)
    cells = [panel.board.figure.cell(row, LAST) for row in range(3)]
    assert [cell.marked for cell in cells if cell] == [False, True, True]
    before = [cell.level for cell in cells if cell]
    panel.choose({"colour": "kl", "page": "token"})
    after = [panel.board.figure.cell(row, LAST) for row in range(3)]
    assert [cell.level for cell in after if cell] != before
    assert panel.choices() == {"page": "token", "colour": "kl"}


def test_a_last_row_that_is_not_the_models_bit_for_bit_says_how_near_it_is(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    told = facts([LAST])
    told["final_gap"] = 3e-7
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=told))
    assert "differ from the model's own by 3e-07." in words(panel)


def test_the_lines_are_those_of_the_token_looked_at(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadLens).run, facts=facts([LAST])))
    panel.one_token.setChecked(True)
    stage.paint()
    first, second = panel.charts.pair.first.drawn, panel.charts.pair.second.drawn
    assert first is not None
    assert second is not None
    assert first.series["final choice"][1].tolist() == [0.25, 0.75, 0.75]
    assert second.series["KL to the final row"][1][-1] == 0
    rows = panel.views()["Probability by layer"].table
    assert rows is not None
    assert [row[0] for row in rows()][1:] == ["embedding", "0", "final"]


def test_where_it_is_not_offered_the_reason_stands_in_its_place(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    run = stage.engine.last(ReadLens).run
    stage.say(m.Failed(run=run, sentence="This model's layers can't be read."))
    assert panel.empty
    assert "This model's layers can't be read." in words(panel)
    assert stage.state.error == ""  # nobody asked
    assert stage.engine.count(ReadLens) == 1
    stage.session.select(query=0)
    stage.paint()
    assert stage.engine.count(ReadLens) == 1


def test_a_step_takes_the_engine_from_it(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.ran(1)
    assert stage.engine.count(ReadLens) == 2
    run = stage.engine.last(ReadLens).run
    stage.say(m.Facts(run=run, facts=facts([LAST + 1])))
    assert known(panel) == [LAST + 1]
    assert stage.state.measured_of(LensBoard) is not None


@pytest.mark.timeout(300)
def test_the_teaching_model_shows_its_whole_board(qapp: QApplication, tmp_path: Path) -> None:
    program = Program(qapp, tmp_path)
    try:
        program.read("copycat", "one two three one two")
        panel = program.window.docks.bring_up("lens")
        assert isinstance(panel, LensPanel)
        wait_until(lambda: bool(panel.board.figure.rows))
        last = len(panel.board.figure.columns) - 1
        assert known(panel) == [last]
        assert "␣three" in panel.board.figure.words(len(panel.board.figure.rows) - 1, last)
        panel.whole_button.click()
        wait_until(lambda: known(panel) == list(range(last + 1)))
    finally:
        program.close()
