"""Runs of tiny files: what the trace holds is what llama.cpp computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.records import slopes
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps, selfcheck
from explorer.llama_engine.selftest.tolerance import logit_tolerance
from explorer.trace.request import RunRequest
from tests.llama_engine import tiny_gguf
from tests.llama_engine.opened import opened, run

REQUEST = RunRequest(prompt="The cat sat on the mat, and the dog")


@pytest.fixture(params=tiny_gguf.NAMES)
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaRunner]:
    found = opened(tiny_gguf.write(tmp_path / "tiny.gguf", request.param))
    yield found
    found.close()


def llama(folder: Path, **more: object) -> LlamaRunner:
    return opened(tiny_gguf.write(folder / "tiny.gguf", "llama", **more))  # type: ignore[arg-type]


def test_every_map_of_a_run_is_llama_cpps_own(runner: LlamaRunner) -> None:
    trace = run(runner, REQUEST, 4)
    ids = tuple(token.id for token in trace.tokens[:-1])
    # the same passes again, with llama.cpp's own weights kept
    context = runner.spare_context(len(ids))
    for number, step in enumerate(trace.steps):
        done = forward(runner, context, ids[: trace.read_slots(number)], Wanted(weights=True))
        assert np.array_equal(done.logits, step.logits)
        for layer in range(runner.card.layers):
            own = gaps.own_weights(done, layer)
            if own is None:
                assert step.layers[layer].kind == "absent"
                continue
            for head in range(len(own)):
                assert np.abs(trace.weights(number, layer, head) - own[head]).max() <= 1e-5


def test_what_the_self_check_finds_holds(runner: LlamaRunner) -> None:
    for mask in (True, False):
        if mask or runner.card.offers("causal_off"):
            request = RunRequest(prompt=REQUEST.prompt, causal_mask=mask)
            found = list(selfcheck.check(runner, request, ()))
            assert len(found) >= 3
            assert [check for check in found if not check.passed] == []


def test_the_same_run_again_has_the_same_bits(runner: LlamaRunner) -> None:
    one, other = run(runner, REQUEST, 3), run(runner, REQUEST, 3)
    for a, b in zip(one.steps, other.steps, strict=True):
        assert np.array_equal(a.logits, b.logits)


def test_going_back_gives_the_logits_of_never_having_gone_on(runner: LlamaRunner) -> None:
    whole = run(runner, REQUEST, 6)
    again = run(runner, REQUEST, 1, whole.chosen_ids[:2]).steps[0]
    assert again.phase == "decode"
    assert (again.rebuilt_tokens > 0) == (not runner.card.offers("undo"))
    if not again.rebuilt_tokens:  # else the passes before it had another shape
        assert np.array_equal(again.logits, whole.steps[2].logits)


def test_a_long_prompt_in_chunks_is_one_pass_of_the_trace(tmp_path: Path) -> None:
    runner = llama(tmp_path, more={"llama.context_length": 4096})
    request = RunRequest(prompt="the cat sat on the mat " * 100)
    trace = run(runner, request, 2)
    first = trace.steps[0]
    assert len(trace.prompt) > 512
    assert first.positions_processed == len(trace.prompt)
    assert "chunks" in first.note
    assert first.layers[0].mask is not None
    assert first.layers[0].mask.kind == "causal"
    weights = trace.weights(0, 1, 0)
    assert np.abs(weights.sum(axis=1) - 1).max() <= 1e-5
    assert np.triu(weights, 1).max() == 0
    runner.close()


def test_a_thin_recording_leaves_layers_out(tmp_path: Path) -> None:
    runner = llama(tmp_path)
    layers = run(runner, RunRequest(prompt="the cat", capture_every=2), 1).steps[0].layers
    assert [record.kind for record in layers] == [
        "absent" if layer % 2 else "qk" for layer in range(runner.card.layers)
    ]
    runner.close()


def test_positions_are_counted_from_an_offset(tmp_path: Path) -> None:
    """Turned keys depend on distances alone; learned positions do not."""
    asked = RunRequest(input_ids=(5, 60, 70, 80, 90), position_offset=40)
    for name in ("llama", "gpt2"):
        runner = opened(tiny_gguf.write(tmp_path / f"{name}.gguf", name))
        plain = run(runner, msgspec.structs.replace(asked, position_offset=0), 1).steps[0]
        with runner.counting_from(asked.position_offset):
            moved = run(runner, asked, 3)
            again = run(runner, asked, 1, moved.chosen_ids[:1]).steps[0]
            checks = list(selfcheck.check(runner, asked, ()))
        gap = np.abs(moved.steps[0].logits - plain.logits).max()
        assert (gap <= logit_tolerance(plain.logits)) == (name == "llama")
        assert moved.steps[0].position_ids == (40, 41, 42, 43, 44)
        assert np.array_equal(again.logits, moved.steps[1].logits), "undone, and read again"
        assert all(check.passed for check in checks)
        runner.close()


def test_alibi_falls_by_each_heads_slope() -> None:
    assert slopes(4, 8.0).tolist() == [2**-2, 2**-4, 2**-6, 2**-8]
    assert slopes(3, 8.0).tolist() == [2**-4, 2**-8, 2**-2]


def test_a_cache_that_grows_keeps_what_it_holds(tmp_path: Path) -> None:
    runner = llama(tmp_path, more={"llama.context_length": 4096})
    small = run(runner, RunRequest(prompt="the cat"), 2)
    room = runner.run_context(1).shape.slots
    context = runner.run_context(room + 1)
    assert context.shape.slots > room
    assert context.ids == tuple(t.id for t in small.tokens[:-1])
    again = run(runner, RunRequest(prompt="the cat"), 1, small.chosen_ids).steps[0]
    assert again.rebuilt_tokens == 0
    fresh = llama(tmp_path, more={"llama.context_length": 4096})
    whole = run(fresh, RunRequest(prompt="the cat"), 3)
    assert np.array_equal(again.logits, whole.steps[2].logits)
    for one in (runner, fresh):
        one.close()


def test_a_map_that_is_not_rebuilt_is_recorded(tmp_path: Path) -> None:
    runner = llama(tmp_path)
    assert runner.proven is not None
    runner.proven = replace(runner.proven, rebuilt=frozenset({0}), recorded=frozenset({1}))
    trace = run(runner, REQUEST, 2)
    for number in (0, 1):
        kinds = [record.kind for record in trace.steps[number].layers[:2]]
        assert kinds == ["qk", "map"]
        assert np.abs(trace.weights(number, 1, 0).sum(axis=1) - 1).max() <= 1e-5
    runner.close()
