"""A prompt that begins as the last one did is read from there on, on every kind of cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.selftest.tolerance import OTHER_PASS, logit_tolerance
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.trace.wire.validate import require_sound
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run

FIRST = "The cat sat on the mat"
KINDS = ("llama", "gemma3", "deepseek2", "gpt-oss", "mamba", "falcon-h1", "lfm2", "qwen35")


@pytest.fixture(params=KINDS)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaRunner]:
    found = opened(tiny_gguf.write(tmp_path / "tiny.gguf", request.param))
    yield found
    found.close()


def require_same(ours: Trace, fresh: Trace) -> None:
    """Logits, and every row of every map that was read, within what other shapes differ by."""
    require_sound(ours)
    one, other = ours.steps[0], fresh.steps[0]
    assert np.abs(one.logits - other.logits).max() <= logit_tolerance(other.logits)
    for layer, record in enumerate(one.layers):
        assert record.kind == other.layers[layer].kind
        if record.kind != "absent":
            mine, theirs = (trace.weights(0, layer, 1) for trace in (ours, fresh))
            assert np.abs(mine - theirs[ours.reused_tokens :]).max() <= OTHER_PASS
            for step in range(1, len(ours.steps)):
                ours.weights(step, layer, 1)  # finds its keys


def test_reuse_equals_a_fresh_prefill(runner: LlamaRunner) -> None:
    first = run(runner, RunRequest(prompt=FIRST), 1)
    longer, apart = (
        RunRequest(prompt=text) for text in (f"{FIRST}, and the dog", f"{FIRST[:12]}!")
    )
    held = len(first.prompt)

    ours = run(runner, longer, 2, reuse=True)
    assert ours.reused_tokens == held
    assert ours.steps[0].note == f"{held} of {len(ours.prompt)} tokens from the cache"
    again = run(runner, apart, 2, reuse=True)
    if runner.card.offers("undo"):
        assert 0 < again.reused_tokens < len(again.prompt)
    else:
        assert again.reused_tokens == 0
        assert "can't go on from" in again.steps[0].note

    require_same(ours, run(runner, longer, 2))
    require_same(again, run(runner, apart, 2))
