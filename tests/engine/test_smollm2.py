"""What the program promises of SmolLM2-135M-Instruct, on the model itself."""

from __future__ import annotations

import queue
import time

import numpy as np
import pytest
import torch

from explorer.engine.callbacks import nobody
from explorer.engine.experiments import prefix
from explorer.engine.loading import reference_build
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, selfcheck
from explorer.trace.experiments import PrefixExperiment
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.engine.local_engine import LocalEngine

pytestmark = pytest.mark.smollm2

FRANCE = RunRequest(model="smollm2", prompt="The capital of France is")
BYTES_A_TOKEN = 2 * 30 * 3 * 64 * 4


@pytest.fixture
def runner(smollm2: Runner) -> Runner:
    return smollm2


def run(
    runner: Runner, request: RunRequest, steps: int, chosen: tuple[int, ...] = ()
) -> list[Step]:
    found: list[Step] = []
    generate(
        runner, runner.prompt(request), chosen, steps, Sampling, lambda step, _: found.append(step)
    )
    return found


def ids(steps: list[Step]) -> list[int]:
    return [step.draw.token_id for step in steps]


def test_paris(runner: Runner) -> None:
    steps = run(runner, FRANCE, 8)
    first = steps[0]
    assert first.top[0].raw == b" Paris"
    assert first.draw.raw_probability == pytest.approx(0.77, abs=0.01)
    assert first.draw.rank == 0
    assert [s.phase for s in steps] == ["prefill"] + ["decode"] * 7
    assert [s.positions_processed for s in steps] == [5] + [1] * 7
    assert all(s.cache_bytes == BYTES_A_TOKEN * s.cache_tokens for s in steps)
    assert ids(steps) == measured_gaps.generated(runner, runner.layout(FRANCE, ()), 8)


def test_without_cache_the_same_tokens_and_more_work(runner: Runner) -> None:
    cached = run(runner, FRANCE, 4)
    alone = run(runner, RunRequest(prompt=FRANCE.prompt, cache=False), 4)
    assert ids(cached) == ids(alone)
    assert [s.positions_processed for s in alone] == [5, 6, 7, 8]
    assert all(s.cache_bytes == 0 for s in alone)


def test_without_mask_every_layer_sees_the_future(runner: Runner) -> None:
    request = RunRequest(prompt=FRANCE.prompt, causal_mask=False)
    steps = run(runner, request, 2)
    trace = Trace(request=request, card=runner.loaded.card, prompt=runner.prompt(request).tokens)
    for step in steps:
        trace = trace.appended(step, step.top[0])
    assert [s.phase for s in steps] == ["prefill", "recompute"]
    for layer in range(30):
        for head in range(9):
            weights = trace.weights(1, layer, head)
            assert (weights[np.triu_indices(6, 1)] > 0).any()


def test_every_check_passes(runner: Runner) -> None:
    chosen = tuple(ids(run(runner, FRANCE, 4)))
    found = {check.name: check for check in selfcheck.check(runner, FRANCE, chosen)}
    assert len(found) == 7
    assert all(check.passed for check in found.values()), found


def test_ten_forward_six_back_six_forward(runner: Runner) -> None:
    request = RunRequest(prompt="Once upon a time")
    whole = run(runner, request, 10)
    again = run(runner, request, 6, tuple(ids(whole[:4])))
    assert ids(again) == ids(whole[4:])
    for one, two in zip(whole[4:], again, strict=True):
        np.testing.assert_allclose(one.logits, two.logits, atol=1e-4)
        assert two.rebuilt_tokens == 0


def test_prefix_stays_with_the_mask_and_moves_without(runner: Runner) -> None:
    found = prefix.drop_last(runner, PrefixExperiment(request=FRANCE), nobody)
    assert found.masked.largest < 1e-4
    assert found.unmasked is not None
    assert min(found.unmasked.layers[1:]) > 1e-2
    assert found.unmasked.logits > 1e-2


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a  5 b", [b"a", b"  ", b"5", b" b"]),
        ("x\n\n\n7", [b"x", b"\n\n\n", b"7"]),
    ],
)
def test_it_splits_as_the_original(runner: Runner, text: str, pieces: list[bytes]) -> None:
    encoded = runner.loaded.tokenizer.encode(text)
    assert [token.raw for token in encoded.tokens] == pieces
    assert encoded.problem == ""


def test_bytes_it_cannot_spell_are_reported(runner: Runner) -> None:
    assert 0x13 in runner.loaded.card.missing_bytes
    assert len(runner.loaded.card.missing_bytes) == 21
    encoded = runner.loaded.tokenizer.encode("a\x13b")
    assert "13" in encoded.problem


def test_switching_back_to_it_takes_under_three_seconds_of_processor_time() -> None:
    """Time of the processor: the machine's other work must not decide a test."""
    said: queue.Queue[m.Event] = queue.Queue()
    engine = LocalEngine()
    engine.start(said.put)

    def until(request: m.AnyRequest, kind: type[m.Event]) -> None:
        engine.send(request)
        while not isinstance(event := said.get(timeout=100), kind):
            assert not isinstance(event, m.Failed), event

    until(m.Load(run=1, model="smollm2"), m.Loaded)
    until(m.Load(run=2, model="copycat"), m.Loaded)
    began = time.process_time()
    until(m.Load(run=3, model="smollm2"), m.Loaded)
    until(m.Advance(run=4, request=FRANCE), m.Stepped)
    spent = time.process_time() - began
    engine.close()
    assert spent < 3


def test_card(runner: Runner) -> None:
    card = runner.loaded.card
    assert card.parameters == 134_515_008
    assert card.kv_bytes_per_token == BYTES_A_TOKEN
    assert "Q4_1" in card.source
    assert all(capability.offered for capability in card.capabilities)


@torch.inference_mode()
def test_the_reference_decoder_is_the_same_model(runner: Runner) -> None:
    build = reference_build.rebuilt(runner.model, "modern", "smollm2")
    ids = torch.arange(1000, 1024).reshape(2, 12)
    mask = torch.ones_like(ids)
    mask[0, :5] = 0
    more = {"attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}
    found, expected = build(ids, **more).logits, runner.model(ids, **more).logits
    torch.testing.assert_close(found[0, 5:], expected[0, 5:], atol=1e-4, rtol=0)
    torch.testing.assert_close(found[1], expected[1], atol=1e-4, rtol=0)
    first = build(ids[1:, :8], use_cache=True)
    cached = build(ids[1:, 8:], cache=first.cache).logits
    torch.testing.assert_close(cached, found[1:, 8:], atol=1e-4, rtol=0)
    alone = build(ids[:1, 5:]).logits
    torch.testing.assert_close(alone, found[:1, 5:], atol=1e-4, rtol=0)
