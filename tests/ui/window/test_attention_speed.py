"""What a comparison of thousands of tokens costs: the window's thread little, a head's maps soon.

Processor time, not time on the clock, and more of it where the machine is slower right now.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time

import numpy as np
import pytest
from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication

from explorer.figures.attention.map_request import DrawnMaps, HeadInStep, MapRequest, Sides, draw
from explorer.figures.text.tokens import labels
from explorer.trace.comparison import Comparison, other_side
from explorer.trace.trace import Trace
from explorer.ui.panels.attention import tables
from tests.figures.runs import Run
from tests.ui.board import Board, shown_board
from tests.ui.pace import slowness

LENGTH = 2048
TURN_MS = 30.0  # of one turn of Qt's loop; 14 are measured
PAIR_MS = 400.0  # both maps of a head and their difference; about 150 are measured


@pytest.fixture(scope="module")
def long() -> tuple[Trace, Comparison]:
    sizes = {"layers": 2, "heads": 3, "kv_heads": 1, "head_dim": 64}
    trace = Run(**sizes).prefill(LENGTH)  # type: ignore[arg-type]
    other = Run(seed=1, causal=False, **sizes).prefill(LENGTH).steps[0]  # type: ignore[arg-type]
    return trace, Comparison((), other_side(trace.request), other)


@pytest.fixture
def board(qapp: QApplication, long: tuple[Trace, Comparison]) -> Iterator[Board]:
    with shown_board(qapp, 590, 510) as board:
        board.show(trace=long[0], comparing=True, comparison=long[1])
        board.settle()
        yield board


def _turns(app: QApplication, board: Board) -> list[float]:
    """Milliseconds of this thread in each turn until nothing is worked out any more."""
    found = []
    busy = True
    while busy:
        busy = board.panel.source.busy
        began = thread_time()
        app.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        found.append(1000 * (thread_time() - began))
    return found


@pytest.mark.timeout(120)
def test_another_head_or_comparison_never_holds_the_window_up(
    qapp: QApplication, board: Board
) -> None:
    spent = []
    choice = board.panel.compare_bar.choice
    for head, beside in ((1, "run"), (2, "scores"), (0, "run")):
        choice.setCurrentIndex(choice.findData(beside))
        began = thread_time()
        board.select(head=head)
        spent += [1000 * (thread_time() - began), *_turns(qapp, board)]
        assert board.panel._drawn is not None
        assert board.panel._drawn.request.look.head == head
    assert max(spent) < TURN_MS * slowness()


def test_both_maps_of_a_head_are_there_soon(long: tuple[Trace, Comparison]) -> None:
    trace, other = long
    sides = Sides()
    spent = []
    for head in (0, 1, 2):
        request = MapRequest(look=HeadInStep(trace, 0, 1, head), beside="run", other=other)
        began = thread_time()
        *_, drawn = draw(request, sides, None)
        spent.append(1000 * (thread_time() - began))
        assert isinstance(drawn, DrawnMaps)
        assert all(drawn.maps)
    assert min(spent) < PAIR_MS * slowness()


def test_an_export_asks_little_of_the_window_before_it_begins(board: Board) -> None:
    drawn = board.panel._drawn
    assert drawn is not None
    began = thread_time()
    view = next(iter(board.panel.views().values()))
    assert view.table is not None
    assert view.array is not None
    rows, array = view.table(), view.array()
    assert 1000 * (thread_time() - began) < TURN_MS * slowness()
    board.select(head=2)
    board.settle()
    written = labels(board.state.trace.tokens)  # type: ignore[union-attr]
    assert list(zip(range(3), rows, strict=False)) == list(
        zip(range(3), tables.maps(drawn, written), strict=False)
    ), "as it was on screen then"
    np.testing.assert_array_equal(array(), tables.array(drawn))
