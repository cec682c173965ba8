"""Attribution: what is asked, the map, the sums by layer, and the words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from explorer.trace.inside.attribution import Attribute
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages as m
from explorer.ui.panels.attention.panel import AttentionPanel
from explorer.ui.panels.attribution.panel import AttributionPanel
from tests.figures.inside.sums import facts
from tests.session.scripted import PROMPT
from tests.ui.stage import WindowStage
from tests.ui.waiting import wait_until

LAST = len(PROMPT) - 1


def opened(stage: WindowStage) -> AttributionPanel:
    panel = stage.window.docks.bring_up("attribution")
    stage.paint()
    assert isinstance(panel, AttributionPanel)
    return panel


def answered(stage: WindowStage) -> AttributionPanel:
    stage.loaded().ran(1)
    panel = opened(stage)
    stage.say(m.Facts(run=stage.engine.last(Attribute).run, facts=facts(LAST)))
    return panel


def words(panel: AttributionPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def test_it_asks_when_it_is_seen_and_says_what_matters_most(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    assert stage.engine.count(Attribute) == 0
    panel = opened(stage)
    asked = stage.engine.last(Attribute)
    assert (asked.slot, asked.token, asked.against) == (LAST, 10, None)
    stage.say(m.Facts(run=asked.run, facts=facts(LAST)))
    assert stage.engine.count(Attribute) == 1
    assert "Logit of '\u2068␣a\u2069': 4. Most: L0 H1 -4, L1 H0 +3, L0 MLP +2" in words(panel)
    assert "The 8 parts add up to 4; the gap to the logit is 0." in words(panel)


def test_the_map_is_signed_and_a_click_goes_to_the_head(stage: WindowStage) -> None:
    panel = answered(stage)
    figure = panel.board.figure
    assert (list(figure.rows), list(figure.columns)) == (["0", "1"], ["H0", "H1", "MLP"])
    cell = figure.cell(0, 1)
    assert cell is not None
    assert (cell.text, cell.level) == ("-4.00", -1)
    assert figure.cell(1, 1) is None
    assert "has none" in figure.words(1, 1)
    place = panel.board.cell_rect((1, 0)).center().toPoint()
    QTest.mouseClick(panel.board.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (stage.state.selection.layer, stage.state.selection.head) == (1, 0)


def test_the_sums_by_layer_stand_between_the_embedding_and_the_bias(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.choose({"page": "layers"})
    stage.paint()
    drawn = panel.chart.drawn
    assert drawn is not None
    assert drawn.series["attention"][1].tolist() == [-3.0, 3.0]
    assert drawn.series["MLP"][1].tolist() == [2.0, 1.5]
    assert panel.choices() == {"page": "layers"}
    rows = panel.views()["Attribution by layer"].table
    assert rows is not None
    assert list(rows())[-1] == ("sum", "", "", pytest.approx(4.0))


def test_the_ranking_has_the_largest_parts_first_whatever_their_sign(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.choose({"page": "ranking"})
    stage.paint()
    ranking = panel.ranking
    assert not panel.board.isVisible()
    assert [(row.name, row.figure) for row in ranking.rows[:3]] == [
        ("L0 H1", "-4"), ("L1 H0", "+3"), ("L0 MLP", "+2"),
    ]  # fmt: skip
    assert len(ranking.rows) == 8
    less, more = ranking.bar_rect(0), ranking.bar_rect(1)
    assert less.right() == more.left()  # both from the line of zero
    assert less.width() / more.width() == pytest.approx(4 / 3)
    image = ranking.viewport().grab().toImage()
    colours = [image.pixelColor(rect.center().toPoint()) for rect in (less, more)]
    assert colours[0].blue() > colours[0].red()
    assert colours[1].red() > colours[1].blue()
    place = ranking.row_rect(1).center().toPoint()
    QTest.mouseClick(ranking.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert (stage.state.selection.layer, stage.state.selection.head) == (1, 0)
    assert [row.name for row in ranking.rows if row.selected] == ["L1 H0"]
    ranking.setFocus()
    for key in (Qt.Key.Key_Home, Qt.Key.Key_Return):
        QTest.keyClick(ranking, key)
    assert (stage.state.selection.layer, stage.state.selection.head) == (0, 1)
    assert panel.choices() == {"page": "ranking"}
    rows = panel.views()["Attribution, ranked"].table
    assert rows is not None
    assert list(rows())[1] == ("head", 0, 1, -4.0)


def test_the_ranking_stands_beside_the_map_where_there_is_room(stage: WindowStage) -> None:
    panel = answered(stage)
    for width, beside in ((800, True), (400, False)):
        panel.resize(width, panel.height())
        assert (panel.board.isVisible(), panel.ranking.isVisible()) == (True, beside)


def test_the_difference_of_two_tokens_is_asked_for(stage: WindowStage) -> None:
    panel = answered(stage)
    assert panel.against.count() > 2
    panel.against.setCurrentIndex(2)
    stage.paint()
    asked = stage.engine.last(Attribute)
    assert asked.against == panel.against.itemData(2)
    assert asked.token == 10
    assert "Taking the logit apart…" in words(panel)
    assert not panel.empty, "the lists stay, to choose from"
    assert not panel.ranking.rows
    stage.say(m.Facts(run=asked.run, facts=facts(LAST)))  # of one token alone: no answer to this
    assert not panel.ranking.rows
    panel.against.setCurrentIndex(0)
    stage.paint()
    assert "Logit of '\u2068␣a\u2069': 4" in words(panel), "it is known already"
    panel.token.setCurrentIndex(1)
    stage.paint()
    assert stage.engine.last(Attribute).token == panel.token.itemData(1)


def test_any_token_of_the_vocabulary_can_be_compared_with(stage: WindowStage) -> None:
    panel = answered(stage)
    likely = panel.against.count()
    spelled = [Token(i, b" x%d" % i) for i in range(40)]
    run = stage.engine.last(m.ListVocabulary).run
    stage.say(m.Spelled(run=run, vocabulary=Vocabulary.of(spelled)))
    assert panel.against.count() == likely + 1
    panel.against.setCurrentIndex(likely)
    dialog = panel.against.dialog
    assert dialog is not None
    assert dialog.isVisible()
    assert not dialog.take.isEnabled()
    dialog.line.setText("x3")
    listed = [dialog.list.item(i).text() for i in range(dialog.list.count())]
    assert [line.split()[-1] for line in listed] == ["3", *map(str, range(30, 40))]
    dialog.list.setCurrentRow(2)
    QTest.keyClick(dialog.line, Qt.Key.Key_Return)
    stage.paint()
    asked = stage.engine.last(Attribute)
    assert (asked.token, asked.against) == (10, 31)
    assert panel.against.currentText() == "␣x31"
    stage.ran(1)
    assert panel.against.token == 31, "a token that was looked up stays chosen"
    assert panel.token.token is None
    panel.against.setCurrentIndex(panel.against.count() - 1)
    dialog = panel.against.dialog
    assert dialog is not None
    dialog.reject()
    assert panel.against.token == 31
    assert panel.against.currentText() == "␣x31"


def test_the_atlas_asks_for_the_sum_of_the_chosen_token(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    attention = stage.window.docks.bring_up("attention")
    assert isinstance(attention, AttentionPanel)
    attention.find_head("contribution")
    stage.paint()
    asked = stage.engine.last(Attribute)
    assert stage.state.trace is not None
    assert (asked.slot, asked.token) == (LAST, stage.state.trace.chosen_ids[0])
    stage.say(m.Facts(run=asked.run, facts=facts(LAST)))
    wait_until(lambda: attention.heads.atlas.head_of(0, 0) == (1, 0))
    assert (stage.state.selection.layer, stage.state.selection.head) == (1, 0)
    stage.ran(1)
    assert stage.engine.count(Attribute) == 2, "the order follows the steps"


def test_what_another_question_took_away_is_asked_for_again(stage: WindowStage) -> None:
    panel = answered(stage)
    stage.session.measure(Attribute, quiet=True, slot=LAST, token=99)
    told = facts(LAST)
    told["target"]["id"] = 99
    stage.say(m.Facts(run=stage.engine.last(Attribute).run, facts=told))
    assert stage.engine.count(Attribute) == 3
    assert stage.engine.last(Attribute).token == 10
    assert not panel.ranking.rows, "another token's parts are not shown as this one's"


def test_the_reason_stands_in_its_place(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    panel = opened(stage)
    assert "Taking the logit apart…" in words(panel)
    run = stage.engine.last(Attribute).run
    stage.say(m.Failed(run=run, sentence="No sum closes in this model."))
    assert panel.empty
    assert "No sum closes in this model." in words(panel)
    assert stage.engine.count(Attribute) == 1
