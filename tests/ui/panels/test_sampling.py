"""The sampling panel: every stage, both orders, the whole vocabulary, and no call of the model."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLabel

from explorer.figures.prediction import sampling as figures
from explorer.trace.request import ORDER, Sampling
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages as m
from explorer.ui.panels.sampling.panel import SamplingPanel
from explorer.ui.panels.sampling.token_table import FINAL, ID, RANK, RAW, TEXT, TokenTable
from tests.session.scripted import VOCABULARY, made_step
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, show

SPELLED = [f"w{i}".encode() for i in range(VOCABULARY)]
SPELLED[5] = SPELLED[4]  # two ids of one text
SPELLED[6] = b"\xe6\xbc"  # half a character
SPELLED[7] = b" \n"


def panel_of(stage: WindowStage) -> SamplingPanel:
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "sampling")
    dock.show()
    dock.raise_()
    stage.paint()
    assert isinstance(dock.panel, SamplingPanel)
    return dock.panel


def words(shown: SamplingPanel) -> str:
    return "\n".join(label.text() for label in shown.findChildren(QLabel) if label.isVisible())


def cells(shown: SamplingPanel) -> list[list[str]]:
    table = shown.chain_view.table
    rows, columns = range(table.rowCount()), range(table.columnCount())
    return [[table.item(r, c).text() for c in columns] for r in rows]  # type: ignore[union-attr]


def spell(stage: WindowStage) -> None:
    run = stage.engine.last(m.ListVocabulary).run
    vocabulary = Vocabulary.of([Token(i, raw) for i, raw in enumerate(SPELLED)])
    stage.say(m.Spelled(run=run, vocabulary=vocabulary))


def with_logits(stage: WindowStage, logits: list[float]) -> None:
    """One step with these logits."""
    stage.session.step()
    run = stage.prompted()
    step = made_step(0)
    array = np.array(logits, np.float32)
    draw = replace_draw(step, 0)
    stage.say(m.Stepped(run=run, step=replace(step, logits=array, draw=draw), token=Token(0, b"a")))
    stage.finish()


def replace_draw(step: object, token_id: int) -> object:
    import msgspec

    return msgspec.structs.replace(step.draw, token_id=token_id)  # type: ignore[attr-defined]


def test_the_stages_follow_the_controls_without_the_model(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    shown = panel_of(stage)
    assert [row[0] for row in cells(shown)][-1].startswith("Greedy")
    asked = len(stage.engine.asked)
    stage.session.set_sampling(Sampling(greedy=False, top_k=3, temperature=0.5, seed=2))
    table = {row[0]: row[1:] for row in cells(shown)}
    assert table["Raw logits"][1] == "40"
    assert table["Top-k"][:2] == ["3", "3"]
    assert table["Top-p"][:2] == ["off", "3"]
    assert "Preview: token 2" in words(shown)
    assert "u = " in words(shown)
    assert len(stage.engine.asked) == asked


@pytest.mark.parametrize(
    ("settings", "kept", "told"),
    [
        ({"top_k": 3}, "5 (ties)", "2 more than k (ties with the last)"),
        ({"top_p": 0.55}, "3 (ties)", "2 ties with the last are cut (lower ids win)"),
    ],
)
def test_ties_are_told_in_the_table_and_in_the_chart(
    stage: WindowStage, settings: dict[str, float], kept: str, told: str
) -> None:
    stage.loaded()
    with_logits(stage, [float(x) for x in np.log([0.4, *[0.1] * 4, *[0.2 / 35] * 35])])
    shown = panel_of(stage)
    chart = stage.window.docks.bring_up("next-token")
    stage.session.set_sampling(Sampling(greedy=False, **settings))  # type: ignore[arg-type]
    assert kept in [row[2] for row in cells(shown)]
    assert told in [shown.chain_view.table.item(row, 2).toolTip() for row in range(6)]  # type: ignore[union-attr]
    assert "ties with the last" in chart._line.text()  # type: ignore[attr-defined]


def test_three_logits_show_both_orders_and_why_they_differ(stage: WindowStage) -> None:
    stage.loaded()
    with_logits(stage, [3, 2, 1])
    shown = panel_of(stage)
    stage.session.set_sampling(Sampling(greedy=False, temperature=0.5, top_p=0.8))
    said = words(shown)
    assert "before the cuts: 1 tokens kept, the top one has 100 %. After the cuts: 2 kept" in said
    assert "the top one has 88.1 %" in said
    assert "Temperature 0.5 sharpens the distribution, so Top-p keeps 1, not 2." in said
    stage.session.set_sampling(Sampling(greedy=False, temperature=0.5))
    assert "order matters" not in words(shown)


def test_the_number_drawn_is_on_the_curve_once_nothing_changes_any_more(
    stage: WindowStage,
) -> None:
    stage.loaded().ran(1)
    shown = panel_of(stage)
    stage.session.set_sampling(Sampling(greedy=False, temperature=0.5, top_k=3, min_p=1e-9))
    drawn = []
    for row in range(6):
        shown.chain_view.table.selectRow(row)
        seen = shown.chain_view.curves.cumulative.drawn
        assert seen is not None
        drawn.append(any(note.startswith("u = ") for note in seen.notes))
    assert drawn == [False, False, False, True, True, True]
    last = shown._chain
    assert last is not None
    below = last.stages[-1].p[: last.landed].sum()
    assert below <= (last.u or 0) < below + last.stages[-1].p[last.landed or 0]


def test_a_step_of_the_past_is_shown_as_it_was_picked(stage: WindowStage) -> None:
    stage.loaded().ran(3)
    shown = panel_of(stage)
    stage.session.set_sampling(Sampling(greedy=False, top_k=2))
    assert "Preview" in words(shown)
    stage.session.select(step=0)
    assert "Token 1, with the settings that chose it" in words(shown)
    assert cells(shown)[-1][0].startswith("Greedy")
    stage.session.set_sampling(Sampling(greedy=False, top_k=4))
    assert "Preview: token 1" in words(shown)


def test_the_order_can_be_changed_and_put_back(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    shown = panel_of(stage)
    stage.session.set_sampling(Sampling(greedy=False, top_p=0.5, temperature=0.5))
    view = shown.chain_view
    view.table.selectRow(4)
    view.up_button.click()
    assert stage.state.sampling.order == ("penalty", "temperature", "top_p", "top_k", "min_p")
    assert [row[0] for row in cells(shown)][3:5] == ["Top-p", "Top-k"]
    assert view.table.currentRow() == 3
    view.usual_button.click()
    assert stage.state.sampling.order == ORDER
    view.min_p.setValue(0.25)
    assert stage.state.sampling.min_p == 0.25
    view.penalty.setValue(1.5)
    assert stage.state.sampling.repetition_penalty == 1.5
    stage.session.undo()
    assert stage.state.sampling.min_p == 0


def test_every_token_has_a_row_and_equal_texts_stay_two(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    spell(stage)
    shown = panel_of(stage)
    shown.tabs.setCurrentIndex(1)
    model = shown.token_view.model
    assert model.rowCount() == VOCABULARY
    texts = {model.token_id(r): model.index(r, TEXT).data() for r in range(VOCABULARY)}
    assert texts[4] == texts[5] == "w4"
    assert texts[6] == "⟨E6 BC⟩"
    assert texts[7] == "␣↵"
    ranks = [int(model.index(r, RANK).data()) for r in range(VOCABULARY)]
    assert ranks == list(range(1, VOCABULARY + 1))
    for column in (ID, TEXT, RAW, FINAL):
        for order in (Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder):
            model.sort(column, order)
            assert sorted(model.token_id(r) for r in range(VOCABULARY)) == list(range(VOCABULARY))
    model.sort(RAW, Qt.SortOrder.DescendingOrder)
    assert [model.index(r, RANK).data() for r in range(3)] == ["1", "2", "3"]
    model.sort(TEXT, Qt.SortOrder.AscendingOrder)
    assert model.index(0, TEXT).data() == "␣↵"


def test_where_is_a_token_by_text_or_id(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    spell(stage)
    shown = panel_of(stage)
    shown.tabs.setCurrentIndex(1)
    line = shown.token_view.line
    line.setText("w4")
    assert "w4 (id 4): Raw logits: rank" in words(shown)
    assert "w4 (id 5): Raw logits: rank" in words(shown)
    line.setText("12")
    assert "w12 (id 12)" in words(shown)
    line.setText("␣↵")
    assert "(id 7)" in words(shown)
    line.setText("nowhere")
    assert "No token has this text" in words(shown)
    stage.session.set_sampling(Sampling(greedy=False, top_k=1))
    line.setText(str(shown.token_view.model.token_id(5)))
    assert "Top-k: cut" in words(shown)


def test_any_token_of_the_vocabulary_can_be_forced(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    stage.session.force(35)
    assert "Open its model" in stage.state.error
    spell(stage)
    shown = panel_of(stage)
    shown.tabs.setCurrentIndex(1)
    shown.token_view.line.setText("35")
    shown.token_view.force_button.click()
    assert stage.state.trace is not None
    assert stage.state.trace.chosen[-1] == Token(35, b"w35", "forced")


def test_without_the_model_unknown_tokens_say_so(stage: WindowStage) -> None:
    stage.loaded().ran(1)
    shown = panel_of(stage)
    shown.tabs.setCurrentIndex(1)
    assert "Open its model to see the rest" in words(shown)
    model = shown.token_view.model
    texts = {model.token_id(r): model.index(r, TEXT).data() for r in range(VOCABULARY)}
    assert texts[12] == "t12"  # travels with the step
    assert texts[35] == "needs the model"
    spell(stage)
    assert "Open its model to see the rest" not in words(shown)
    assert model.index(model.row_of(35) or 0, TEXT).data() == "w35"


def test_broken_logits_are_a_sentence(stage: WindowStage) -> None:
    stage.loaded()
    with_logits(stage, [float("nan"), 1.0])
    shown = panel_of(stage)
    assert shown.empty
    assert "NaN or infinite" in words(shown)


def test_the_view_asks_for_the_rows_that_are_seen_only(qapp: QApplication) -> None:
    asked: set[int] = set()

    class Counting(TokenTable):
        def data(self, index, role=0):  # type: ignore[no-untyped-def]
            asked.add(index.row())
            return super().data(index, role)

    from PySide6.QtWidgets import QTableView

    rng = np.random.default_rng(0)
    raw = rng.random(50_000)
    order = np.argsort(-raw)
    rank = np.empty(50_000, np.int64)
    rank[order] = np.arange(50_000)
    model = Counting()
    view = QTableView()
    view.setModel(model)
    view.resize(500, 400)
    show(view)
    model.show(figures.Listing(raw, raw, rank), None, {})
    view.grab()  # paints now
    assert 5 < len(asked) < 60
    start = time.thread_time()
    model.show(figures.Listing(raw, raw, rank), None, {})
    settle()
    assert time.thread_time() - start < 0.05
    view.close()
