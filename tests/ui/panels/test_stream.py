"""The residual stream: what is read by itself, the parts that are offered, and what is said."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from explorer.trace.inside.stream import ReadStream
from explorer.trace.wire import messages as m
from explorer.ui.panels.stream.panel import StreamPanel
from tests.figures.inside.streams import facts
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage

LAST = len(PROMPT) - 1


def opened(stage: WindowStage) -> StreamPanel:
    panel = stage.window.docks.bring_up("stream")
    stage.paint()
    assert isinstance(panel, StreamPanel)
    return panel


def answered(stage: WindowStage) -> StreamPanel:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(ReadStream).run, facts=facts([LAST])))
    return panel


def said(panel: StreamPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def test_the_token_looked_at_is_read_and_says_how_it_grows(stage: WindowStage) -> None:
    panel = answered(stage)
    assert stage.engine.last(ReadStream).slots == (LAST,)
    assert stage.engine.count(ReadStream) == 1
    norms = f"norm {LAST + 1} → {100 * (LAST + 1)}"
    assert norms in said(panel)
    assert f"Longest write: L1 MLP {90 * (LAST + 1)}" in said(panel)
    assert "the largest gap is 2e-07 of the largest entry" in said(panel)


def test_the_board_is_of_the_stream_or_of_one_part(stage: WindowStage) -> None:
    panel = answered(stage)
    parts = [panel.part.itemText(place) for place in range(panel.part.count())]
    assert parts == ["stream", "attention", "MLP", "MLP 2"]
    assert list(panel.board.figure.rows) == ["embedding", "0", "final"]
    panel.choose({"part": "attention", "measure": "cosine"})
    figure = panel.board.figure
    assert (list(figure.rows), figure.signed) == (["0", "1"], True)
    cell = figure.cell(0, LAST)
    assert cell is not None
    assert (cell.text, round(cell.level, 3)) == ("+0.10", 0.1)
    assert figure.cell(1, LAST) is None  # this layer has no attention
    assert figure.cell(0, 0) is None  # not read yet
    assert "not read yet" in figure.words(0, 0)
    assert "After layer 0: norm" in figure.words(0, LAST)
    assert "layer 0 added attention" in figure.words(0, LAST)
    assert panel.choices() == {"page": "board", "part": "attention", "measure": "cosine"}
    place = panel.board.cell_rect((1, LAST)).center().toPoint()
    QTest.mouseClick(panel.board.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (stage.state.selection.layer, stage.state.selection.query) == (1, LAST)


def test_the_lines_are_those_of_the_token_looked_at(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.one_token.setChecked(True)
    stage.paint()
    norms, cosines = panel.charts.pair.first.drawn, panel.charts.pair.second.drawn
    assert norms is not None
    assert cosines is not None
    assert norms.legend == ("stream", "attention", "MLP", "MLP 2")
    assert cosines.series["stream"][1].tolist() == [-0.25, 0.5, 1.0]
    assert cosines.series["MLP"][0].tolist() == [1, 2]  # what a layer adds is there after it
    QTest.mouseClick(
        panel.charts.pair.first, Qt.MouseButton.LeftButton,
        pos=panel.charts.pair.first.point_of(2).toPoint(),
    )  # fmt: skip
    assert stage.state.selection.layer == 1


def test_the_whole_board_comes_in_parts(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.whole_button.click()
    asked = stage.engine.last(ReadStream)
    assert asked.slots == tuple(range(LAST))
    stage.say(m.PartFacts(run=asked.run, facts=facts([0])))
    assert f"2 of {len(PROMPT)} tokens so far" in said(panel)
    panel.stop_button.click()
    assert stage.engine.last(m.Cancel).run == asked.run
    assert panel.board.figure.cell(0, 0) is not None


def test_a_part_that_a_file_names_waits_until_it_is_known(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    panel.choose({"part": "mlp 2"})
    assert panel.choices()["part"] == "stream"
    stage.say(m.Facts(run=stage.engine.last(ReadStream).run, facts=facts([LAST])))
    assert panel.choices()["part"] == "mlp 2"


def test_where_no_sum_closes_the_reason_stands_in_its_place(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    run = stage.engine.last(ReadStream).run
    stage.say(m.Failed(run=run, sentence="No sum closes in this model."))
    assert panel.empty
    assert "No sum closes in this model." in said(panel)
