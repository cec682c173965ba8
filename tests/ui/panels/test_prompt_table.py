"""The panel of many prompts: lines read, rows shown as they come, sorted, opened and exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import Qt

from explorer.figures.prediction.prompt_pairs import pairs
from explorer.trace.experiments import ScoredPrompt, ScorePrompts
from explorer.trace.wire import messages as m
from explorer.ui.panels.prompt_table import ANSWER, PROMPT, SHARE, PromptTablePanel, read_lines
from tests.ui.stage import WindowStage

LINES = "The capital of France is=> Paris\n\nHel=>lo\n  <b>x</b>"


def row(prompt: str, probability: float = 0.5, **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "tokens": 3, "id": 10, "raw": b" a", "probability": probability,
            "mean_nats": 2.5, "answer": None, "ms": 12.0, "problem": "", **more}  # fmt: skip


def panel_of(stage: WindowStage) -> PromptTablePanel:
    stage.window.docks.bring_up("prompts")
    stage.paint()
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "prompts")
    assert isinstance(dock.panel, PromptTablePanel)
    return dock.panel


def column(panel: PromptTablePanel, place: int) -> list[str]:
    table = panel.table
    return [table.item(row, place).text() for row in range(table.rowCount())]


def test_lines_with_and_without_an_answer() -> None:
    assert read_lines(LINES) == (
        ("The capital of France is", " Paris"), ("Hel", "lo"), ("  <b>x</b>", ""),
    )  # fmt: skip
    assert read_lines("\n \n") == ()
    assert read_lines("f = x => x+1=> 2\nx =>\n=> y") == (
        ("f = x => x+1", " 2"), ("x =>", ""), ("=> y", ""),
    )  # fmt: skip


def answered(stage: WindowStage) -> PromptTablePanel:
    """With the rows of LINES, the last one not run."""
    stage.loaded("")
    panel = panel_of(stage)
    panel.edit.setPlainText(LINES)
    panel.run_button.click()
    run = stage.engine.last(ScorePrompts).run
    some = [row("The capital of France is", 0.25, answer=0.25), row("Hel", 0.75)]
    stage.say(m.PartFacts(run=run, facts={"asked": 3, "rows": some[:1]}))
    panel.table.sortItems(SHARE, Qt.SortOrder.DescendingOrder)
    panel.table.selectRow(0)
    stage.say(m.PartFacts(run=run, facts={"asked": 3, "rows": some}))
    assert panel.table.item(panel.table.currentRow(), PROMPT).text() == some[0]["prompt"]
    panel.table.setCurrentCell(-1, -1)
    panel.table.sortItems(PROMPT)
    assert panel.words.text() == "2 of 3 prompts so far"
    assert panel.stop_button.isEnabled()
    assert not panel.run_button.isEnabled()
    failed = row("  <b>x</b>", 0.0, tokens=0, mean_nats=None, ms=0.0, problem="Too long.")
    stage.say(m.Facts(run=run, facts={"asked": 3, "rows": [*some, failed]}))
    return panel


def test_a_list_is_run_with_no_prompt_in_the_window_and_rows_come_one_by_one(
    stage: WindowStage,
) -> None:
    panel = answered(stage)
    asked = stage.engine.last(ScorePrompts)
    assert asked.prompts == read_lines(LINES)
    assert panel.words.text() == "3 prompts, 1 with something to say: select a row to read it."
    panel.table.selectRow(2)
    assert panel.words.text() == "Too long."
    assert column(panel, PROMPT) == ["The capital of France is", "Hel", "  <b>x</b>"]
    assert column(panel, ANSWER) == ["25.0 %", "", ""]
    assert panel.table.item(2, 1).text() == "not run"
    assert "Too long." in panel.table.item(2, PROMPT).toolTip()


def test_rows_are_sorted_by_value_and_opened_in_the_window(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.table.sortItems(SHARE, Qt.SortOrder.DescendingOrder)
    assert column(panel, PROMPT) == ["Hel", "The capital of France is", "  <b>x</b>"]
    assert not panel.open_button.isEnabled()
    panel.table.selectRow(1)
    panel.open_button.click()
    assert stage.state.request.prompt == "The capital of France is"
    assert stage.engine.last(m.Advance).request.prompt == "The capital of France is"


def test_the_export_is_in_the_order_of_the_list_with_full_figures(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.table.sortItems(SHARE, Qt.SortOrder.DescendingOrder)
    view = next(iter(panel.views().values()))
    heads, *rows = list(view.table())
    assert heads[0] == "prompt"
    assert [one[0] for one in rows] == ["The capital of France is", "Hel", "  <b>x</b>"]
    assert rows[0][4:7] == (0.25, 0.25, 2.5)


def test_two_models_stand_in_one_row_each_with_its_own_figures(stage: WindowStage) -> None:
    panel = answered(stage)
    panel.compare_button.click()
    assert column(panel, PROMPT) == ["The capital of France is", "Hel", "  <b>x</b>"]
    assert column(panel, 4) == [""] * 3, "nothing is said of a model that has not run"
    stage.session.open_model("other")
    stage.answer_load(name="other")
    panel.run_button.click()
    run = stage.engine.last(ScorePrompts).run
    rows = [
        row("The capital of France is", 0.5, answer=0.5),
        row("Hel", 0.125),
        row("  <b>x</b>", 0.25),
    ]
    stage.say(m.PartFacts(run=run, facts={"asked": 3, "rows": rows[:2]}))
    stage.say(m.Facts(run=run, facts={"asked": 3, "rows": rows}))
    heads = [panel.table.horizontalHeaderItem(i).text() for i in range(panel.table.columnCount())]
    assert heads[3:5] == ["probability\ntiny", "probability\nother"]
    assert column(panel, 3) == ["25.0 %", "75.0 %", ""]
    assert column(panel, 4) == ["50.0 %", "12.5 %", "25.0 %"]
    panel.table.sortItems(4)
    assert column(panel, 3) == ["75.0 %", "", "25.0 %"]
    panel.table.selectRow(2)
    panel.open_button.click()
    assert stage.state.request.prompt == "The capital of France is"
    heads, *rows = list(next(iter(panel.views().values())).table())
    assert rows[0][0] == "The capital of France is"
    assert rows[0][heads.index("probability_tiny_1")] == 0.25
    assert rows[0][heads.index("probability_other_2")] == 0.5
    panel.compare_button.click()
    assert panel.table.columnCount() == 6
    assert column(panel, SHARE) == ["50.0 %", "12.5 %", "25.0 %"]


def test_equal_prompts_are_matched_in_their_order() -> None:
    first, second, third = (msgspec.convert(row("a", p), ScoredPrompt) for p in (0.1, 0.2, 0.3))
    assert pairs((first, second), (third, first, second)) == (
        (first, third), (second, first), (None, second),
    )  # fmt: skip
    assert pairs((first,), None) == ((first, None),)


def test_a_file_of_prompts_and_one_that_is_none(stage: WindowStage, tmp_path: Path) -> None:
    panel = panel_of(stage)
    (tmp_path / "list.txt").write_bytes(b"eins\r\nzwei=>2\r\n")
    panel.take_file(str(tmp_path / "list.txt"))
    assert read_lines(panel.edit.toPlainText()) == (("eins", ""), ("zwei", "2"))
    (tmp_path / "odd.bin").write_bytes(b"\xff\xfe\x00")
    panel.take_file(str(tmp_path / "odd.bin"))
    assert "odd.bin" in stage.state.error
    assert read_lines(panel.edit.toPlainText())[0] == ("eins", "")


def test_no_prompt_is_told(stage: WindowStage) -> None:
    stage.loaded("")
    panel = panel_of(stage)
    panel.edit.setPlainText("\n")
    panel.run_button.click()
    assert "There are 0 prompts" in stage.state.error
    assert stage.engine.count(ScorePrompts) == 0
