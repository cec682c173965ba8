"""The heads that put most weight from one token on another, beside the maps themselves."""

from __future__ import annotations

from typing import Any

import pytest

from explorer.figures.attention.maps import full_map
from explorer.figures.attention.strongest_heads import HeadWeight, Ranking, rank
from explorer.trace.trace import Trace
from tests.figures.runs import Run


def _ranked(trace: Trace, step: int, query: int, key: int, count: int = 100) -> Ranking:
    *shares, last = rank(trace, step, query, key, count)
    assert isinstance(last, Ranking)
    assert shares[-1] == 1
    return last


@pytest.mark.parametrize(
    "options",
    [{}, {"sinks": True, "softcap": 5.0}, {"absent": (1,)}, {"window": 4}, {"padding": 2}],
)
def test_every_head_is_ranked_by_the_weight_that_its_map_has(options: dict[str, Any]) -> None:
    run = Run(layers=3, **options)
    trace = run.decode(run.prefill(7), 2)
    step = len(trace.steps) - 1
    for query, key in ((6, 5), (8, 6), (4, 4)):
        found = _ranked(trace, step, query, key)
        layers = [layer for layer in range(3) if layer not in options.get("absent", ())]
        wanted = [
            HeadWeight(la, h, float(full_map(trace, step, la, h).weights[query, key]))
            for la in layers
            for h in range(run.heads)
        ]
        wanted.sort(key=lambda one: -one.weight)
        assert [(one.layer, one.head) for one in found.heads] == [
            (one.layer, one.head) for one in wanted
        ]
        assert [one.weight for one in found.heads] == pytest.approx(
            [one.weight for one in wanted], abs=1e-6
        )


def test_the_list_is_short() -> None:
    assert len(_ranked(Run(layers=4).prefill(5), 0, 4, 1, count=3).heads) == 3


def test_what_no_head_may_read_is_said() -> None:
    later = _ranked(Run().prefill(6), 0, 2, 4)
    assert (later.heads, later.why) == ((), "it is a later token, hidden by the causal mask")
    far = _ranked(Run(window=3).prefill(9), 0, 8, 1)
    assert not far.heads
    assert "window" in far.why
