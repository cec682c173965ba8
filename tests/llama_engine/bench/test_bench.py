"""The bench of a .gguf file as it is: the fields of the torch engine's, null where it has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.engine.bench import rounds
from explorer.engine.callbacks import never
from explorer.engine.errors import Cancelled
from explorer.engine.gguf.header import read_header
from explorer.llama_engine.bench import traffic
from explorer.llama_engine.bench.bench import LlamaBench
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.request import RunRequest
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaRunner]:
    found = opened(tiny_gguf.write(tmp_path_factory.mktemp("bench") / "tiny.gguf", "llama"))
    yield found
    found.close()


@pytest.fixture(autouse=True)
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path))
    monkeypatch.setattr(traffic, "WORDS", 1 << 12)
    monkeypatch.setattr(traffic, "PART", 1 << 10)
    monkeypatch.setattr(rounds, "LENGTHS", (16, 32))
    monkeypatch.setattr(rounds, "DECODE_ROUNDS", 3)


def test_ratios_are_those_of_the_figures(runner: LlamaRunner) -> None:
    before = run(runner, RunRequest(prompt="The cat sat"), 2)
    said: list[str] = []
    found = LlamaBench(runner, lambda text, _: said.append(text), never).run()
    figures, ratios, spread = found["figures"], found["ratios"], found["spread"]
    for key in ("16", "32"):
        low, high = spread["prefill_capture_over_plain"][key]
        quotient = figures["prefill_ms"][key] / figures["plain_prefill_ms"][key]
        assert low <= quotient <= high
        assert figures["flash_prefill_ms"][key] > 0
        card = runner.card  # queries and keys as the kernel reads them, in float16
        row = 2 * card.head_dim * (card.heads + card.kv_heads)
        assert figures["capture_bytes"][key] == card.layers * int(key) * row
    low, high = spread["decode_capture_over_plain"]
    assert low <= ratios["decode_capture_over_plain"] <= high
    for name in ("eager_over_ours", "eager_bytes_over_ours", "eager_peak_over_ours"):
        assert ratios[name] is None
    assert figures["eager_prefill_ms"] is figures["eager_bytes"] is None
    assert found["threads"] == 1
    assert "xllamacpp" in found["machine"]
    assert said[0].startswith("Prefill of 16")
    after = run(runner, RunRequest(prompt="The cat sat"), 1, before.chosen_ids[:1])
    assert after.steps[0].rebuilt_tokens == 0  # the run's own cache was left alone


def test_it_can_be_cancelled(runner: LlamaRunner) -> None:
    with pytest.raises(Cancelled):
        LlamaBench(runner, lambda *_: None, lambda: True).run()


def test_the_bound_is_of_the_weights_that_one_token_reads(
    runner: LlamaRunner, tmp_path: Path
) -> None:
    found = traffic.traffic(runner)
    assert found.bytes_per_second > 0
    assert found.threads == 1
    tensors = {tensor.name: tensor.size for tensor in runner.model.header.tensors}
    table = tensors["token_embd.weight"] if "output.weight" in tensors else 0
    assert found.step_bytes == sum(tensors.values()) - table
    header = read_header(tiny_gguf.write(tmp_path / "experts.gguf", "qwen2moe"))
    used, there = (header.metadata[f"qwen2moe.expert_{n}"] for n in ("used_count", "count"))
    experts = sum(t.size for t in header.tensors if "_exps." in t.name)
    idle = experts * (1 - used / there)
    every = sum(t.size for t in header.tensors if t.name != "token_embd.weight")
    np.testing.assert_allclose(traffic.step_bytes(header), every - idle, rtol=1e-9)
    assert idle > 0
