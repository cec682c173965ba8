"""Timings: only measured times, warm-up left out of the median, positions counted as in class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.figures import timing
from explorer.figures.timing import ms_text
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from tests.session.scripted import card, stepped


def trace(times: list[float], warm: tuple[int, ...] = (), *, recompute: bool = False) -> Trace:
    made = Trace(request=RunRequest(model="tiny"), card=card(), prompt=())
    for index, ms in enumerate(times):
        event = stepped(0, index, recompute=recompute)
        step = replace(event.step, forward_ms=ms, warm_up=index in warm, capture_ms=0.5)
        made = made.appended(step, event.token)
    return made


def test_the_median_is_of_the_passes_after_the_prefill() -> None:
    figure = timing.chart(trace([100, 10, 30, 20]), 0)
    assert figure.prefill_ms == 100
    assert figure.median_ms == 20
    assert figure.tokens_per_second == 50


def test_warm_up_is_left_out_of_the_median() -> None:
    figure = timing.chart(trace([100, 500, 10, 20], warm=(0, 1)), 0)
    assert figure.median_ms == 15
    assert [p.warm_up for p in figure.passes] == [True, True, False, False]


def test_one_pass_has_no_speed() -> None:
    figure = timing.chart(trace([100]), 0)
    assert figure.median_ms is None
    assert figure.tokens_per_second is None


def test_capture_is_apart_from_the_pass() -> None:
    one = timing.chart(trace([100]), 0).passes[0]
    assert (one.forward_ms, one.capture_ms) == (100, 0.5)


def test_parts_of_the_selected_pass_add_up() -> None:
    figure = timing.chart(trace([100, 40]), 1)
    assert figure.layer_ms.tolist() == [1, 1]
    assert figure.outside_layers_ms == 38
    assert float(figure.layer_ms.sum()) + figure.outside_layers_ms == 40


def test_positions_with_and_without_a_cache() -> None:
    """A prompt of 3 and 5 passes: 3 + 1 + 1 + 1 + 1 against 3 + 4 + 5 + 6 + 7."""
    cached = timing.chart(trace([1] * 5), 0)
    assert (cached.positions, cached.positions_without_cache) == (7, 25)
    recomputed = timing.chart(trace([1] * 5, recompute=True), 0)
    assert (recomputed.positions, recomputed.positions_without_cache) == (25, 25)


def test_a_rebuilt_cache_counts() -> None:
    made = trace([1, 1])
    rebuilt = replace(made.steps[1], rebuilt_tokens=3)
    figure = timing.chart(replace(made, steps=(made.steps[0], rebuilt)), 0)
    assert figure.positions == 3 + 1 + 3


def test_layers_that_overlap_never_make_the_rest_negative() -> None:
    made = trace([1])
    step = replace(made.steps[0], layer_ms=np.array([1, 1], np.float32))
    assert timing.chart(replace(made, steps=(step,)), 0).outside_layers_ms == 0


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0.1234, "0.123 ms"), (38.04, "38 ms"), (387.2, "387 ms"), (12_345, "12.3 s")],
)
def test_milliseconds_in_words(ms: float, words: str) -> None:
    assert ms_text(ms) == words
