"""Strokes over a map as areas, and what a cell shows before and after a run takes them."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.figures.attention.strokes import (
    ALLOWED_NEXT,
    ALLOWED_NOW,
    AS_IT_IS,
    CUT_NEXT,
    CUT_NOW,
    RESTORED_NEXT,
    DrawnMask,
    MaskBrush,
    between,
    rectangles,
)
from explorer.trace.interventions.cells import CUT, of_head
from explorer.trace.interventions.kinds import Intervention, written
from explorer.trace.interventions.lines import read


def lines(*some: str) -> tuple[Intervention, ...]:
    return tuple(map(read, some))


@pytest.mark.parametrize(
    ("brush", "path", "expected"),
    [
        (MaskBrush(), [(5, 3)], ["cut 1.2:5<-3"]),
        (
            MaskBrush(),
            [(5, 3), (5, 4), (6, 3), (6, 4), (8, 0)],
            ["cut 1.2:5-6<-3-4", "cut 1.2:8<-0"],
        ),
        (MaskBrush("allow", "rectangle", "layer"), [(5, 3), (2, 7)], ["allow 1.*:2-5<-3-7"]),
        (MaskBrush("restore", "rows", "all"), [(5, 3), (6, 1)], ["restore *.*:5-6<-*"]),
        (MaskBrush("cut", "columns"), [(5, 0), (9, 0)], ["cut 1.2:*<-0"]),
        (MaskBrush("cut", "diagonals"), [(5, 4), (5, 2)], ["cut 1.2:*<-q-1-3"]),
        (MaskBrush("cut", "diagonals"), [(5, 5), (5, 9)], ["cut 1.2:*<-q-0"]),
        (MaskBrush("cut", "diagonals"), [(5, 8), (5, 9)], []),
        (MaskBrush("cut", "outside"), [(5, 1), (5, 3)], ["cut 1.2:*<-q-2+"]),
    ],
)
def test_a_stroke_is_as_few_areas_as_it_makes_up(brush, path, expected) -> None:
    assert written(brush.areas(path, 1, 2)) == expected


def test_rectangles_are_the_same_cells() -> None:
    random = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        cells = {(int(q), int(k)) for q, k in np.argwhere(random.random((9, 9)) < share)}
        found = [
            (q, k)
            for (first, last), (left, right) in rectangles(cells)
            for q in range(first, last + 1)
            for k in range(left, right + 1)
        ]
        assert len(found) == len(cells)
        assert set(found) == cells
        areas = MaskBrush().areas(sorted(cells), 0, 0)
        states = of_head(areas, 0, 0, (0, 9), (0, 9))
        assert {(int(q), int(k)) for q, k in np.argwhere(states == CUT)} == cells


def test_a_fast_mouse_leaves_no_gap() -> None:
    path = [(2, 2), *between((2, 2), (5, 9)), *between((5, 9), (5, 9))]
    assert path[-1] == (5, 9)
    steps = np.abs(np.diff(np.array(path), axis=0)).max(axis=1)
    assert (steps == 1).all()


def test_what_a_cell_shows_before_and_after_the_run_takes_it() -> None:
    mask = DrawnMask(
        lines("cut 1.0:5<-3", "cut 1.0:6<-3", "allow 1.0:2<-5"),
        lines("cut 1.0:5<-3", "allow 1.0:2-3<-5", "cut 1.0:*<-0", "cut 1.1:7<-7"),
        1,
        0,
    )
    shown = mask.states((0, 8), (0, 8))
    assert shown[5, 3] == CUT_NOW
    assert shown[6, 3] == RESTORED_NEXT
    assert shown[2, 5] == ALLOWED_NOW
    assert shown[3, 5] == ALLOWED_NEXT
    assert (shown[:, 0] == CUT_NEXT).all()
    assert shown[7, 7] == shown[4, 4] == AS_IT_IS
    assert [mask.state(q, k) for q, k in ((5, 3), (6, 3), (7, 7))] == [
        CUT_NOW, RESTORED_NEXT, AS_IT_IS,
    ]  # fmt: skip
    np.testing.assert_array_equal(mask.states((2, 6), (1, 5)), shown[2:6, 1:5])
    coarse = mask.states((0, 8), (0, 8), 2)
    assert coarse.shape == (4, 4)
    assert coarse[2, 1] == CUT_NOW
    assert not mask.empty
    assert DrawnMask(lines("cut 1.1:7<-7", "silence 1.0"), (), 1, 0).empty


def test_a_cut_above_the_diagonal_changes_nothing_under_the_mask() -> None:
    for causal in (True, False):
        mask = DrawnMask((), lines("cut *.*:3<-*"), 0, 0, causal)
        assert mask.state(3, 2) == CUT_NEXT
        assert mask.state(3, 5) == (AS_IT_IS if causal else CUT_NEXT)


def test_queries_that_lose_their_last_key_are_known() -> None:
    mask = DrawnMask((), lines("cut *.*:*<-0", "cut 0.*:4<-*", "cut 0.0:5<-1-5"), 0, 0)
    assert mask.emptied(0, 7, 8) == [0, 4, 5]
    assert mask.emptied(3, 4, 8) == [4]
    allowed = DrawnMask((), lines("cut 0.0:4<-*", "allow 0.0:4<-6"), 0, 0)
    assert allowed.emptied(0, 7, 8) == []
    assert DrawnMask((), lines("cut 0.0:4<-0-4"), 0, 0, False).emptied(0, 7, 8) == []
