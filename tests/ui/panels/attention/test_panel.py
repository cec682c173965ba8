"""The attention panel follows the state, reads it out, and never shows one head as another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.attention import maps as figures
from explorer.figures.attention.map_blocks import READ
from explorer.figures.drawing.colour_scale import Scale
from explorer.figures.text import table_text
from explorer.trace.trace import Trace
from explorer.ui.look.theme import HIGH_CONTRAST, LIGHT
from explorer.ui.panels.attention.panel import AttentionPanel
from explorer.wording import exact_percent, percent
from tests.figures.runs import Run
from tests.ui.board import Board, shown_board
from tests.ui.waiting import settle, wait_until


@pytest.fixture
def board(qapp: QApplication) -> Iterator[Board]:
    with shown_board(qapp, 800, 500) as board:
        yield board


def _levels(trace: Trace, step: int, layer: int, head: int) -> np.ndarray:
    whole = figures.full_map(trace, step, layer, head)
    return figures.levels(whole.weights, whole.kinds)


def _shown(board: Board) -> np.ndarray:
    return board.panel.pages.maps.maps[0].levels


def test_without_a_run_it_says_what_to_do(board: Board) -> None:
    assert board.panel.empty
    assert "Step" in board.panel._empty.text()


def test_it_shows_the_selected_head_of_the_latest_step(board: Board) -> None:
    run = Run(layers=3)
    trace = run.decode(run.prefill(6), 2)
    board.show(trace=trace)
    board.select(layer=2, head=1)
    board.settle()
    assert not board.panel.empty
    np.testing.assert_array_equal(_shown(board), _levels(trace, 2, 2, 1))
    assert board.panel.heads.atlas.shown is not None
    assert board.panel.heads.atlas.shown.slots == 8
    assert board.panel.tools.name.text() == "Layer 2 · head 1"


def test_it_follows_every_step_forwards_and_back(board: Board) -> None:
    run = Run()
    trace = run.prefill(5)
    for _ in range(4):
        board.show(trace=trace)
        board.settle()
        assert _shown(board).shape == (trace.read_slots(len(trace.steps) - 1),) * 2
        trace = run.decode(trace)
    board.select(step=1)
    board.settle()
    np.testing.assert_array_equal(_shown(board), _levels(board.state.trace, 1, 0, 0))
    board.show(trace=trace.truncated(1), selection=replace(board.state.selection, step=None))
    board.settle()
    assert _shown(board).shape == (5, 5)


def test_the_row_of_the_readout_is_marked_until_another_is_picked(board: Board) -> None:
    run = Run()
    trace = run.prefill(6)
    board.show(trace=trace)
    board.settle()
    assert board.panel.pages.maps.maps[0].query == 5
    board.panel.pages.maps.maps[0].picked.emit(2, 1)
    assert board.state.selection.query == 2
    assert board.panel.pages.maps.maps[0].query == 2
    board.panel.pages.maps.maps[0].picked.emit(5, 1)
    assert board.state.selection.query is None, "the readout's row goes on following the steps"
    board.show(trace=run.decode(trace))
    assert board.panel.pages.maps.maps[0].query == 6


def test_the_line_below_reads_the_row_and_the_cell_under_the_mouse(board: Board) -> None:
    run = Run()
    trace = run.prefill(6)
    board.show(trace=trace)
    board.settle()
    row = figures.row(trace, 0, 0, 0, 5)
    key, weight = row.top_keys(1)[0]
    line = board.panel.readout.text()
    assert f"{percent(weight)} to " in line
    assert f"({key})" in line or "itself" in line
    board.panel.pages.maps.maps[0].go_to(3, 2)
    cell = board.panel.readout.text()
    assert exact_percent(float(trace.weights(0, 0, 0)[3, 2])) in cell
    assert board.state.selection.key == 2
    board.panel.pages.maps.maps[0].go_to(2, 5)
    assert "masked" in board.panel.readout.text()


def test_a_new_step_does_not_take_the_readout_from_under_the_mouse(board: Board) -> None:
    run = Run()
    trace = run.prefill(6)
    board.show(trace=trace)
    board.settle()
    board.panel.pages.maps.maps[0].go_to(3, 2)
    line = board.panel.readout.text()
    board.show(trace=run.decode(trace))
    board.settle()
    assert board.panel.readout.text() == line


def test_a_click_in_the_atlas_changes_head_and_map(board: Board) -> None:
    trace = Run(layers=3).prefill(6)
    board.show(trace=trace)
    board.settle()
    view = board.panel.heads.atlas
    point = view.cell_rect(2, 3).center().toPoint()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    assert (board.state.selection.layer, board.state.selection.head) == (2, 3)
    board.settle()
    np.testing.assert_array_equal(_shown(board), _levels(trace, 0, 2, 3))


def test_hovering_a_head_reads_its_row(board: Board) -> None:
    trace = Run(layers=3).prefill(6)
    board.show(trace=trace)
    board.settle()
    board.panel.heads.atlas.hovered.emit((1, 2))
    key, weight = figures.row(trace, 0, 1, 2, 5).top_keys(1)[0]
    line = board.panel.readout.text()
    assert line.startswith("Layer 1, head 2: ")
    assert f"(5) attends {percent(weight)} to " in line
    assert f"({key})" in line
    board.panel.heads.atlas.hovered.emit(None)
    assert not board.panel.readout.text().startswith("Layer 1, head 2")


def test_a_layer_without_attention_says_why_and_the_next_shows_again(board: Board) -> None:
    trace = Run(layers=3, absent=(1,)).prefill(5)
    board.show(trace=trace)
    board.select(layer=1, head=2)
    board.settle()
    assert board.panel.pages.currentWidget() is board.panel.pages.reason
    assert board.panel.pages.reason.text() == "Layer 1 has no attention map: a recurrent layer."
    board.select(layer=2)
    board.settle()
    assert board.panel.pages.currentWidget() is board.panel.pages.maps
    np.testing.assert_array_equal(_shown(board), _levels(trace, 0, 2, 2))


def test_a_selection_from_a_larger_model_is_brought_inside(board: Board) -> None:
    board.select(layer=29, head=8)
    trace = Run(layers=2, heads=4).prefill(4)
    board.show(trace=trace)
    board.settle()
    np.testing.assert_array_equal(_shown(board), _levels(trace, 0, 1, 3))


@pytest.mark.parametrize("scale", get_args(Scale))
def test_the_scale_of_the_colours_is_one_list_that_says_what_it_is(
    board: Board, scale: Scale
) -> None:
    trace = Run(sharpness=0.1).prefill(30)
    board.show(trace=trace)
    board.select(query=20)
    board.settle()
    tools, shown = board.panel.tools, board.panel.pages.maps.maps[0]
    assert tools.scale.isVisible()
    tools.choose(scale=scale)
    board.settle()
    whole = figures.full_map(trace, 0, 0, 0)
    top = whole.top if scale == "max" else 1.0
    np.testing.assert_array_equal(
        _shown(board), figures.levels(whole.weights, whole.kinds, top, scale)
    )
    assert shown._colour_key.name == tools.scale.currentText()
    assert board.panel.views()["Attention map"].about.endswith(tools.scale.currentText())
    shown.go_to(20, 3)
    said = board.panel.readout.text()
    reading = {
        "fixed": "",
        "max": f"colours: up to {exact_percent(whole.top)}",
        "row": f"colours: by row, up to {exact_percent(float(whole.weights[20].max()))}",
        "log": "colours: logarithmic",
    }[scale]
    assert said.endswith(reading)
    assert ("colours" in said) == bool(reading)


@pytest.mark.parametrize("view", ["maps", "arcs", "row"])
def test_even_the_faintest_map_of_many_tokens_shows_its_pattern(board: Board, view: str) -> None:
    """All weights of a long prompt may be a few thousandths: on a fixed scale nothing is seen."""
    trace = Run(sharpness=0.2).prefill(600)
    board.show(trace=trace)
    board.settle()
    bright: dict[str, int] = {}
    for scale in get_args(Scale):
        board.panel.tools.choose(scale=scale)
        board.settle()
        bright[scale] = int(np.median(_shown(board)[-1]))
    assert bright["fixed"] <= READ + 1
    assert bright["row"] > 40
    assert bright["log"] > 80
    board.panel.tools.view.setCurrentIndex(board.panel.tools.view.findData(view))
    board.settle()
    assert not board.panel.grab().isNull()


def test_one_token(board: Board) -> None:
    board.show(trace=Run().prefill(1))
    board.settle()
    assert _shown(board).tolist() == [[255]]
    board.panel.grab()


def test_padding_slots_are_marked(board: Board) -> None:
    board.show(trace=Run(padding=2).prefill(6))
    board.settle()
    assert board.panel.pages.maps.maps[0]._padding == [(0, 1)]


def test_steps_that_come_faster_than_the_atlas_do_not_starve_it(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long build that the next steps only add to is let finish, then caught up with."""
    from explorer.figures.attention import atlas as atlases

    release, begun = threading.Event(), []
    real = atlases.build

    def slow(trace: Trace, step: int, *rest: Any) -> Iterator[Any]:
        begun.append(step)
        if len(begun) == 1:
            release.wait(20)
        yield from real(trace, step, *rest)

    monkeypatch.setattr(atlases, "build", slow)
    run = Run()
    trace = run.prefill(8)
    board.show(trace=trace)
    wait_until(lambda: bool(begun))
    for _ in range(5):
        trace = run.decode(trace)
        board.show(trace=trace)
    release.set()
    board.settle()
    assert begun == [0, 5]
    assert board.panel.heads.atlas.shown is not None
    assert board.panel.heads.atlas.shown.slots == 13
    assert _shown(board).shape == (13, 13)


