"""The session over the real engine: in this process, and as a child that is killed."""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.session import capture_budget
from explorer.session.connection.ports import Engine
from explorer.session.connection.remote import EngineProcess
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.trace import Trace
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.session.scripted import cut_last


class Running:
    """A session whose owner is the test's thread."""

    def __init__(self, engine: Callable[[], Engine], model: Path) -> None:
        self.engines: list[Engine] = []
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

        def factory() -> Engine:
            self.engines.append(engine())
            return self.engines[-1]

        self.session = Session(factory, self._posted.put)
        self.session.start_engine()
        self.session.open_model(str(model))
        self.session.set_prompt("the cat sat on the")
        self.until(lambda state: state.card is not None and bool(state.prompt_tokens))

    @property
    def state(self) -> State:
        return self.session.state

    @property
    def trace(self) -> Trace:
        assert self.state.trace is not None, self.state.error
        return self.state.trace

    def until(self, condition: Callable[[State], bool]) -> None:
        """Run what is posted until the state is as wished."""
        while not condition(self.state):
            self._posted.get(timeout=100)()

    def step(self, steps: int) -> None:
        before = 0 if self.state.request_changed or not self.state.trace else len(self.trace.steps)
        self.session.step(steps)
        self.until(
            lambda s: (
                s.status.activity == "idle"
                and s.trace is not None
                and not s.request_changed
                and len(s.trace.steps) == before + steps
            )
        )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())


@pytest.fixture
def running(tiny: Path) -> Iterator[Running]:
    running = Running(LocalEngine, tiny)
    yield running
    running.session.close()


def assert_same_run(one: Trace, other: Trace) -> None:
    assert one.chosen_ids == other.chosen_ids
    for a, b in zip(one.steps, other.steps, strict=True):
        np.testing.assert_allclose(a.logits, b.logits, atol=1e-4, rtol=0)
    last = len(one.steps) - 1
    for layer in range(3):
        np.testing.assert_allclose(
            one.weights(last, layer, 1), other.weights(last, layer, 1), atol=1e-4
        )


def test_ten_forward_six_back_six_forward_is_a_fresh_run(running: Running) -> None:
    running.step(10)
    first = running.trace
    cut_last(running.session, 6)
    running.step(6)
    again = running.trace
    assert all(a is not b for a, b in zip(first.steps[4:], again.steps[4:], strict=True))
    assert_same_run(first, again)
    running.session.reset()
    running.step(10)
    assert_same_run(running.trace, again)


def test_a_forced_token_is_read_by_the_next_pass(running: Running) -> None:
    running.step(3)
    other = running.trace.steps[-1].top[5].id
    running.session.force(other)
    running.step(2)
    assert running.trace.steps[3].token_ids == (other,)
    assert [token.origin for token in running.trace.chosen] == [
        "generated", "generated", "forced", "generated", "generated",
    ]  # fmt: skip


def test_the_self_check_of_what_is_on_screen(running: Running) -> None:
    running.step(4)
    running.session.run_self_check()
    running.until(lambda state: state.status.activity == "idle")
    assert running.state.error == ""
    failed = [check for check in running.state.self_check.checks if not check.passed]
    assert (running.state.self_check.passed, failed) == (True, [])


def test_a_pass_that_was_let_go_comes_back_as_it_was(running: Running) -> None:
    running.session.set_cache(False)
    running.step(5)
    kept = running.trace
    running.session.undo()
    running.session.reset()
    running.session.set_cache(False)
    running.session.background.budget_bytes = capture_budget.layer_bytes(kept.steps[-1])
    running.step(5)
    assert [step.layers[0].kind for step in running.trace.steps] == ["absent"] * 4 + ["qk"]
    running.session.select(step=2)
    running.until(lambda state: state.status.activity == "idle")
    step = running.trace.steps[2]
    assert step.note == capture_budget.RERUN_NOTE
    for layer in range(3):
        np.testing.assert_allclose(
            running.trace.weights(2, layer, 0), kept.weights(2, layer, 0), atol=1e-6
        )


@pytest.mark.timeout(300)  # two children that import torch, perhaps beside other work
def test_a_killed_engine_and_one_click_goes_on(tiny: Path) -> None:
    running = Running(EngineProcess, tiny)
    running.session.run()
    running.until(lambda state: state.trace is not None and len(state.trace.steps) >= 3)
    child = running.engines[0]
    assert isinstance(child, EngineProcess)
    assert child.pid is not None
    os.kill(child.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    running.until(lambda state: state.status.activity == "lost")
    kept = running.trace
    assert running.state.request.prompt == "the cat sat on the"
    running.step(2)
    assert running.trace.chosen_ids[:-2] == kept.chosen_ids
    assert running.trace.steps[: len(kept.steps)] == kept.steps
    gone_on = running.trace
    running.session.reset()
    running.step(len(gone_on.steps))
    assert_same_run(running.trace, gone_on)
    running.session.close()


def test_a_model_that_cannot_be_opened_costs_the_one_that_works_nothing(
    running: Running, tmp_path: Path
) -> None:
    running.step(2)
    dispatcher = running.engines[0]._dispatcher  # type: ignore[attr-defined]
    runner, model = dispatcher._runner, running.state.request.model
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(200))
    running.session.open_model(str(bad))
    running.until(lambda s: "still open" in s.error and s.status.activity == "idle")
    assert running.state.request.model == model
    assert dispatcher._runner is runner  # it was not read again
    running.session.step()
    running.until(lambda s: s.trace is not None and len(s.trace.steps) == 3)
