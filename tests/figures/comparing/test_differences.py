"""Two runs step by step: figures recomputed by hand, and nothing where nothing can be compared."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from explorer.figures.comparing import differences
from explorer.figures.comparing.alignment import one_vocabulary
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from tests.session.scripted import played


def with_logits(trace: Trace, index: int, logits: np.ndarray) -> Trace:
    steps = list(trace.steps)
    steps[index] = replace(steps[index], logits=logits.astype(np.float32))
    return replace(trace, steps=tuple(steps))


def softmax(logits: np.ndarray) -> np.ndarray:
    grown = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(grown / grown.sum())


def test_a_run_differs_in_nothing_from_itself() -> None:
    trace = played()
    for one in differences.steps(trace, trace):
        assert (one.same_choice, one.kl_bits, one.total_variation, one.logits) == (True, 0, 0, 0)
        assert one.maps is not None
        assert one.maps.difference == 0


def test_figures_are_those_of_the_two_distributions() -> None:
    trace = played()
    other = trace.steps[1].logits.copy()
    other[3] += 2.5
    found = differences.steps(trace, with_logits(trace, 1, other))
    p, q = softmax(trace.steps[1].logits), softmax(other)
    assert found[0].kl_bits == 0
    assert found[1].kl_bits == pytest.approx(float((p * np.log2(p / q)).sum()))
    assert found[1].total_variation == pytest.approx(float(np.abs(p - q).sum() / 2))
    assert found[1].logits == pytest.approx(2.5)


def test_a_token_that_only_one_side_allows_is_infinitely_far() -> None:
    trace = played()
    cut = trace.steps[0].logits.copy()
    cut[:5] = -np.inf
    assert differences.steps(trace, with_logits(trace, 0, cut))[0].kl_bits == np.inf
    assert differences.steps(with_logits(trace, 0, cut), trace)[0].kl_bits > 0
    both = differences.steps(with_logits(trace, 0, cut), with_logits(trace, 0, cut))[0]
    assert (both.kl_bits, both.logits) == (0, 0)


def test_the_head_that_differs_most_is_named() -> None:
    trace = played()
    step = trace.steps[0]
    record = step.layers[1]
    assert record.queries is not None
    queries = record.queries.copy()
    queries[:, 1] *= -4
    layers = (step.layers[0], replace(record, queries=queries))
    other = replace(trace, steps=(replace(step, layers=layers), *trace.steps[1:]))
    found = differences.steps(trace, other)[0].maps
    assert found is not None
    assert (found.layer, found.head) == (1, 1)
    gap = np.abs(trace.weights(0, 1, 1) - other.weights(0, 1, 1)).max()
    assert found.difference == pytest.approx(float(gap))


def test_other_tokens_have_no_maps_to_compare() -> None:
    trace = played()
    other = replace(trace, prompt=(Token(39, b"z"), *trace.prompt[1:]))
    found = differences.steps(trace, other)[0]
    assert (found.maps, found.why_no_maps) == (None, "the two runs read different tokens")
    assert found.kl_bits == 0


def test_vocabularies_that_differ_are_compared_by_text_alone() -> None:
    trace = played()
    larger = replace(trace, card=msgspec.structs.replace(trace.card, vocab_size=41))
    respelt = replace(trace, prompt=(Token(trace.prompt[0].id, b"?"), *trace.prompt[1:]))
    for other in (larger, respelt):
        assert not one_vocabulary(trace, other)
        found = differences.steps(trace, other)[0]
        assert (found.same_choice, found.kl_bits, found.logits) == (True, None, None)