def test_another_run_replaces_what_is_being_worked_out(board: Board) -> None:
    first, second = Run(seed=1).prefill(300), Run(seed=2).prefill(7)
    board.show(trace=first)
    board.show(trace=second)
    board.settle()
    np.testing.assert_array_equal(_shown(board), _levels(second, 0, 0, 0))
    assert board.panel.heads.atlas.shown is not None
    assert board.panel.heads.atlas.shown.slots == 7


def test_dropping_the_run_empties_the_panel(board: Board) -> None:
    board.show(trace=Run().prefill(300))
    board.show(trace=None)
    board.settle()
    assert board.panel.empty


def test_closing_while_figures_are_on_their_way_is_safe(qapp: QApplication) -> None:
    for _ in range(5):
        board = Board()
        board.panel = AttentionPanel(board, LIGHT)  # type: ignore[arg-type]
        board.panel.show_state(None, board.state)
        board.show(trace=Run(layers=4).prefill(400))
        board.panel.deleteLater()
        qapp.sendPostedEvents(board.panel, QEvent.Type.DeferredDelete.value)
        settle()


def test_the_table_holds_the_figures_themselves(board: Board) -> None:
    run = Run()
    trace = run.decode(run.prefill(3, [b" a", b",", b"\xe4\xbd\xa0"]), 1)
    board.show(trace=trace)
    board.select(layer=1, head=2)
    board.settle()
    view = board.panel.views()["Attention map"]
    assert view.table is not None
    header, *rows = view.table()
    assert header == ["layer 1 head 2", "0 ␣a", "1 ,", "2 你", "3 ␣t0"]
    weights = trace.weights(0, 1, 2)
    (command,) = table_text.matrix(weights[1:2])  # as `attention --out x.csv` writes it
    assert rows[1][1:3] == command[:2]
    assert rows[1][3:] == ["masked", ""]
    assert len(list(view.table())) == 5


