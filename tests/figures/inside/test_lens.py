"""Columns of the lens: how long they hold, what they say, and their colours."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from explorer.figures.inside import lens
from explorer.figures.inside.lens import LensColumns
from explorer.trace.trace import Trace
from tests.figures.inside.boards import board
from tests.session.saving.test_trace_files import made_trace


def true_slots(known: LensColumns, trace: Trace, step: int) -> list[int]:
    return [slot for slot, one in enumerate(known.true_of(trace, step)) if one is not None]


def test_a_column_holds_as_long_as_the_tokens_up_to_it_are_the_same() -> None:
    trace = made_trace()
    last = len(trace.steps) - 1
    slots = range(trace.read_slots(last))
    known = LensColumns().with_result(board(slots), trace.chosen_ids[:last])
    assert true_slots(known, trace, last) == list(slots)
    assert true_slots(known, trace, 0) == list(slots)[: trace.read_slots(0)]
    first = msgspec.structs.replace(trace.chosen[0], id=99)
    other = replace(trace, chosen=(first, *trace.chosen[1:]))
    assert true_slots(known, other, last) == list(range(len(trace.prompt)))


def test_without_the_mask_a_column_holds_for_its_own_step_alone() -> None:
    trace = made_trace()
    free = msgspec.structs.replace(trace.request, causal_mask=False)
    trace = replace(trace, request=free)
    known = LensColumns().with_result(board(range(3)), ())
    assert true_slots(known, trace, 0) == [0, 1, 2]
    assert true_slots(known, trace, 1) == []


def test_columns_that_were_read_one_by_one_are_one_board() -> None:
    trace = made_trace()
    known = LensColumns().with_result(board([0]), ()).with_result(board([2], best=9), ())
    first, none, third = known.true_of(trace, 0)
    assert none is None
    assert first is not None
    assert third is not None
    assert (first.final_id, third.final_id) == (5, 9)
    assert [token.raw for token, _ in known.top(third, 2)] == [b" a", b"\n"]


def test_levels_are_of_what_the_cells_are_coloured_by() -> None:
    known = LensColumns().with_result(board([0]), ())
    column = known.columns[0]
    assert column.level(0, "probability", 16) == pytest.approx(0.75)
    assert column.level(0, "rank", 16) == pytest.approx(0.75)  # the second of 16
    assert column.level(2, "rank", 16) == 1
    assert column.level(0, "entropy", 16) == pytest.approx(0.5)
    assert column.level(0, "kl", 16) == pytest.approx(0.75)


@pytest.mark.parametrize(("slot", "row"), [(0, 1), (1, 2)])
def test_it_is_known_from_which_row_on_the_final_choice_is_first(slot: int, row: int) -> None:
    column = LensColumns().with_result(board([slot]), ()).columns[slot]
    assert lens.settled_from(column) == row


def test_the_table_has_every_cell_that_was_read() -> None:
    known = LensColumns().with_result(board([1]), ())
    rows = list(lens.table(known, [None, known.columns[1]]))
    assert rows[0][:2] == ("row", "position")
    assert [row[:3] for row in rows[1:]] == [("embedding", 1, 7), ("0", 1, 7), ("final", 1, 5)]
