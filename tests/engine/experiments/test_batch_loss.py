"""Teacher-forced loss of a padded batch: that of the rows alone, and what mistakes make of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from explorer.trace.batch import BatchRow
from explorer.trace.request import Side
from tests.engine.experiments.batches import (
    KINDS,
    LENGTHS,
    PROMPTS,
    SIDES,
    alone,
    ids_of,
    probability,
    run,
    runner_of,
)


def real_nats(row: BatchRow) -> list[float]:
    return [s.nats for s in row.scored if row.real[s.slot] and row.real[s.slot + 1]]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", KINDS)
def test_loss_of_the_padded_batch_is_that_of_the_rows_alone(kind: str, side: Side) -> None:
    runner = runner_of(kind)
    rows = run(runner, padding=side, extra=8, loss=True).rows
    by_hand: list[float] = []
    for prompt in PROMPTS:
        ids = torch.tensor([ids_of(prompt)])
        if ids.shape[1] > 1:
            with torch.inference_mode():
                mean = float(runner.model(input_ids=ids, labels=ids).loss)
            by_hand += [mean] * (ids.shape[1] - 1)
    whole = [n for row in rows for n in real_nats(row)]
    assert len(whole) == sum(LENGTHS) - len(LENGTHS)
    assert np.mean(whole) == pytest.approx(np.mean(by_hand), abs=1e-5)
    assert np.mean([n for r in rows for n in r.alone_nats]) == pytest.approx(
        np.mean(by_hand), abs=1e-5
    )
    counted = [s.nats for row in rows for s in row.scored]
    unshifted = [n for r in rows for n, m in zip(r.unshifted_nats, r.real, strict=True) if m]
    assert all(map(math.isfinite, counted))
    assert abs(np.mean(counted) - np.mean(by_hand)) > 0.01
    assert abs(np.mean(unshifted) - np.mean(by_hand)) > 0.01


def test_ranks_and_alternatives_of_a_prediction() -> None:
    runner = runner_of("llama")
    row = run(runner, ("5 6 7 8", "9"), padding="right", loss=True).rows[0]
    logits = alone(runner, [5, 6, 7, 8])
    for slot, target in ((0, 6), (1, 7), (2, 8)):
        scored = row.scored[slot]
        order = np.argsort(-logits[slot], kind="stable")
        assert scored.slot == slot
        assert scored.rank == int(np.flatnonzero(order == target)[0])
        assert [r.token.id for r in scored.top] == [int(i) for i in order[:5]]
        assert scored.nats == pytest.approx(-math.log(probability(logits[slot], target)), abs=1e-4)


def test_logits_of_many_slots_are_taken_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    from explorer.engine.experiments.padded import batch_pass

    whole = run(runner_of("llama"), loss=True)
    monkeypatch.setattr(batch_pass, "LOGIT_BYTES", 5 * 96 * 4 * 7)
    portions = run(runner_of("llama"), loss=True)
    for one, other in zip(whole.rows, portions.rows, strict=True):
        np.testing.assert_allclose(
            [s.nats for s in one.scored], [s.nats for s in other.scored], atol=1e-5
        )
        np.testing.assert_allclose(one.unshifted_nats, other.unshifted_nats, atol=1e-5)