def test_the_table_of_all_heads_has_the_largest_weight_of_each(board: Board) -> None:
    trace = Run(layers=2, absent=(0,)).prefill(5)
    board.show(trace=trace)
    board.settle()
    table = board.panel.views()["All heads"].table
    assert table is not None
    header, *rows = table()
    assert header == ("layer", "head", "largest_weight")
    assert [row[:2] for row in rows] == [(1, head) for head in range(4)]
    wanted = [float(figures.full_map(trace, 0, 1, head).weights.max()) for head in range(4)]
    assert [row[2] for row in rows] == pytest.approx(wanted, abs=1e-4)


def test_a_theme_reaches_every_canvas(board: Board) -> None:
    board.show(trace=Run().prefill(5))
    board.settle()
    before = board.panel.grab().toImage()
    board.panel.set_theme(HIGH_CONTRAST)
    assert board.panel.pages.maps.maps[0]._theme is HIGH_CONTRAST
    assert board.panel.heads.atlas._theme is HIGH_CONTRAST
    assert board.panel.grab().toImage() != before


@pytest.mark.parametrize("heads", [(30, 9), (48, 64)])
def test_a_step_costs_little_in_the_windows_thread(board: Board, heads: tuple[int, int]) -> None:
    """Median of show_state and painting, in processor time, with room for a busy machine."""
    from time import thread_time

    run = Run(layers=heads[0], heads=heads[1], kv_heads=1)
    trace = run.prefill(60)
    board.show(trace=trace)
    board.settle()
    costs = []
    for _ in range(9):
        trace = run.decode(trace)
        begin = thread_time()
        board.show(trace=trace)
        spent = thread_time() - begin
        wait_until(lambda: not board.panel.source.busy)
        begin = thread_time()
        board.panel.pages.maps.maps[0].repaint()
        board.panel.heads.atlas.viewport().repaint()
        costs.append(spent + thread_time() - begin)
    assert np.median(costs) < 0.05


def test_the_cursor_reads_its_cell_and_what_its_row_reads_most(board: Board) -> None:
    trace = Run().prefill(9)
    board.show(trace=trace)
    board.settle()
    board.panel.show()
    shown = board.panel.pages.maps.maps[0]
    face = QAccessible.queryAccessibleInterface(shown)
    read = []
    for key in (Qt.Key.Key_Up, Qt.Key.Key_Up, Qt.Key.Key_Home):
        QTest.keyClick(shown, key)
        read.append(face.text(QAccessible.Text.Description))
        assert board.panel.readout.text() == read[-1]
    most = figures.row(trace, 0, 0, 0, 7).top_keys(1)[0]
    assert len(set(read)) == 3
    assert read[1].startswith("Query '")
    assert "(7), key '" in read[1]
    assert "masked" in read[1]
    assert " to key '" in read[2]
    assert f"most attention: {percent(most[1])} to " in read[1]
