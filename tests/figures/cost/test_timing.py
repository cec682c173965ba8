"""Timings: only measured times, warm-up left out of the median, positions counted as in class."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.figures.cost import timing
from explorer.trace.cost.lap import Lap
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.wording import ms_text
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
    assert figure.decode is not None
    assert figure.decode.median == 20
    assert figure.tokens_per_second == 50


def test_warm_up_is_left_out_of_the_median() -> None:
    figure = timing.chart(trace([100, 500, 10, 20], warm=(0, 1)), 0)
    assert figure.decode is not None
    assert figure.decode.median == 15
    assert [p.warm_up for p in figure.passes] == [True, True, False, False]


def test_one_pass_has_no_speed() -> None:
    figure = timing.chart(trace([100]), 0)
    assert figure.decode is None
    assert figure.tokens_per_second is None


def test_capture_is_apart_from_the_pass() -> None:
    one = timing.chart(trace([100]), 0).passes[0]
    assert (one.forward_ms, one.capture_ms) == (100, 0.5)


def test_parts_of_the_selected_pass_add_up() -> None:
    figure = timing.chart(trace([100, 40]), 1)
    assert figure.split.layers.tolist() == [1, 1]
    assert figure.split.outside == (("rest", 38),)
    assert sum(figure.passes[1].pieces) == 40


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


def test_what_was_in_the_cache_before_the_run_is_told() -> None:
    made = trace([1, 1])
    read_on = replace(made.steps[0], first_slot=4)  # 3 of 7 slots were read
    figure = timing.chart(replace(made, steps=(read_on, *made.steps[1:])), 0)
    assert (figure.reused_tokens, figure.prefill_tokens) == (4, 3)


def test_layers_that_overlap_never_make_the_rest_negative() -> None:
    made = trace([1])
    step = replace(made.steps[0], layer_ms=np.array([1, 1], np.float32))
    assert timing.chart(replace(made, steps=(step,)), 0).split.outside_ms == 0


def with_parts(made: Trace, index: int) -> Trace:
    """The step at `index` with a clock on every part: 10 ms in all, 2 of them in no part."""
    step = replace(
        made.steps[index],
        forward_ms=10.0,
        layer_ms=np.array([3, 2], np.float32),
        attention_ms=np.array([1.5, np.nan], np.float32),
        mlp_ms=np.array([1, 2], np.float32),
        embedding_ms=0.5,
        norm_ms=0.5,
        head_ms=2.0,
    )
    return replace(made, steps=(*made.steps[:index], step, *made.steps[index + 1 :]))


def test_a_layer_is_attention_mlp_and_what_is_between_them() -> None:
    figure = timing.chart(with_parts(trace([100, 40]), 1), 1)
    split = figure.split
    assert split.has_parts
    assert split.attention.tolist() == [1.5, 0]
    assert split.mlp.tolist() == [1, 2]
    assert split.rest.tolist() == [0.5, 0]
    assert split.layers.tolist() == [3, 2]
    assert split.outside == (("embedding", 0.5), ("norm", 0.5), ("head", 2.0), ("rest", 2.0))
    assert dict(zip(timing.PIECES, figure.passes[1].pieces, strict=True)) == {
        "embedding": 0.5, "attention": 1.5, "mlp": 3, "layer rest": 0.5, "norm": 0.5, "head": 2,
        "rest": 2,
    }  # fmt: skip


def test_the_middle_half_of_the_passes_is_told() -> None:
    figure = timing.chart(trace([100, *range(10, 19)]), 0)
    assert figure.decode == timing.Spread(14, 12, 16, 9)


def test_a_whole_step_is_its_parts() -> None:
    lap = Lap(waited_ms=12.0, display_ms=3.0)
    one = timing.chart(trace([10]), 0, lambda _: lap).passes[0]
    assert one.step_ms == 15
    assert one.course == (10, 0.5, 0, 1.5, 3)


def test_what_was_not_measured_is_not_known() -> None:
    unseen = timing.chart(trace([10]), 0).passes[0]
    assert (unseen.step_ms, unseen.course[3:]) == (None, (None, None))
    overtaken = timing.chart(trace([10]), 0, lambda _: Lap(12.0)).passes[0]
    assert overtaken.step_ms is None
    assert overtaken.course[3:] == (1.5, None)


def test_passes_of_the_same_steps_are_taken_over_and_new_laps_are_not_missed() -> None:
    made = trace([10, 5, 6, 7])
    before = timing.chart(made.truncated(3), 0)
    lap = Lap(12.0, 1.0)
    after = timing.chart(made, 1, lambda _: lap, before.passes)
    assert after.passes[0] is before.passes[0]
    assert [one.lap for one in after.passes[1:]] == [lap] * 3
    assert [one.forward_ms for one in after.passes] == [10, 5, 6, 7]


def test_passes_of_another_run_are_not_taken_over() -> None:
    before = timing.chart(trace([10, 5, 6]), 0)
    other = timing.chart(trace([1, 2, 3, 4]), 0, known=before.passes)
    assert [one.forward_ms for one in other.passes] == [1, 2, 3, 4]
    shorter = timing.chart(trace([7]), 0, known=before.passes)
    assert [one.forward_ms for one in shorter.passes] == [7]


@pytest.mark.parametrize(
    ("ms", "words"),
    [(0.1234, "0.123 ms"), (38.04, "38 ms"), (387.2, "387 ms"), (12_345, "12.3 s")],
)
def test_milliseconds_in_words(ms: float, words: str) -> None:
    assert ms_text(ms) == words
