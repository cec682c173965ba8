"""Total variation distance, and which token would be taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import thread_time

import numpy as np
import pytest

from explorer.figures.prediction.comparison import next_tokens
from explorer.sampling import ranking
from explorer.trace.step import Step
from tests.figures.runs import Run


def _steps(*probabilities: list[float]) -> list[Step]:
    step = Run().prefill(3).steps[0]
    return [replace(step, logits=np.log(np.array(p, np.float32))) for p in probabilities]


def test_distance_and_change_of_the_top_token() -> None:
    found = next_tokens(*_steps([0.7, 0.2, 0.1], [0.1, 0.3, 0.6]), rows=2)
    assert found.total_variation == pytest.approx(0.6)
    assert [pair.token_id for pair in found.tops] == [0, 2]
    assert [pair.token_id for pair in found.pairs] == [0, 2]
    assert found.rest == pytest.approx((1, 0.2, 0.3))


def test_any_token_has_its_logit_and_probability_on_both_sides() -> None:
    found = next_tokens(*_steps([0.7, 0.2, 0.1], [0.1, 0.3, 0.6]), rows=1)
    pair = found.pair(1)
    assert (pair.first, pair.second) == pytest.approx((0.2, 0.3))
    assert (pair.change, pair.logit_change) == pytest.approx((0.1, np.log(1.5)))


def test_the_same_run_twice_is_no_change() -> None:
    found = next_tokens(*_steps([0.5, 0.5], [0.5, 0.5]), rows=5)
    assert found.total_variation == 0
    assert found.tops[0] == found.tops[1]


def test_both_favourites_have_a_row_even_if_few_fit() -> None:
    masked, unmasked = _steps([0.6, 0.3, 0.1], [0.35, 0.31, 0.34])
    found = next_tokens(masked, unmasked, rows=1)
    assert len(found.pairs) == 1
    assert found.pairs[0].token_id == 0
    flat = [0.05] * 18
    masked, unmasked = _steps([*flat, 0.06, 0.04], [*flat, 0.04, 0.06])
    ids = {pair.token_id for pair in next_tokens(masked, unmasked, rows=2).pairs}
    assert ids == {18, 19}


def test_other_vocabularies_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="vocabularies"):
        next_tokens(*_steps([0.5, 0.5], [0.2, 0.3, 0.5]), rows=2)


def test_a_large_vocabulary_is_not_put_in_order_for_a_few_rows() -> None:
    step = Run().prefill(3).steps[0]
    rng = np.random.default_rng(0)
    steps = [replace(step, logits=rng.normal(size=150_000).astype(np.float32)) for _ in range(2)]

    def cost(work: Callable[[], object]) -> float:
        costs = []
        for _ in range(4):
            begin = thread_time()
            work()
            costs.append(thread_time() - begin)
        return min(costs)

    whole = cost(lambda: ranking(steps[0].logits.astype(np.float64)))
    assert cost(lambda: next_tokens(*steps, rows=8)) < whole
