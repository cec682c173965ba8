"""One figure per head, checked against the maps row by row."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from explorer.figures.attention import head_scores as figures
from explorer.figures.attention.head_scores import HeadScores, Kind
from explorer.figures.attention.head_weights import columns_read
from explorer.figures.attention.map_blocks import blocks
from explorer.figures.attention.maps import full_map
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.figures.runs import Run

VARIANTS = {
    "plain": Run(),
    "grouped heads": Run(heads=8, kv_heads=2),
    "sinks": Run(sinks=True),
    "window": Run(window=4),
    "left padding": Run(padding=2),
    "absent layer": Run(layers=3, absent=(1,)),
}


def _last(trace: Trace, step: int, kind: Kind, known: HeadScores | None = None) -> HeadScores:
    *_, found = figures.scores(trace, step, kind, known)
    assert found.complete
    return found


def _repeating(run: Run) -> Trace:
    """A prompt in which tokens come back: slots 4 to 7 repeat 0 to 3 and so on."""
    from dataclasses import replace

    trace = run.prefill(11)
    prompt = tuple(Token(i % 4, t.raw, t.origin) for i, t in enumerate(trace.prompt))
    return run.decode(replace(trace, prompt=prompt), 4)


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("name", VARIANTS)
def test_means_are_those_of_the_maps(name: str, kind: Kind) -> None:
    trace = _repeating(VARIANTS[name])
    found = _last(trace, 4, kind)
    wanted = figures.targets(trace.tokens, 15, kind)
    for layer, heads in enumerate(found.heads):
        for head in range(heads):
            whole = full_map(trace, 4, layer, head).weights.astype(float)
            if kind == "entropy":
                rows = [r[r > 0] for q, r in enumerate(whole) if wanted[q] >= 0]
                each = [-(r * np.log(r)).sum() for r in rows]
            else:
                each = [whole[q, k] for q, k in enumerate(wanted) if k >= 0]
            assert found.means[layer, head] == pytest.approx(np.mean(each), abs=1e-6)
        assert np.isnan(found.means[layer, heads:]).all()


def test_what_each_query_is_asked_about() -> None:
    tokens = tuple(
        Token(i, b"x", "padding" if n == 0 else "prompt") for n, i in enumerate([9, 5, 6, 5, 5, 6])
    )
    assert figures.targets(tokens, 6, "first").tolist() == [-1, -1, 1, 1, 1, 1]
    assert figures.targets(tokens, 6, "previous").tolist() == [-1, -1, 1, 2, 3, 4]
    # 5 at slot 3 came before at 1: look at 2; at slot 4 it came just before: nothing is between;
    # 6 at slot 5 came before at 2: look at 3.
    assert figures.targets(tokens, 6, "induction").tolist() == [-1, -1, -1, 2, -1, 3]


@pytest.mark.parametrize("kind", get_args(Kind))
def test_growing_is_counting_anew(kind: Kind) -> None:
    trace = _repeating(Run())
    known = _last(trace, 0, kind)
    for step in range(1, 5):
        known = _last(trace, step, kind, known)
        np.testing.assert_allclose(known.means, _last(trace, step, kind).means, atol=1e-6)


def test_stepping_back_does_not_keep_later_rows() -> None:
    trace = _repeating(Run())
    found = _last(trace, 1, "previous", _last(trace, 4, "previous"))
    np.testing.assert_allclose(found.means, _last(trace, 1, "previous").means, atol=1e-9)


def test_the_order_puts_the_head_one_looks_for_first() -> None:
    sums = np.array([[1.0, 4.0], [3.0, 9.0]])
    found = HeadScores("induction", sums, 10, (2, 1), 5, (), True)
    assert found.order() == [(0, 1), (1, 0), (0, 0)]
    spread = HeadScores("entropy", sums, 10, (2, 1), 5, (), True)
    assert spread.order() == [(0, 0), (1, 0), (0, 1)]


def test_one_token_has_nothing_to_ask_about() -> None:
    found = _last(Run().prefill(1), 0, "previous")
    assert np.isnan(found.means).all()
    assert found.order() == [(layer, head) for layer in range(2) for head in range(4)]


def test_keys_that_no_row_may_read_are_not_worked_out() -> None:
    for run, wanted in ((Run(), slice(0, 8)), (Run(window=3), slice(3, 8))):
        (block,) = blocks(run.prefill(12), 0, 0)
        assert columns_read(block, slice(5, 8)) == wanted
    (block,) = blocks(Run(padding=4).prefill(12), 0, 0)
    assert columns_read(block, slice(0, 3)) == slice(0, 0)


def test_how_much_is_done_is_told_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer.figures.attention.head_weights._WEIGHTS_AT_ONCE", 64)
    trace = Run(layers=3, absent=(1,)).prefill(20)
    found = [part.done for part in figures.scores(trace, 0, "previous")]
    assert len(found) > 5
    assert found == sorted(found)
    assert found[0] < 0.3
    assert found[-2:] == [1.0, 1.0]
