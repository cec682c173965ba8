"""The block panel: what it asks for, what it shows of each stage, and where a click leads."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from explorer.figures.inside import block as figures
from explorer.trace.inside.walk import LayerWalk, WalkLayer
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.panels.block.panel import BlockPanel
from tests.figures.inside.walks import STAGES, facts, walk
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until
from tests.ui.window.test_real_model import Program

LAST = len(PROMPT) - 1
LEFT = Qt.MouseButton.LeftButton


def opened(stage: WindowStage) -> BlockPanel:
    panel = stage.window.docks.bring_up("block")
    stage.paint()
    assert isinstance(panel, BlockPanel)
    return panel


def answered(stage: WindowStage) -> BlockPanel:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(WalkLayer).run, facts=facts()))
    return panel


def words(panel: BlockPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def choose(stage: WindowStage, panel: BlockPanel, name: str) -> None:
    row = STAGES.index(name)
    panel.choose({"stage": name})
    stage.paint()
    assert panel.list.chosen == row


def test_it_asks_while_it_is_seen_for_the_layer_and_the_token_looked_at(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    assert stage.engine.count(WalkLayer) == 0
    panel = opened(stage)
    asked = stage.engine.last(WalkLayer)
    assert (asked.layer, asked.slot, asked.chosen) == (0, LAST, ())
    assert "Walking through the layer…" in words(panel)
    stage.say(m.Facts(run=asked.run, facts=facts()))
    assert stage.engine.count(WalkLayer) == 1
    assert "Layer 0 (attention), position 2 '\u2068p2\u2069': 13 stages" in words(panel)
    assert "Residual gap 3e-09. Added to the stream: o_proj (norm 12.9), x (norm 6.48)." in words(
        panel
    )
    stage.session.select(layer=1)
    stage.paint()
    assert panel.empty  # nothing of another layer is shown as this one's
    asked = stage.engine.last(WalkLayer)
    assert (asked.layer, asked.slot) == (1, LAST)
    stage.say(m.Facts(run=asked.run, facts=facts(layer=1)))
    assert "Layer 1 (attention)" in words(panel)
    stage.session.select(layer=1, head=1)
    stage.paint()
    assert stage.engine.count(WalkLayer) == 2


def test_an_answer_that_was_cancelled_is_not_waited_for(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.session.cancel()
    stage.say(m.Finished(run=stage.engine.last(WalkLayer).run, reason="cancelled"))
    assert "This layer was not read." in words(panel)
    stage.session.select(layer=1)
    stage.paint()
    assert stage.engine.count(WalkLayer) == 2


def test_where_it_is_not_offered_the_reason_stands_in_its_place(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    run = stage.engine.last(WalkLayer).run
    stage.say(m.Failed(run=run, sentence="This model's layers pass no stream on."))
    assert panel.empty
    assert "This model's layers pass no stream on." in words(panel)
    assert stage.state.error == ""  # nobody asked
    assert stage.engine.count(WalkLayer) == 1


def test_stages_are_chosen_with_mouse_and_keys_and_read_aloud(stage: WindowStage) -> None:
    panel = answered(stage)
    rows = panel.list.rows
    assert [row.title for row in rows][:5] == [
        "Stream", "Input norm", "Query (Q)", "Q after RoPE", "Scores",
    ]  # fmt: skip
    place = panel.list.rect_of(1).center().toPoint()
    QTest.mouseClick(panel.list.viewport(), LEFT, pos=place)
    assert panel.stage is not None
    assert panel.stage.name == "input norm"
    assert "x / √(mean(x²) + ε) · w" in words(panel)
    assert "Recomputed from the stage before: off by 4e-08." in words(panel)
    panel.list.setFocus()
    QTest.keyClick(panel.list, Qt.Key.Key_Down)
    assert panel.stage.name == "Q"
    assert line_of(panel.list).startswith("Query (Q): W · x. Shape 8, norm")
    QTest.keyClick(panel.list, Qt.Key.Key_End)
    assert panel.stage.name == "residual stream after"
    terms = dict(panel.list.painted_terms())
    assert {"query", "rope", "norm", "residual-stream"} <= terms.keys()
    assert panel.list.tip_at(QPoint(40, 4)).startswith("Stream")


def test_the_chosen_stage_stays_chosen_in_another_layer(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "softmax")
    stage.session.select(layer=1)
    stage.paint()
    stage.say(m.Facts(run=stage.engine.last(WalkLayer).run, facts=facts(layer=1)))
    assert panel.stage is not None
    assert panel.stage.name == "softmax"
    assert panel.choices()["stage"] == "softmax"


def test_a_module_that_hides_its_steps_is_named_as_such(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "experts")
    assert "Hidden inside a fused module: only its output is known." in words(panel)


def test_a_score_is_shown_product_by_product_down_to_the_weight_on_the_map(
    stage: WindowStage,
) -> None:
    panel = answered(stage)
    choose(stage, panel, "scores")
    trace = stage.state.trace
    assert trace is not None
    board = panel.details.board
    place = board.cell_rect((0, 1)).center().toPoint()  # the lowest row: head 1
    QTest.mouseClick(board.viewport(), LEFT, pos=place)
    stage.paint()
    assert stage.state.selection.head == 1
    terms = panel.details.shown_terms
    own = figures.score_terms(trace, 0, 0, 1, LAST, 1)
    assert terms is not None
    assert own is not None
    assert (terms.head, terms.key) == (1, 1)
    assert terms.products.tolist() == own.products.tolist()
    said = panel.details.score.text()
    assert said.startswith("Head 1, key '\u2068p1\u2069': Σ q·k ")
    assert f"× 0.5 = {own.score:.5g} (off by " in said
    assert panel.details.terms.figure.rows == ("q · k", "k", "q")
    stage.session.select(key=0)  # as the mouse over a token does
    stage.paint()
    terms = panel.details.shown_terms
    assert terms is not None
    assert terms.key == 0
    assert "Products of a score" in panel.views()


def test_rope_shows_its_pairs_and_on_request_its_numbers(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "Q after RoPE")
    dials = panel.details.dials
    assert dials.isVisible()
    assert len(dials.pairs) == 2
    said = dials.words_of(0)
    assert said.startswith("Pair 0 (numbers 0 and 2) turned by position 2 × 14.32° = 28.648°")
    dials.setFocus()
    QTest.keyClick(dials, Qt.Key.Key_Right)
    assert line_of(dials) == said
    before = dials.pairs
    stage.session.select(head=1)
    stage.paint()
    assert dials.pairs != before
    panel.details.numbers.setChecked(True)
    assert panel.details.board.isVisible()
    assert panel.details.board.figure.rows == ["H1", "H0"]
    panel.choose({"numbers": 0.0})
    assert dials.isVisible()


def test_the_router_shows_who_was_chosen_and_the_load(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "router")
    charts = panel.details.experts
    assert charts.isVisible()
    stage.paint()
    router, load = charts.router.drawn, charts.load.drawn
    assert router is not None
    assert load is not None
    assert router.series["chosen"][1].tolist() == [0.25, 2.0]
    assert load.series["not chosen"][1].tolist() == [1.0]
    assert "Experts of this token, with weights: 2 (0.75), 0 (0.25)." in words(panel)


def test_a_state_is_shown_head_by_head(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "state: kept")
    assert "The matrix of head 0." in words(panel)
    assert len(panel.details.board.figure.rows) == 3
    assert panel.list.rows[STAGES.index("state: kept")].title == "State (kept)"


def test_the_tables_are_the_figures_of_the_walk(stage: WindowStage) -> None:
    panel = answered(stage)
    choose(stage, panel, "W_O")
    views = panel.views()
    table = views["Stages of the block"].table
    assert table is not None
    assert list(table()) == list(figures.stage_table(walk()))
    numbers = views["Numbers of the stage"].table
    assert numbers is not None
    assert len(list(numbers())) == 9


def test_numbers_too_many_to_send_are_not_made_up(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    told = facts()
    first = {**told["stages"][0], "data": b"", "shape": [1 << 21]}
    told["stages"] = (first, *told["stages"][1:])
    stage.say(m.Facts(run=stage.engine.last(WalkLayer).run, facts=told))
    assert "Too many numbers to show." in words(panel)
    assert not len(panel.list.rows[0].strip)


@pytest.mark.timeout(300)
def test_the_teaching_model_is_walked_through(qapp: QApplication, tmp_path: Path) -> None:
    program = Program(qapp, tmp_path)
    try:
        program.read("copycat", "one two three one two")
        program.session.select(layer=1)
        panel = program.window.docks.bring_up("block")
        assert isinstance(panel, BlockPanel)
        wait_until(lambda: not panel.empty)
        state = program.session.state
        found = state.result(LayerWalk)
        assert found is not None
        assert msgspec.to_builtins(panel.walk) == msgspec.to_builtins(found)
        assert (found.layer, found.residual_gap is not None) == (1, True)
        assert len(panel.list.rows) == 22
        panel.choose({"stage": "softmax"})
        terms = panel.details.shown_terms
        assert terms is not None
        assert terms.key == 2  # copycat copies: "two" was followed by "three"
        assert terms.weight > 0.5
    finally:
        program.close()
