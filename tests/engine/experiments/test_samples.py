"""Many draws of one prefix: exact distribution, one pass per prefix, the run's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.experiments import samples
from explorer.engine.experiments.torch_passes import TorchPasses
from explorer.engine.passes.generate import generate
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import DrawMany, Draws
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Step
from tests.engine.tiny import tiny_runner

REQUEST = RunRequest(prompt="5 9 14 3")
SAMPLING = Sampling(greedy=False, temperature=0.7, top_k=5, repetition_penalty=1.3, seed=4)


@pytest.fixture(scope="module")
def runner() -> Runner:
    torch.set_num_threads(1)
    return tiny_runner("llama")


def drawn(runner: Runner, **changes: Any) -> Draws:
    asked = {"request": REQUEST, "sampling": SAMPLING, "count": 40, "length": 3, **changes}
    return samples.draw_many(TorchPasses(runner), DrawMany(**asked), lambda *_: None)


def test_draw_zero_is_the_run_that_stepping_gives(runner: Runner) -> None:
    steps: list[Step] = []
    generate(runner, runner.prompt(REQUEST), (), 3, lambda: SAMPLING, lambda s, t: steps.append(s))
    alone = drawn(runner, count=1).continuations
    assert alone[0].ids == tuple(s.draw.token_id for s in steps)


def test_counts_add_up_and_only_possible_tokens_are_drawn(runner: Runner) -> None:
    facts = drawn(runner)
    assert sum(row.drawn for row in facts.first) == 40
    assert sum(row.drawn for row in facts.continuations) == 40
    assert sum(row.exact for row in facts.first) == pytest.approx(1)
    assert all(row.exact > 0 for row in facts.first if row.drawn)
    assert all(len(row.ids) == 3 for row in facts.continuations)


def test_shares_approach_the_exact_distribution(runner: Runner) -> None:
    facts = drawn(runner, count=4000, length=1)
    assert facts.passes == 1
    exact = np.array([row.exact for row in facts.first])
    share = np.array([row.drawn for row in facts.first]) / 4000
    np.testing.assert_allclose(share, exact, atol=4 * np.sqrt(0.25 / 4000))


def test_each_distinct_prefix_is_run_once(runner: Runner) -> None:
    facts = drawn(runner, count=300, length=2)
    prefixes = {tuple(row.ids[:1]) for row in facts.continuations}
    assert facts.passes == 1 + len(prefixes) <= 6


def test_a_draw_ends_with_an_end_token(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    end = drawn(runner).first[0].id
    card = runner.loaded.card
    ended = msgspec.structs.replace(card, eos_ids=(end,))
    monkeypatch.setattr(runner, "loaded", replace(runner.loaded, card=ended))
    facts = drawn(runner)
    for row in facts.continuations:
        assert end not in row.ids[:-1]
        assert len(row.ids) == 3 or row.ids[-1] == end


def test_what_is_told_on_the_way_is_what_so_few_draws_alone_give(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "_PART_S", 0)
    parts: list[Draws] = []
    asked = DrawMany(request=REQUEST, sampling=SAMPLING, count=40, length=3)
    whole = samples.draw_many(TorchPasses(runner), asked, lambda *_: None, part=parts.append)
    counts = [part.count for part in parts]
    assert counts == sorted(set(counts))
    assert len(counts) > 3
    assert counts[0] < 5
    assert all(part.asked == 40 for part in [*parts, whole])
    assert whole.count == 40
    for part in (parts[0], parts[-1]):
        alone = drawn(runner, count=part.count)
        assert rows(alone.continuations) == rows(part.continuations)
        assert rows(alone.first) == rows(part.first)


def rows(listed: Sequence[Any]) -> list[tuple[Any, int]]:
    return sorted((getattr(row, "ids", getattr(row, "id", None)), row.drawn)
                  for row in listed if row.drawn)  # fmt: skip


def test_progress_ends_at_one_and_cancel_is_heard(runner: Runner) -> None:
    told: list[float] = []
    asked = DrawMany(request=REQUEST, sampling=SAMPLING, count=20, length=3)
    samples.draw_many(TorchPasses(runner), asked, lambda _, share: told.append(share))
    assert told == sorted(told)
    assert told[-1] == 1
    with pytest.raises(Cancelled):
        samples.draw_many(TorchPasses(runner), asked, lambda *_: None, lambda: True)


@pytest.mark.parametrize(
    "changes", [{"count": 0}, {"length": 65}, {"sampling": Sampling()}, {"count": 100_001}]
)
def test_what_cannot_be_drawn_is_a_sentence(runner: Runner, changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"must be|Switch it off"):
        drawn(runner, **changes)
