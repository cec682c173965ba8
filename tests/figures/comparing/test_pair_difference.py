"""The difference of two places is that of their distributions and maps, or a reason why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.figures.attention.map_request import HeadInStep
from explorer.figures.comparing.pair_difference import DIFFERENT_VOCABULARIES, between
from explorer.trace.attention import weights
from explorer.trace.trace import Trace
from tests.session.scripted import played


def look(trace: Trace, step: int = 0, layer: int = 1, head: int = 1) -> HeadInStep:
    return HeadInStep(trace, step, layer, head)


def changed(trace: Trace) -> Trace:
    """With other logits, and other queries in layer 1."""
    first = trace.steps[0]
    record = first.layers[1]
    assert record.queries is not None
    other = replace(record, queries=record.queries[::-1].copy())
    step = replace(first, logits=first.logits[::-1].copy(), layers=(first.layers[0], other))
    return replace(trace, steps=(step, *trace.steps[1:]))


def test_a_run_does_not_differ_from_itself() -> None:
    run = played(2)
    found = between(look(run), look(run), by_id=True, rows=5)
    assert found.kl_bits == 0
    assert found.next_tokens is not None
    assert found.next_tokens.total_variation == 0
    assert found.map is not None
    assert not found.map.map.weights.any()
    assert all(one.same_choice and one.kl_bits == 0 for one in found.steps)


def test_figures_are_those_of_both_sides_worked_out_anew() -> None:
    left = played(2)
    right = changed(left)
    found = between(look(left), look(right), by_id=True, rows=5)
    p, q = (
        np.exp(t.steps[0].logits.astype(np.float64)) / np.exp(t.steps[0].logits.astype(float)).sum()
        for t in (left, right)
    )
    assert found.kl_bits == pytest.approx(float((p * np.log2(p / q)).sum()), rel=1e-9)
    assert found.map is not None
    maps = []
    for trace in (left, right):
        record = trace.steps[0].layers[1]
        assert record.keys is not None
        maps.append(weights(record, record.keys, 1, slice(None)))
    np.testing.assert_allclose(found.map.map.weights, maps[1] - maps[0], atol=1e-6)
    assert found.next_tokens is not None
    best = int(np.argmax(left.steps[0].logits))
    pair = found.next_tokens.pair(best)
    order = np.argsort(-right.steps[0].logits, kind="stable").tolist()
    assert (pair.first_rank, pair.second_rank) == (0, order.index(best))


def test_what_is_not_defined_has_a_reason_in_place_of_a_number() -> None:
    run = played(2)
    other = between(look(run), look(run), by_id=False, rows=5)
    assert (other.next_tokens, other.kl_bits, other.map) == (None, None, None)
    assert other.why_no_map == DIFFERENT_VOCABULARIES
    assert all(one.kl_bits is None for one in other.steps)
    heads = between(look(run), look(run, head=0), by_id=True, rows=5)
    assert heads.map is None
    assert "different heads" in heads.why_no_map
    later = between(look(run), look(run, step=1), by_id=True, rows=5)
    assert later.map is None
    assert later.kl_bits is not None
    assert "different tokens" in later.why_no_map
