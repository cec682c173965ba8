"""The bench measures what it says: every figure there, and honest ratios of them."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.engine.bench import bench, rounds
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.machine import peak_memory
from explorer.engine.selftest import selftest
from tests.engine.tiny import runner_on, tiny_model


def test_ratios_are_those_of_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "LENGTHS", (16, 32))
    monkeypatch.setattr(rounds, "DECODE_ROUNDS", 3)
    runner = runner_on(tiny_model("llama"), context=300)
    selftest.run(runner)
    said: list[str] = []
    found = bench.ModelBench(runner, lambda text, _: said.append(text), lambda: False).run()
    figures, ratios = found["figures"], found["ratios"]
    spread = found["spread"]
    for key in ("16", "32"):
        low, high = spread["prefill_capture_over_plain"][key]
        assert 0 < low < ratios["prefill_capture_over_plain"][key] < high
        assert figures["repeats"][key] >= 3
        quotient = figures["prefill_ms"][key] / figures["plain_prefill_ms"][key]
        assert low <= quotient <= high
    for name, ratio in ratios.items():  # no ratio of times without its spread
        if name not in ("eager_bytes_over_ours", "eager_peak_over_ours"):
            assert name in spread, name
            assert isinstance(ratio, dict) or spread[name][0] <= ratio <= spread[name][1]
    assert figures["eager_bytes"]["32"] == 3 * 4 * 32 * 32 * 4  # layers, heads, T², float32
    assert figures["capture_bytes"]["32"] == 3 * 32 * (4 + 2) * 8 * 4 + 32 * 32 * 4
    assert ratios["decode_over_floor"] > 1
    assert said[0].startswith("Prefill of 16")


def test_a_ratio_is_the_median_of_its_pairs_with_the_lowest_and_highest() -> None:
    ratios = rounds.Ratios()
    ratios.add("decode", [1.0, 3.0, 8.0], [1.0, 2.0, 2.0])
    ratios.add("prefill", [3.0], [2.0], "128")
    assert ratios.medians == {"decode": 1.5, "prefill": {"128": 1.5}}
    assert ratios.spread == {"decode": [1.0, 4.0], "prefill": {"128": [1.5, 1.5]}}


def test_the_most_memory_is_of_the_work_alone() -> None:
    def work() -> int:
        return int(np.ones(16 << 20, np.float32).sum())

    result, taken = peak_memory.peak_of(work)
    assert result == 16 << 20
    if taken is not None:  # the system tells it
        assert 50e6 < taken < 200e6
        assert (peak_memory.peak_of(lambda: None)[1] or 0) < 20e6


def test_it_can_be_cancelled_and_needs_room() -> None:
    runner = runner_on(tiny_model("llama"), context=300)
    with pytest.raises(Cancelled):
        bench.ModelBench(runner, lambda *_: None, lambda: True).run()
    with pytest.raises(BadInput, match="needs 128"):
        bench.ModelBench(runner_on(tiny_model("llama"), context=64), lambda *_: None, bool).run()
