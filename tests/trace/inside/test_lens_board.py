"""What an engine finds inside a model is a result only if its arrays fit together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.trace.experiments import UnfitAnswer, read_result
from explorer.trace.inside.arrays import packed
from explorer.trace.inside.lens import LensBoard

BOARD: dict[str, Any] = {
    "rows": ["embedding", "final"],
    "slots": [3],
    "asked": 1,
    "top": 2,
    "id_bytes": packed([[[5, 6]], [[6, 7]]], "<i4"),
    "probability_bytes": packed([[[0.5, 0.25]], [[0.75, 0.125]]]),
    "entropy_bytes": packed([[1.0], [2.0]]),
    "kl_bytes": packed([[1.0], [0.0]]),
    "final_rank_bytes": packed([[1], [0]], "<i4"),
    "final_probability_bytes": packed([[0.25], [0.75]]),
    "spelled_ids": [5, 6, 7],
    "spelled": [b"a", b"b", b"c"],
    "final_gap": 0.0,
    "tolerance": 1e-4,
}


def test_a_board_is_read() -> None:
    board = read_result(BOARD, LensBoard)
    assert board.ids.tolist() == [[[5, 6]], [[6, 7]]]
    assert board.probabilities[1, 0].tolist() == [0.75, 0.125]
    assert board.rank_of_final.tolist() == [[1], [0]]
    assert board.spelling[7] == b"c"


@pytest.mark.parametrize(
    "spoilt",
    [
        {"rows": ["final"]},
        {"slots": [3, 4]},
        {"top": 3},
        {"top": 0},
        {"spelled": [b"a"]},
        {"entropy_bytes": b""},
        {"kl_bytes": packed([[np.nan], [0.0]])},
        {"final_rank_bytes": b"123"},
        {"final_gap": float("nan")},
    ],
)
def test_a_board_has_one_figure_a_cell(spoilt: dict[str, Any]) -> None:
    with pytest.raises(UnfitAnswer):
        read_result({**BOARD, **spoilt}, LensBoard)
