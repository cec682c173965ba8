"""The cache experiment and the memory-traffic bound: honest counts, nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.experiments import cache_comparison
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.machine import kept_bandwidth, memory_bandwidth
from explorer.engine.passes.generate import generate
from explorer.engine.selftest import selftest
from explorer.trace.experiments import CacheExperiment
from explorer.trace.request import RunRequest, Sampling
from tests.engine.tiny import tiny_model, tiny_runner

TEN = RunRequest(prompt=" ".join(str(3 + 7 * i % 89) for i in range(10)))


def test_ten_and_twenty_tokens_take_29_positions_with_a_cache_and_390_without() -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    said: list[float] = []
    found = cache_comparison.run(
        TorchPasses(runner), CacheExperiment(request=TEN), lambda _, done: said.append(done)
    )
    assert sum(found.cached.positions) == 29
    assert sum(found.uncached.positions) == 390
    assert found.cached.positions[:2] == (10, 1)
    assert found.uncached.positions == tuple(range(10, 30))
    assert (len(found.cached.ms), len(found.uncached.ms)) == (20, 20)
    assert found.same_tokens
    assert (found.prompt, found.tokens, len(found.ids)) == (10, 20, 20)
    assert said == sorted(said)
    assert said[-1] < 1


def test_the_run_on_screen_keeps_its_cache() -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    generate(runner, runner.prompt(RunRequest(prompt="5 6 7")), (), 3, Sampling, lambda s, t: None)
    before = runner.cache.ids
    cache_comparison.run(
        TorchPasses(runner), CacheExperiment(request=TEN, tokens=3), lambda *_: None
    )
    assert runner.cache.ids == before
    asked = CacheExperiment(request=TEN)
    with pytest.raises(Cancelled):
        cache_comparison.run(
            TorchPasses(runner), asked, lambda *_: None, iter([False] * 9 + [True]).__next__
        )
    assert runner.cache.ids == before


def test_what_cannot_be_compared_is_refused_in_words() -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)

    def ask(request: RunRequest, tokens: int) -> None:
        cache_comparison.run(
            TorchPasses(runner), CacheExperiment(request=request, tokens=tokens), lambda *_: None
        )

    with pytest.raises(BadInput, match="mask"):
        ask(RunRequest(prompt=TEN.prompt, causal_mask=False), 5)
    with pytest.raises(BadInput, match="65 positions"):
        ask(TEN, 56)
    with pytest.raises(BadInput, match="takes 1 to"):
        ask(TEN, 0)
    runner.cache_offered = False
    with pytest.raises(BadInput, match="cache is not available"):
        ask(TEN, 5)


def test_the_bound_is_the_best_that_was_ever_measured_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))
    speeds = iter([5e9, 4e9, 7e9])
    monkeypatch.setattr(memory_bandwidth, "measure", lambda device: next(speeds))
    seen = []
    for _ in range(3):
        monkeypatch.setattr(kept_bandwidth, "_measured", {})
        seen.append(memory_bandwidth.bytes_per_second(torch.device("cpu")))
        assert (
            memory_bandwidth.bytes_per_second(torch.device("cpu")) == seen[-1]
        )  # not measured again
    assert seen == [5e9, 5e9, 7e9]
    kept = json.loads((tmp_path / "machine.json").read_text())
    assert list(kept.values()) == [7e9]
    (tmp_path / "machine.json").write_text("[1]")  # damaged: measured anew
    monkeypatch.setattr(kept_bandwidth, "_measured", {})
    monkeypatch.setattr(memory_bandwidth, "measure", lambda device: 1e9)
    assert memory_bandwidth.bytes_per_second(torch.device("cpu")) == 1e9


def test_the_bound_is_measured_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_bandwidth, "ROWS", 1024)
    measured = memory_bandwidth.measure(torch.device("cpu"))
    assert 1e7 < measured < 1e13


def test_a_token_reads_all_weights_but_an_untied_table_and_idle_experts() -> None:
    tied = tiny_model("llama", tie_word_embeddings=True)
    assert memory_bandwidth.step_bytes(tied) == 4 * sum(p.numel() for p in tied.parameters())
    untied = tiny_model("llama", tie_word_embeddings=False)
    every = 4 * sum(p.numel() for p in untied.parameters())
    assert memory_bandwidth.step_bytes(untied) == every - 4 * 96 * 32
    experts = tiny_model("gpt_oss", tie_word_embeddings=True)
    every = sum(p.numel() for p in experts.parameters())
    idle = sum(p.numel() for n, p in experts.named_parameters() if ".experts." in n) // 2
    np.testing.assert_allclose(memory_bandwidth.step_bytes(experts), 4 * (every - idle), rtol=1e-9)
