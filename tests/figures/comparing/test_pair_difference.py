"""The difference of two places is that of their distributions and maps, or a reason why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.figures.attention.map_request import HeadInStep
from explorer.figures.comparing import pair_difference
from explorer.figures.comparing.differences import Apart
from explorer.figures.comparing.pair_difference import (
    DIFFERENT_VOCABULARIES,
    KnownSteps,
    PairDifference,
)
from explorer.figures.comparing.pair_difference import between as parts_between
from explorer.trace.attention import weights
from explorer.trace.trace import Trace
from tests.session.scripted import played


def look(trace: Trace, step: int = 0, layer: int = 1, head: int = 1) -> HeadInStep:
    return HeadInStep(trace, step, layer, head)


def between(
    left: HeadInStep, right: HeadInStep, by_id: bool, rows: int, known: KnownSteps | None = None
) -> PairDifference:
    *turns, found = parts_between(left, right, by_id, rows, known or KnownSteps())
    assert all(isinstance(turn, float) for turn in turns)
    assert isinstance(found, PairDifference)
    return found


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


def test_a_step_is_compared_once_until_its_pass_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left = played(4)
    right = changed(left)
    known, compared = KnownSteps(), []
    real = pair_difference.of_logits

    def counted(one: np.ndarray, other: np.ndarray) -> Apart:
        compared.append(one)
        return real(one, other)

    monkeypatch.setattr(pair_difference, "of_logits", counted)

    def made_anew(step: int, one: Trace, other: Trace) -> int:
        """How many steps had to be compared; all figures are those of a comparison from scratch."""
        compared.clear()
        found = between(look(one, step), look(other, step, layer=0), True, 5, known)
        count = len(compared) - 1  # the one of the step that is looked at
        assert found.steps == between(look(one, step), look(other, step), True, 5).steps
        return count

    assert made_anew(0, left, right) == 4
    assert made_anew(1, left, right) == 0  # another step and head is looked at
    longer = played(5)
    assert made_anew(0, replace(left, steps=(*left.steps, longer.steps[4]),
                                chosen=longer.chosen), longer) == 5  # fmt: skip
    third = replace(left.steps[2], logits=left.steps[2].logits[::-1].copy())
    other = replace(left, steps=(*left.steps[:2], third, left.steps[3]))
    assert made_anew(0, left, left) == 4
    assert made_anew(0, left, other) == 1
    assert made_anew(0, left, left.truncated(2)) == 0
    assert made_anew(0, left, left) == 2
