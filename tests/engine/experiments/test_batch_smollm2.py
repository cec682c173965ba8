"""Padded batches of SmolLM2-135M-Instruct: prompts of 1 to 40 tokens, both sides, decoded on."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.experiments import batch
from explorer.engine.passes.runner import Runner
from explorer.trace.batch import BatchRequest
from tests.engine.experiments.batches import SIDES

pytestmark = [pytest.mark.slow, pytest.mark.smollm2, pytest.mark.timeout(900)]

TEXT = (
    "Once upon a time there was a small model that could read only a few words at a time, and yet "
    "it wanted to know how the story of the whole wide world would go on after its very last page."
)
LENGTHS = (1, 40, 2, 9, 23)


@pytest.fixture(scope="module")
def runner(smollm2: Runner) -> Runner:
    return smollm2


@pytest.fixture(scope="module")
def prompts(runner: Runner) -> tuple[str, ...]:
    """Beginnings of the text that are so many tokens long."""
    tokens = runner.loaded.tokenizer.encode(TEXT).tokens
    found = tuple(b"".join(t.raw for t in tokens[:length]).decode() for length in LENGTHS)
    for prompt, length in zip(found, LENGTHS, strict=True):
        assert len(runner.loaded.tokenizer.encode(prompt).tokens) == length
    return found


@pytest.mark.parametrize("side", SIDES)
def test_rows_equal_themselves_alone(runner: Runner, prompts: tuple[str, ...], side: str) -> None:
    request = BatchRequest(prompts=prompts, padding=side, extra=8, steps=6, loss=True)  # type: ignore[arg-type]
    result = batch.run(runner, request, lambda *_: None, lambda: False)
    worst = max(row.max_abs_diff_vs_alone for row in result.rows)
    print(f"{side}: worst of 6 steps {worst:.2g}")
    assert worst < 1e-4
    assert all(row.verdict == "right" and len(row.step_diffs) == 6 for row in result.rows)
    assert all(row.generated == row.generated_alone for row in result.rows)
    inside = [
        one.nats
        for row in result.rows
        for one in row.scored
        if row.real[one.slot] and row.real[one.slot + 1]
    ]
    alone = [nats for row in result.rows for nats in row.alone_nats]
    assert np.mean(inside) == pytest.approx(np.mean(alone), abs=1e-5)


def test_right_padding_read_at_the_last_slot(runner: Runner, prompts: tuple[str, ...]) -> None:
    request = BatchRequest(prompts=prompts, padding="right", wrong=("readout",))
    result = batch.run(runner, request, lambda *_: None, lambda: False)
    for row, length in zip(result.rows, LENGTHS, strict=True):
        print(f"{length} tokens: off by {row.max_abs_diff_vs_alone:.3g}, {row.verdict}")
        assert (row.verdict == "right") is (length == max(LENGTHS))
        assert (row.max_abs_diff_vs_alone > 1) is (length < max(LENGTHS))
