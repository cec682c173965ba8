"""Branches over the real engine: thirty nodes, many settings, text forced byte by byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer import places
from explorer import sampling as chain
from explorer.engine.passes.generate import logits_after
from explorer.figures.text import tokens
from explorer.session.branches import Branches
from explorer.trace.files import dxt
from explorer.trace.request import Sampling, Stops
from explorer.trace.trace import Trace
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.session.connection.test_real_engine import Running

REAL = sorted(places.models_folder().glob("smollm2/*.gguf"))  # before tests get their own home
TEXT = "👩‍🚀 漢字"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())
    running = Running(LocalEngine, folder)
    running.until(lambda state: state.vocabulary is not None)
    running.session.set_stops(Stops(end_tokens=False))
    yield running
    running.session.close()


def nodes(branches: Branches) -> dict[tuple[int, ...], tuple[int, int]]:
    """What was chosen before each step, and one branch and step that show it."""
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for branch in branches.all:
        for step in range(len(branch.trace.steps)):
            found.setdefault(branch.trace.chosen_ids[: step + 1], (branch.number, step))
    return found


def test_thirty_nodes_at_random_equal_fresh_runs(running: Running) -> None:
    require_thirty_nodes(running)


@pytest.mark.slow
@pytest.mark.smollm2
@pytest.mark.timeout(1800)
def test_thirty_nodes_of_a_real_model_equal_fresh_runs() -> None:
    running = Running(LocalEngine, REAL[0])
    running.until(lambda state: state.vocabulary is not None)
    require_thirty_nodes(running)
    running.session.close()


def require_thirty_nodes(running: Running) -> None:
    running.session.reset()
    running.session.set_prompt("the cat sat on the")
    dice = random.Random(6)
    running.step(3)
    while len(nodes(running.state.branches)) < 30:
        number, step = dice.choice(list(nodes(running.state.branches).values()))
        running.session.show_branch(number, select=step)
        running.session.force(dice.randrange(3, 300))
        assert not running.state.error
        running.step(dice.randrange(1, 4))
    seen = nodes(running.state.branches)
    picked = list(seen.items())
    dice.shuffle(picked)
    engine = running.engines[-1]
    assert isinstance(engine, LocalEngine)
    runner = engine._dispatcher._runner  # type: ignore[union-attr]
    assert runner is not None
    for path, (number, step) in picked:
        running.session.show_branch(number, select=step)
        trace = running.trace
        assert running.state.step_index == step
        assert trace.chosen_ids[: step + 1] == path
        assert trace.weights(step, 0, 0).sum(axis=-1) == pytest.approx(1, abs=1e-4)
        request = trace.request
        runner.cache.drop()
        fresh = logits_after(runner, request, path[:-1])
        np.testing.assert_allclose(trace.steps[step].logits, fresh, atol=1e-4, rtol=0)
    assert 0 < running.state.branches.bytes < 30 * 1_000_000


def test_stepping_on_after_a_jump_uses_the_cache_of_the_shared_beginning(running: Running) -> None:
    running.session.reset()
    running.session.set_prompt("one two three")
    running.step(6)
    branch = running.state.branches.current
    assert branch is not None
    running.session.show_branch(branch, steps=3)
    running.session.force(77)
    running.step(1)
    step = running.trace.steps[-1]
    assert (step.phase, step.rebuilt_tokens) == ("decode", 0)


def test_ten_steps_with_ten_settings_replay_and_come_back_from_a_file(
    running: Running, tmp_path: Path
) -> None:
    running.session.reset()
    running.session.set_prompt("the dog sat")
    used = []
    for i in range(10):
        used.append(
            Sampling(
                greedy=i == 4, temperature=0.5 + i / 5, top_k=3 * i, top_p=1 - i / 30,
                min_p=i / 200, repetition_penalty=1 + i / 20, seed=7,
            )
        )  # fmt: skip
        running.session.set_sampling(used[-1])
        running.step(1)
    first = running.trace
    path = tmp_path / "ten.dxt"
    dxt.save(first, path)
    for trace in (first, dxt.load(path)):
        for i, step in enumerate(trace.steps):
            assert step.sampling == used[i]
            again = chain.pick(step.logits, step.sampling, i, trace.context_ids(i))
            assert again == step.draw
            assert (step.draw.u is None) == (i == 4)
    running.session.reset()
    for sampling in used:
        running.session.set_sampling(sampling)
        running.step(1)
    assert running.trace.chosen_ids == first.chosen_ids
    running.session.set_sampling(Sampling())


def test_text_forced_token_by_token_shows_no_replacement_character(running: Running) -> None:
    running.session.reset()
    running.session.set_prompt(TEXT)
    running.until(lambda s: b"".join(t.raw for t in s.prompt_tokens) == TEXT.encode())
    ids = [token.id for token in running.state.prompt_tokens]
    assert len(ids) > len(TEXT)  # several tokens a character
    running.session.set_prompt("the cat")
    for token_id in ids:
        running.step(1)
        running.session.force(token_id)
        assert not running.state.error
        shown = tokens.labels(running.trace.tokens)
        assert not any("\ufffd" in label.text + label.whole for label in shown)
    assert tokens.decode(running.trace.chosen) == TEXT
    own = shown[len(running.trace.prompt) :]
    assert "漢" in "".join(label.whole or label.text for label in own)
    assert all(label.whole for label in own if label.partial)


def test_stop_rules_end_a_run_and_an_end_token_in_the_prompt_does_not(running: Running) -> None:
    running.session.reset()
    running.session.set_prompt("the <|im_end|> cat")
    running.session.set_stops(Stops(end_tokens=False, tokens=4))

    def run() -> Trace:
        running.session.reset()
        running.session.run()
        running.until(lambda s: s.trace is not None and s.trace.stop_reason != "")
        return running.trace

    whole = run()
    assert (whole.stop_reason, len(whole.steps)) == ("length", 4)
    spelled = next(t.raw.decode() for t in whole.chosen if t.raw.isascii() and t.raw)
    running.session.set_stops(Stops(end_tokens=False, strings=("never", spelled)))
    stopped = run()
    assert stopped.stop_reason == "stop string"
    assert stopped.chosen[-1].raw.decode() == spelled
    running.session.undo()
    running.session.set_stops(Stops(end_tokens=False))
