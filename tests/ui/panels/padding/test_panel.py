"""The padding panel: what it asks for, what it says, and that it follows its switches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QToolButton

from explorer.trace.batch import BatchRequest
from explorer.trace.card import Capability
from explorer.trace.wire import messages as m
from explorer.ui.access.accessible import line_of
from explorer.ui.canvases.charts.chart import Chart
from explorer.ui.canvases.tokens.token_grid import TokenGrid
from explorer.ui.look.theme import THEMES
from explorer.ui.panels.padding.panel import PaddingPanel
from tests.trace.batches import result, row
from tests.ui.stage import WindowStage
from tests.ui.waiting import show, wait_until


def opened(stage: WindowStage) -> PaddingPanel:
    """The panel, its tab on top."""
    dock = next(d for d in stage.window.docks.docks if d.panel.ID == "padding")
    if dock.isHidden():
        dock.toggleViewAction().trigger()
    stage.paint()
    assert isinstance(dock.panel, PaddingPanel)
    return dock.panel


def loaded(stage: WindowStage) -> PaddingPanel:
    stage.loaded()
    return opened(stage)


def answer(stage: WindowStage, **more: object) -> BatchRequest:
    """Answer the newest batch with two rows of 2 and 4 tokens."""
    asked = stage.engine.last(m.RunBatch)
    done = result(row(2), row(4), request=asked.batch, **more)
    stage.say(m.Batched(run=asked.run, result=done))
    return asked.batch


def words(panel: PaddingPanel) -> str:
    return "\n".join(label.text() for label in panel.findChildren(QLabel) if label.isVisible())


def rest(panel: PaddingPanel) -> None:
    """What was changed comes to rest."""
    assert panel._again.isActive()
    panel._again.timeout.emit()


def test_it_is_closed_at_first_and_opens_as_a_tab_beside_attention(stage: WindowStage) -> None:
    docks = {dock.panel.ID: dock for dock in stage.window.docks.docks}
    assert docks["padding"].isHidden()
    opened(stage)
    assert docks["padding"] in stage.window.docks.tabifiedDockWidgets(docks["attention"])
    assert not docks["padding"].panel.visibleRegion().isEmpty()
    assert docks["attention"].panel.visibleRegion().isEmpty()


def test_without_a_model_it_says_what_to_do(stage: WindowStage) -> None:
    panel = opened(stage)
    assert panel.empty
    assert "Open a model at the top left" in words(panel)
    stage.loaded()
    assert not panel.empty


def test_run_asks_for_what_the_controls_say(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.prompts.edit.setPlainText("one\n\ntwo  words\n")
    panel.extra.setValue(3)
    panel.steps.setValue(5)
    panel.sides.button(0).click()
    panel.mistakes.fed["mask"].box.click()
    assert stage.engine.count(m.RunBatch) == 0
    QTest.mouseClick(panel.run_button, Qt.MouseButton.LeftButton)
    assert stage.engine.last(m.RunBatch).batch == BatchRequest(
        prompts=("one", "two  words"), padding="left", extra=3, steps=5, wrong=("mask",), loss=True
    )


def test_a_no_break_space_in_a_prompt_stays_one(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.prompts.edit.setPlainText("a\u00a0b\nc")
    assert panel.request().prompts == ("a\u00a0b", "c")


def test_a_run_shows_progress_can_be_cancelled_and_leaves_the_prompts(stage: WindowStage) -> None:
    panel = loaded(stage)
    assert not panel.cancel_button.isEnabled()
    QTest.mouseClick(panel.run_button, Qt.MouseButton.LeftButton)
    run = stage.engine.last(m.RunBatch).run
    QTest.mouseClick(panel.run_button, Qt.MouseButton.LeftButton)  # a hasty second click
    assert stage.engine.count(m.RunBatch) == 1
    assert m.Cancel(run=run) not in stage.engine.asked
    assert panel.progress.isVisible()
    stage.say(m.Progress(run=run, text="Decoding", fraction=0.5))
    # While something runs, this panel is drawn in a later turn of the loop.
    wait_until(lambda: panel.progress.value() == 500)
    assert "each prompt alone" in words(panel)
    assert not panel.run_button.geometry().intersects(panel.cancel_button.geometry())
    QTest.mouseClick(panel.cancel_button, Qt.MouseButton.LeftButton)
    assert m.Cancel(run=run) in stage.engine.asked
    assert panel.run_button.isEnabled()
    assert panel.tabs.currentIndex() == 0
    assert not panel.tabs.isTabEnabled(1)


def test_a_batch_that_fails_goes_back_to_the_prompts_and_says_why(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    run = stage.engine.last(m.RunBatch).run
    stage.say(m.Failed(run=run, sentence="Prompt 2 has no tokens."))
    assert panel.tabs.currentIndex() == 0
    assert "Prompt 2 has no tokens." in stage.window.notices.error.text


def test_the_result_names_the_cause_the_answers_and_the_padding_token(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage, pad_note="The end token serves.")
    assert panel.tabs.currentIndex() == 1
    text = words(panel)
    assert "1 of 2 rows ends in padding" in text
    assert "instead of" in text
    assert "<|end|> (id 0). The end token serves." in text
    table = panel.views()["Padded batch"].table
    assert table is not None
    assert len(list(table())) == 1 + 2 * 4


def test_rows_that_went_on_by_themselves_are_named(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage, decoded_apart="Each row went on by itself.")
    assert "Each row went on by itself." in words(panel)


def test_what_is_changed_after_a_run_is_run_again_once(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.sides.button(0).click()
    assert not panel._again.isActive()  # nothing is on screen yet
    panel.run_button.click()
    answer(stage)
    panel.sides.button(1).click()
    panel.extra.setValue(2)
    panel.mistakes.fed["readout"].box.click()
    assert stage.engine.count(m.RunBatch) == 1
    rest(panel)
    assert stage.engine.count(m.RunBatch) == 2
    asked = answer(stage)
    assert (asked.padding, asked.extra, asked.wrong) == ("right", 2, ("readout",))
    panel.extra.setValue(3)
    panel.extra.setValue(2)
    rest(panel)
    assert stage.engine.count(m.RunBatch) == 2  # as before: there is nothing to run


def test_each_switch_says_what_it_breaks_and_what_was_measured(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.tabs.setCurrentIndex(2)
    stage.paint()
    text = words(panel)
    assert "attends to the padding" in text
    assert "Measured" not in text
    panel.run_button.click()
    answer(stage)
    panel.tabs.setCurrentIndex(2)
    stage.paint()
    text = words(panel)
    assert text.count("Measured") == 5
    assert "1 of 2 rows change, by up to 12.5" in text
    assert "no row changes" in text
    assert "4.333 nats over 6 targets instead of 2.000 over 4" in text


def test_loss_mistakes_count_otherwise_without_another_run(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    panel.tabs.setCurrentIndex(3)
    stage.paint()
    assert "2.0000 nats" in words(panel)
    assert "With the mistake:" not in words(panel)
    panel.mistakes.loss["pads"].box.click()
    stage.paint()
    assert "With the mistake: 4.3333 nats over 6 targets" in words(panel)
    assert panel.tabs.tabText(2) == "Deliberate mistakes (1)"
    assert not panel._again.isActive()
    assert stage.engine.count(m.RunBatch) == 1


def test_results_name_what_they_were_made_with_and_are_marked_once_that_is_not_what_is_set(
    stage: WindowStage,
) -> None:
    panel = loaded(stage)
    panel.prompts.edit.setPlainText("one\ntwo")
    panel.run_button.click()
    answer(stage)
    made = "right padding, extra 0, 1 token, 2 prompts, tiny"
    assert panel.made.text() == f"Results: {made}."
    panel.sides.button(0).click()
    assert panel.made.text() == f"Settings have changed. Press Run batch. Results: {made}."
    panel._run_again()
    assert panel.made.text() == f"Running. Earlier results: {made}."
    panel.cancel_button.click()
    assert panel.stale
    assert panel.made.text().startswith("Settings have changed")
    panel.sides.button(1).click()
    assert not panel.stale


def test_attention_of_a_row_is_one_act_that_is_said_and_can_be_undone(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    stage.ran(2)
    before = stage.state
    panel.look_button.click()
    stage.prompted()
    stage.steps(1)
    stage.finish()
    stage.paint()
    bar = stage.window.notices.taken
    assert bar.isVisible()
    assert stage.state.request.prompt == " w0 w1"
    assert stage.window.docks.bring_up("attention").isVisible()
    stage.session.undo()
    stage.paint()
    assert (stage.state.trace, stage.state.request) == (before.trace, before.request)
    assert not bar.isVisible()
    assert stage.state.undo_kind == before.undo_kind
    stage.session.redo()
    assert stage.state.request.prompt == " w0 w1"
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 1
    panel.look_button.click()  # it is on screen already
    assert stage.engine.count(m.Advance) == 2


def test_attention_of_a_row_that_is_cancelled_leaves_prompt_and_run(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    stage.ran(2)
    before = stage.state
    panel.look_button.click()
    stage.prompted()
    stage.session.cancel()
    assert (stage.state.trace, stage.state.request) == (before.trace, before.request)


def test_attention_of_a_row_runs_it_as_the_single_prompt_with_its_padding(
    stage: WindowStage,
) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    panel.look_button.click()
    asked = stage.engine.last(m.Advance).request
    assert (asked.prompt, asked.padding, asked.pad) == (" w0 w1", "right", 2)
    panel._select(1)
    assert "prompt 2" in panel.look_button.text()
    panel.look_button.click()
    asked = stage.engine.last(m.Advance).request
    assert (asked.padding, asked.pad) == (None, 0)


def test_prompts_from_a_file_and_files_that_are_none(stage: WindowStage, tmp_path: Path) -> None:
    panel = loaded(stage)
    file = tmp_path / "p.txt"
    file.write_text("red\ngreen tea\n", encoding="utf-8")
    panel.prompts.open_file(str(file))
    assert panel.prompts.prompts() == ("red", "green tea")
    file.write_text('["a\\nb"]', encoding="utf-8")
    panel.prompts.open_file(str(file))
    assert "Prompt 1 contains a line break" in stage.window.notices.error.text
    file.write_bytes(b"\xff")
    panel.prompts.open_file(str(file))
    assert "not UTF-8" in stage.window.notices.error.text
    assert panel.prompts.prompts() == ("red", "green tea")


def test_without_prompts_there_is_nothing_to_run(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.prompts.edit.setPlainText("")
    assert not panel.run_button.isEnabled()
    panel.prompts.edit.setPlainText("\n".join("p" * 17))
    assert "(at most 16)" in words(panel)


def test_another_model_takes_the_old_result_away(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    stage.session.open_model("other")
    stage.paint()
    assert panel.tabs.isTabEnabled(1)  # until the other is open
    stage.answer_load(name="other")
    assert not panel.empty
    assert not panel.tabs.isTabEnabled(1)


@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_paints(stage: WindowStage, theme: str) -> None:
    panel = loaded(stage)
    panel.run_button.click()
    answer(stage)
    stage.window.look.set_theme(theme)
    for tab in range(4):
        panel.tabs.setCurrentIndex(tab)
        stage.paint()
        assert not panel.grab().isNull()


# -- the canvas


@pytest.fixture
def grid(qapp: QApplication) -> Iterator[TokenGrid]:
    from explorer.figures.batch import padding as figures

    grid = TokenGrid(THEMES["light"])
    grid.resize(420, 160)
    grid.set_blocks(figures.blocks(result(row(2), row(4))))
    show(grid)
    yield grid
    grid.close()


def test_columns_stand_below_each_other_in_all_blocks(grid: TokenGrid) -> None:
    for slot in range(4):
        spans = {
            (rect.left(), rect.right())
            for block in (0, 1)
            for line in range(4)
            for rect in [grid.cell_rect((block, line, slot))]
        }
        assert len(spans) == 1


def test_the_mouse_reads_cells_charts_and_names(grid: TokenGrid) -> None:
    place = grid.cell_rect((0, 1, 3)).center().toPoint()
    assert grid.tip_at(place) == "position 3: masked"
    chart = next(rect for index, rect in grid.chart_rects(0) if index == 2)
    assert "↵  50.0 %" in grid.tip_at(chart.center().toPoint())
    name = grid.cell_rect((0, 2, 0)).center().toPoint()
    name.setX(4)
    assert "where the token is" in grid.tip_at(name)


def test_keys_move_a_cursor_that_is_read_aloud_and_scrolled_to(grid: TokenGrid) -> None:
    picked: list[int] = []
    grid.picked.connect(picked.append)
    grid.setFocus()
    QTest.keyClick(grid, Qt.Key.Key_Right)
    assert "␣w0" in line_of(grid)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left):
        QTest.keyClick(grid, key)
    assert grid.current == (0, 1, 0)
    for _ in range(9):
        QTest.keyClick(grid, Qt.Key.Key_Down)
    assert grid.current == (1, 3, 0)
    assert grid.verticalScrollBar().value() > 0
    assert grid.viewport().rect().contains(grid.cell_rect((1, 3, 0)).center().toPoint())
    QTest.keyClick(grid, Qt.Key.Key_Return)
    assert picked == [1]


def test_a_click_picks_its_block(grid: TokenGrid) -> None:
    picked: list[int] = []
    grid.picked.connect(picked.append)
    place = grid.cell_rect((0, 0, 1)).center().toPoint()
    QTest.mouseClick(grid.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert picked == [0]
    assert grid.current == (0, 0, 1)


def test_fewer_blocks_leave_no_cursor_behind(grid: TokenGrid) -> None:
    from explorer.figures.batch import padding as figures

    grid.setFocus()
    grid._move_to((1, 0, 3))
    short = result(msgspec.structs.replace(row(4)))
    grid.set_blocks(figures.blocks(short))
    assert grid.current is None
    grid.set_blocks(())
    QTest.keyClick(grid, Qt.Key.Key_Down)
    assert grid.current is None


def test_the_loss_is_drawn_by_position_a_line_a_prompt(stage: WindowStage) -> None:
    panel = loaded(stage)
    panel.session.batches.run(panel.request())
    answer(stage)
    panel.tabs.setCurrentIndex(3)
    (turn,) = (b for b in panel.findChildren(QToolButton) if b.text() == "By position")
    assert turn.isVisible()
    turn.click()
    stage.paint()
    chart = panel.views()["Loss by position"].widget
    assert isinstance(chart, Chart)
    assert chart.isVisible()
    drawn = chart.drawn
    assert drawn is not None
    assert drawn.series["prompt 1"][0].tolist() == [1]
    assert drawn.series["prompt 2"][1].tolist() == [2, 2, 2]
    assert drawn.series["mean"][1].tolist() == [2, 2, 2]
    assert drawn.ticks[1][0] == "0 nats"


@pytest.mark.parametrize(("tab", "shown"), [(0.0, 0), (1.0, 1)])
def test_a_scene_with_results_turns_to_the_tab_it_names(
    stage: WindowStage, tab: float, shown: int
) -> None:
    panel = loaded(stage)
    panel.choose({"tab": tab})
    stage.session.batches.run(BatchRequest(prompts=("one", "two"), padding="left", loss=True))
    answer(stage)
    wait_until(lambda: panel.tabs.isTabEnabled(1))
    assert panel.prompts.prompts() == ("one", "two")
    assert panel.tabs.currentIndex() == shown


def test_a_file_as_it_is_takes_no_padding_and_the_panel_says_why(stage: WindowStage) -> None:
    stage.session.start_engine()
    stage.session.open_model("a.gguf", form="as-is")
    stage.drain()
    sides = ("left_padding", "right_padding")
    why = "left padding is not needed"
    denied = tuple(
        Capability(name=side, offered=False, words=f"not offered: {why}") for side in sides
    )
    stage.answer_load(form="as-is", capabilities=denied)
    panel = opened(stage)
    assert panel.made.text() == "A .gguf file that runs as it is takes no padding."
    assert why in panel.run_button.toolTip()
    assert not panel.run_button.isEnabled()
    panel.convert_button.click()
    stage.drain()
    asked = stage.engine.last(m.Load)
    assert (asked.model, asked.form) == ("a.gguf", "float32")
    stage.answer_load(form="float32")
    stage.paint()
    assert not panel.convert_button.isVisible()
    assert panel.made.text() == ""
    assert panel.run_button.isEnabled()
