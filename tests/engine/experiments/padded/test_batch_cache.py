"""A batch asked for again runs only what is new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.engine.experiments import batch
from explorer.engine.experiments.padded.batch_cache import ResultCache
from explorer.trace.batch import BatchRequest, BatchResult
from tests.engine.experiments.batches import (
    PROMPTS,
    run,
    runner_of,
)


def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each pass over a batch; restored after the test."""
    from explorer.engine.experiments.padded.batch_pass import BatchPass

    run_one: list[int] = []
    logits = BatchPass.logits

    def counted(self: BatchPass, layout: Any, *rest: Any, **named: Any) -> np.ndarray:
        run_one.append(len(layout.rows))
        return logits(self, layout, *rest, **named)

    monkeypatch.setattr(BatchPass, "logits", counted)
    return run_one


def test_a_switch_that_is_moved_runs_only_what_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, memory, ran = runner_of("gpt2"), ResultCache(), passes(monkeypatch)

    def again(**more: Any) -> BatchResult:
        del ran[:]
        request = BatchRequest(prompts=PROMPTS, loss=True, **more)
        return batch.run(runner, request, lambda *_: None, lambda: False, memory)

    first = again(padding="right")
    assert ran.count(1) == len(PROMPTS)
    assert again(padding="right") == first
    assert ran == []
    read = again(padding="right", wrong=("readout",))
    assert ran == []
    assert read == run(runner, padding="right", wrong=("readout",), loss=True)
    left = again(padding="left")
    assert 1 not in ran  # the rows alone are the same on either side
    assert left == run(runner, padding="left", loss=True)
    more = again(padding="left", steps=3, wrong=("positions",))
    fresh = run(runner, padding="left", steps=3, wrong=("positions",), loss=True)
    for mine, other in zip(more.rows, fresh.rows, strict=True):  # one prefill filled a cache
        assert (mine.verdict, mine.generated) == (other.verdict, other.generated)
        assert mine.step_diffs == pytest.approx(other.step_diffs, abs=1e-4)


def test_memory_forgets_what_was_asked_for_longest_ago() -> None:
    memory = ResultCache(limit=100)
    made: list[str] = []

    def get(key: str, size: int = 40) -> None:
        memory.get(key, lambda: made.append(key), lambda _: size)

    for key in ("a", "b", "a", "c", "a", "b"):
        get(key)
    assert made == ["a", "b", "c", "b"]
    get("large", 1000)
    assert memory.bytes == 1000
