"""Long prompts: chunks equal the whole in logits, records, masks and cache; bounded; cancelled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.engine.errors import Cancelled
from explorer.engine.passes import chunked_prefill
from explorer.engine.passes import runner as runners
from explorer.engine.passes.generate import forward, generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selftest
from explorer.trace.attention import Mask
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace
from tests.engine.architectures import tiny
from tests.engine.tiny import runner_on, tiny_runner

LONG = RunRequest(prompt=" ".join(str(3 + 7 * i % 89) for i in range(43)))
KINDS = ["gpt2", "llama", "gemma3_text", "mistral", "gpt_oss"]


def trace_of(runner: Runner, request: RunRequest, steps: int = 3) -> Trace:
    found: list[tuple[Step, Token]] = []
    runner.cache.drop()
    generate(runner, runner.prompt(request), (), steps, Sampling, lambda s, t: found.append((s, t)))
    trace = Trace(request=request, card=runner.loaded.card, prompt=runner.prompt(request).tokens)
    for step, token in found:
        trace = trace.appended(step, token)
    return trace


@pytest.fixture(params=KINDS)
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Trace, Trace]:
    """The same run read whole, and in chunks of ten."""
    runner = tiny_runner(request.param)
    selftest.run(runner)
    assert runner.loaded.card.offers("chunked_prefill"), runner.loaded.card.words("chunked_prefill")
    whole = trace_of(runner, LONG)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    return whole, trace_of(runner, LONG)


def test_chunks_equal_the_whole(both: tuple[Trace, Trace]) -> None:
    whole, parts = both
    assert parts.steps[0].note == "prompt read in 5 chunks"
    assert parts.chosen == whole.chosen
    for one, other in zip(whole.steps, parts.steps, strict=True):
        assert (one.phase, one.token_ids, one.readout) == (
            other.phase,
            other.token_ids,
            other.readout,
        )
        assert one.cache_bytes_per_layer == other.cache_bytes_per_layer
        np.testing.assert_allclose(other.logits, one.logits, atol=1e-4)
        assert one.hidden is not None
        assert other.hidden is not None
        np.testing.assert_allclose(other.hidden, one.hidden, atol=1e-4)
    for step in range(3):
        for layer in range(3):
            for head in range(4):
                a, b = (t.weights(step, layer, head) for t in both)
                np.testing.assert_allclose(b, a, atol=1e-5)
    layers = zip(whole.steps[0].layers, parts.steps[0].layers, strict=True)
    for one_layer, other_layer in layers:
        assert one_layer.mask is not None
        assert other_layer.mask is not None
        np.testing.assert_array_equal(one_layer.mask.allowed(), other_layer.mask.allowed())


def test_time_of_all_chunks_is_told(both: tuple[Trace, Trace]) -> None:
    step = both[1].steps[0]
    assert step.forward_ms >= step.layer_ms.sum() > 0
    assert step.attention_ms is not None
    assert (step.attention_ms > 0).all()


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_longer_than_a_chunk(side: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    padded = RunRequest(prompt="5 6 7 8", padding=side, pad=33)
    whole = trace_of(runner, padded)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    parts = trace_of(runner, padded)
    assert "4 chunks" in parts.steps[0].note
    assert parts.chosen == whole.chosen
    np.testing.assert_allclose(parts.steps[0].logits, whole.steps[0].logits, atol=1e-4)
    a, b = (t.weights(0, 1, 2) for t in (whole, parts))
    np.testing.assert_allclose(b, a, atol=1e-5)


def test_only_cached_runs_under_the_mask_are_chunked(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    for request in (
        RunRequest(prompt=LONG.prompt, causal_mask=False),
        RunRequest(prompt=LONG.prompt, cache=False),
    ):
        assert trace_of(runner, request, 1).steps[0].note == ""


def test_a_model_that_forgets_between_chunks_reads_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = runner_on(tiny("falcon_mamba"), context=128)
    selftest.run(runner)
    assert not runner.loaded.card.offers("chunked_prefill")
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    assert trace_of(runner, LONG, 1).steps[0].note == ""


def test_stepping_back_without_a_crop_rebuilds_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tiny_runner("mistral")
    selftest.run(runner)
    assert not runner.cache.can_crop
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    trace = trace_of(runner, LONG, 3)
    again: list[Step] = []
    chosen = trace.chosen_ids[:2]
    runner.cache.drop()
    generate(runner, runner.prompt(LONG), chosen, 1, Sampling, lambda s, t: again.append(s))
    assert again[0].rebuilt_tokens == 44
    np.testing.assert_allclose(again[0].logits, trace.steps[2].logits, atol=1e-4)


def test_cancel_in_a_later_chunk_leaves_no_half_filled_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    answers = iter([False] * 7 + [True] * 9)  # the third chunk's second layer
    with pytest.raises(Cancelled):
        generate(runner, runner.prompt(LONG), (), 1, Sampling, lambda s, t: None, answers.__next__)
    assert runner.cache.slots == 0
    assert runner.cache.live is None


def test_progress_is_told_through_chunks_and_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    monkeypatch.setattr(runners, "_WORTH_TELLING", 2)
    monkeypatch.setattr(runners, "_TELL_SECONDS", 0.0)
    told: list[tuple[str, float | None]] = []
    runner.report = lambda *news: told.append(news)
    trace_of(runner, LONG, 1)
    fractions = [fraction for _, fraction in told]
    assert len(told) == 15
    for text, fraction in told:
        assert text == f"Reading the text: {43 * (fraction or 0):,.0f} of 43 tokens"
    assert fractions == sorted(fractions)  # type: ignore[type-var]
    assert 0 <= fractions[0] < fractions[-1] < 1  # type: ignore[operator]


def test_a_thinned_run_keeps_some_layers_and_says_so_of_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = tiny_runner("llama")
    selftest.run(runner)
    thin = RunRequest(prompt=LONG.prompt, capture_every=2)
    whole, thinned = trace_of(runner, LONG), trace_of(runner, thin)
    monkeypatch.setattr(chunked_prefill, "WHOLE", 20)
    monkeypatch.setattr(chunked_prefill, "CHUNK", 10)
    for trace in (thinned, trace_of(runner, thin)):
        assert trace.chosen == whole.chosen
        for step in range(3):
            kinds = [record.kind for record in trace.steps[step].layers]
            assert kinds == ["qk", "absent", "qk"]
            assert "one layer in 2" in trace.steps[step].layers[1].reason
            np.testing.assert_allclose(
                trace.weights(step, 2, 1), whole.weights(step, 2, 1), atol=1e-5
            )
        np.testing.assert_allclose(trace.steps[2].logits, whole.steps[2].logits, atol=1e-4)


def test_masks_of_row_blocks_are_joined_as_the_kernels_received_them() -> None:
    first = Mask("causal", 3, 3)
    lower = Mask.of_bits(np.tri(2, 5, 3, dtype=bool))
    whole = chunked_prefill.joined_mask([(first, 0), (lower, 0)], 5)
    assert (whole.kind, whole.queries, whole.keys) == ("causal", 5, 5)
    window = Mask.of_bits(np.array([[1, 1, 0], [0, 1, 1]], bool))  # saw keys 2, 3, 4 alone
    joined = chunked_prefill.joined_mask([(first, 0), (window, 2)], 5)
    assert joined.kind == "bits"
    np.testing.assert_array_equal(
        joined.allowed()[3:], np.array([[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]], bool)
    )


def test_the_chunks_of_a_run_pass_the_check_of_the_kernels_output() -> None:
    runner = tiny_runner("gemma3_text")
    selftest.run(runner)
    layout = runner.layout(LONG, ())
    runner.cache.fresh()
    for begin, end in ((0, 20), (20, 43)):
        done = forward(runner, LONG, layout.first(end), begin, runner.cache.live, keep_outputs=True)
        assert max(measured_gaps.kernel_output(done, layout.first(end)).values()) < 1e-5
