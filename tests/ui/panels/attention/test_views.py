"""The other views of one run: arcs, rows, combined heads, go to token."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer.figures.attention import maps as figures
from explorer.figures.attention.maps import full_map
from explorer.wording import percent
from tests.figures.runs import Run
from tests.ui.board import Board, shown_board


@pytest.fixture
def board(qapp: QApplication) -> Iterator[Board]:
    with shown_board(qapp, 620, 460) as board:
        yield board


def _view(board: Board, name: str) -> None:
    box = board.panel.tools.view
    box.setCurrentIndex(box.findData(name))
    board.settle()


def _figure(board: Board, name: str) -> None:
    box = board.panel.tools.figure
    box.setCurrentIndex(box.findData(name))
    board.settle()


def test_arcs_isolate_the_token_under_the_cursor(board: Board) -> None:
    board.show(trace=Run().prefill(12))
    _view(board, "arcs")
    row = board.panel.pages.arcs.rows[0]
    assert row._arcs is not None
    assert len(row._arcs.weights) == 12 * 13 // 2
    whole = row.grab().toImage()
    row.setFocus()
    row.go_to(4, 4)
    assert board.panel.readout.text().split(" attends ")[0].endswith("(4)")
    assert board.state.selection.key == 4
    assert row.grab().toImage() != whole
    QTest.keyClick(row, Qt.Key.Key_Right)
    assert row.current == (5, 5)
    QTest.keyClick(row, Qt.Key.Key_Up)
    assert row.current == (4, 4)


def test_a_row_as_bars_reads_what_the_row_reads(board: Board) -> None:
    trace = Run().prefill(10)
    board.show(trace=trace)
    _view(board, "row")
    bars = board.panel.pages.row.bars_shown
    read = figures.row(trace, 0, 0, 0, 9)
    assert [row.key for row in bars.rows[:3]] == [key for key, _ in read.top_keys(3)]
    board.select(query=3)
    assert {row.key for row in board.panel.pages.row.bars_shown.rows if row.first > 0} <= {
        -1, 0, 1, 2, 3
    }  # fmt: skip
    bars.hovered.emit(2)
    assert "(3)" in board.panel.readout.text()
    assert "(2)" in board.panel.readout.text()


@pytest.mark.parametrize(
    ("name", "title", "caveat"),
    [
        ("sinkless", "Layer 1 · head 2", "first token"),
        ("mean_heads", "Layer 1 · mean", "mean"),
        ("max_heads", "Layer 1 · max", "largest"),
        ("mean_layers", "All layers · mean", "mean"),
        ("max_layers", "All layers · max", "largest"),
        ("rollout", "Rollout to layer 1", "estimate"),
    ],
)
def test_what_is_not_the_models_own_says_so(
    board: Board, name: str, title: str, caveat: str
) -> None:
    board.show(trace=Run().prefill(8))
    board.select(layer=1, head=2)
    _figure(board, name)
    assert board.panel.tools.name.text() == title
    assert board.panel.caveat.isVisible()
    assert caveat in board.panel.caveat.text()
    drawn = board.panel._drawn
    assert drawn is not None
    assert drawn.maps[0] is not None
    if name != "head" and not name.startswith("max"):
        np.testing.assert_allclose(drawn.maps[0].map.weights[-1].sum(), 1, atol=1e-5)
    _figure(board, "head")
    assert not board.panel.caveat.isVisible()


def test_two_heads_of_a_prompt_are_saved_under_two_names(board: Board) -> None:
    run = Run()
    board.show(trace=run.decode(run.prefill(8)))
    board.settle()
    of = []
    for changes in ({"layer": 0, "head": 1}, {"layer": 1, "head": 2}, {"step": 0}):
        board.select(**changes)
        board.settle()
        of.append(board.panel.views()["Attention map"].of)
    assert of == ["Layer 0 · head 1 · token 2", "Layer 1 · head 2 · token 2", "Layer 1 · head 2"]
    _figure(board, "sinkless")
    assert board.panel.views()["Attention map"].of == "Layer 1 · head 2 · no first token"
    _figure(board, "max_heads")
    _view(board, "row")
    assert board.panel.views()["Row"].of == "Layer 1 · max · position 7"


WORDS = [b" the", b" cat", b" saw", b" the", b" dog"]


def _said(board: Board) -> str:
    return board.panel.heads.go_to._said.text()


def test_go_to_a_token_by_number_or_text(board: Board) -> None:
    board.show(trace=Run().prefill(5, WORDS))
    board.settle()
    box = board.panel.heads.go_to
    board.panel.begin_go_to()
    assert box.query.hasFocus()
    QTest.keyClicks(box.query, "2")
    QTest.keyClick(box.query, Qt.Key.Key_Return)
    assert board.state.selection.query == 2
    assert board.panel.pages.maps.maps[0].current == (2, 2)
    assert not box.isVisible()
    assert board.panel.pages.maps.maps[0].hasFocus(), "the arrows go on from there"
    box.wanted.emit("the", "")
    assert board.state.selection.query == 3, "the next one, not the first"
    box.wanted.emit("the", "")
    assert board.state.selection.query == 0
    box.wanted.emit("zebra", "")
    assert "No token matches 'zebra'" in _said(board)


def test_a_query_and_a_key_tell_the_heads_with_most_weight(board: Board) -> None:
    run = Run(layers=3)
    trace = run.prefill(5, WORDS)
    board.show(trace=trace)
    board.settle()
    box = board.panel.heads.go_to
    board.panel.begin_go_to()
    QTest.keyClicks(box.query, "dog")
    QTest.keyClick(box.query, Qt.Key.Key_Tab)
    assert box.key.hasFocus()
    QTest.keyClicks(box.key, "saw")
    QTest.keyClick(box.key, Qt.Key.Key_Return)
    board.settle()
    assert (board.state.selection.query, board.panel.pages.maps.maps[0].current) == (None, (4, 2))
    weights = {
        (layer, head): float(full_map(trace, 0, layer, head).weights[4, 2])
        for layer in range(3)
        for head in range(run.heads)
    }
    ranked = sorted(weights, key=lambda at: -weights[at])
    header, *rows = board.panel.views()["Heads of one query and key"].table()  # type: ignore[misc]
    assert header == ("layer", "head", "query", "key", "weight")
    assert [row[:2] for row in rows] == ranked[: len(rows)]
    first = box.heads.item(0)
    assert first.text() == f"L{ranked[0][0]} H{ranked[0][1]}   {percent(weights[ranked[0]])}"
    assert "'\u2068␣dog\u2069' (4) to '" in _said(board)
    last = box.heads.count() - 1
    board.select(layer=ranked[last][0], head=ranked[last][1])
    box.wanted.emit("4", "2")
    board.settle()
    assert box.heads.currentRow() == last
    assert box.heads.visualItemRect(box.heads.item(0)).top() >= 0, "the best head is seen"
    for row in (2, 0):
        where = box.heads.visualItemRect(box.heads.item(row)).center()
        QTest.mouseClick(box.heads.viewport(), Qt.MouseButton.LeftButton, pos=where)
        assert (board.state.selection.layer, board.state.selection.head) == ranked[row]
    board.show(trace=run.decode(trace))
    board.settle()
    assert box.ranking is not None, "it follows the run"
    QTest.keyClick(box.heads, Qt.Key.Key_Escape)
    assert not box.isVisible()


def test_a_key_that_no_head_may_read_is_said(board: Board) -> None:
    board.show(trace=Run().prefill(5, WORDS))
    board.settle()
    board.panel.begin_go_to()
    board.panel.heads.go_to.wanted.emit("1", "4")
    board.settle()
    assert "hidden by the causal mask" in _said(board)
    board.panel.heads.go_to.wanted.emit("1", "zebra")
    assert "No token matches 'zebra'" in _said(board)
    board.show(trace=None)
    assert _said(board) == ""


def test_thousands_of_tokens_keep_every_hot_cell_in_a_difference() -> None:
    from explorer.figures.attention.difference import MIDDLE
    from explorer.figures.drawing.map_viewport import CellView, smaller

    levels = np.full((9000, 9000), MIDDLE, np.uint8)
    levels[4321, 17], levels[8000, 8500] = 250, 5
    view = CellView()
    view.set_size(300, 300, 56)
    view.set_cells(9000, 9000)
    for pooled in ((), smaller(levels, signed=True)):
        shown = view.pixels(levels, 1.0, pooled, signed=True)
        assert (int(shown.max()), int(shown.min())) == (250, 5)
