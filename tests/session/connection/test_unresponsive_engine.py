"""An engine that obeys no cancel is ended and started anew by itself."""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from explorer.session.connection import engine_link
from explorer.session.connection.remote import EngineProcess
from explorer.session.jobs import live_tokens
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.wire import messages as m
from tests.session.jobs.test_replay_check import BEFORE, TOUCHED
from tests.session.scripted import Stage, ids

FAKE = Path(__file__).parents[1] / "fake_engine.py"


def lose_patience(stage: Stage) -> None:
    """From now on an engine that is cancelled is at once taken for unresponsive."""
    stage.session._driver._lease.link.patience = 0.0


@pytest.fixture
def hasty(stage: Stage) -> Stage:
    """With an engine that is at once taken for unresponsive."""
    lose_patience(stage)
    return stage


def until(stage: Stage, condition: Callable[[], bool]) -> None:
    while not condition():
        stage.drain()


def test_the_next_model_is_opened_by_the_next_engine(hasty: Stage) -> None:
    hasty.loaded().ran(2)
    hasty.session.open_model("slow")
    hasty.session.cancel()
    hasty.session.open_model("quick")
    until(hasty, lambda: len(hasty.engines) == 2)
    hasty.drain()
    assert hasty.engine.last(m.Load).model == "quick"
    assert "did not stop" in hasty.state.error
    hasty.answer_load(name="quick")
    assert ids(hasty.state) == [10, 11]
    assert hasty.state.card is not None
    assert "did not stop" in hasty.state.error  # said, until it is dismissed


def test_a_step_that_was_wished_for_meanwhile_is_made(hasty: Stage) -> None:
    hasty.loaded().session.run()
    hasty.prompted()
    hasty.session.pause()
    hasty.session.step()
    until(hasty, lambda: len(hasty.engines) == 2)
    hasty.drain()
    hasty.answer_load()
    assert hasty.engine.last(m.Advance).steps == 1
    assert "did not stop" in hasty.state.error  # while it runs, too
    hasty.prompted()
    hasty.steps(1)
    hasty.finish()
    hasty.session.step()
    assert hasty.state.error == ""


def test_a_run_that_is_gone_on_with_is_proven_and_the_restart_is_told(stage: Stage) -> None:
    stage.loaded().session.open_model("tiny")
    stage.answer_load(fingerprint=BEFORE)
    stage.ran(2)
    lose_patience(stage)
    stage.session.run()  # the self-check is cancelled
    until(stage, lambda: len(stage.engines) == 2)
    stage.drain()
    stage.answer_load(fingerprint=TOUCHED)
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11)
    assert "did not stop" in stage.state.error


def restarted(stage: Stage) -> None:
    """The engine obeys no cancel, and the next one has opened the model."""
    lose_patience(stage)
    stage.session._driver._lease.link.send(m.Cancel(run=0))  # of anything
    until(stage, lambda: len(stage.engines) == 2)
    stage.drain()
    stage.answer_load(fingerprint=TOUCHED)


def test_steps_that_wait_for_the_proof_of_their_run_are_made_by_the_next_engine(
    stage: Stage,
) -> None:
    stage.loaded().session.open_model("tiny")
    stage.answer_load(fingerprint=BEFORE)
    stage.ran(2)
    stage.session.open_model("tiny")
    stage.answer_load(fingerprint=TOUCHED)
    stage.session.step()  # the proof begins
    stage.session.step()
    restarted(stage)
    stage.prove()
    asked = stage.engine.last(m.Advance)
    assert (asked.chosen, asked.steps) == ((10, 11), 2)
    assert ids(stage.state) == [10, 11]


def test_steps_still_to_make_and_those_wished_for_meanwhile_are_made_by_the_next_engine(
    stage: Stage,
) -> None:
    stage.loaded().session.open_model("tiny")
    stage.answer_load(fingerprint=TOUCHED)
    stage.session.step(3)
    stage.prompted()
    stage.steps(1)
    for _ in range(2):
        stage.session.step()
    restarted(stage)
    asked = stage.engine.last(m.Advance)
    assert (asked.chosen, asked.steps) == ((10,), 4)


@pytest.mark.parametrize("read", [False, True])
def test_undo_takes_back_the_act_that_a_run_of_the_next_engine_belongs_to(
    hasty: Stage, read: bool
) -> None:
    hasty.loaded().ran(2)
    hasty.session.run_prompt("of a batch", False, "left", 2)  # the self-check is cancelled
    if read:
        hasty.prompted()
    until(hasty, lambda: len(hasty.engines) == 2)
    hasty.drain()
    hasty.answer_load()
    assert hasty.engine.last(m.Advance).request.prompt == "of a batch"
    hasty.prompted()
    hasty.steps(1)
    hasty.finish()
    assert hasty.state.undo_kind == "batch prompt"
    hasty.session.undo()
    assert hasty.state.request.prompt == "hello"
    assert ids(hasty.state) == [10, 11]


def test_a_model_that_was_given_up_is_not_opened_again(hasty: Stage) -> None:
    hasty.session.start_engine()
    hasty.drain()
    hasty.session.open_model("slow")
    hasty.say(m.Progress(run=hasty.engine.last(m.Load).run, text="Reading the tokenizer"))
    hasty.session.cancel()
    until(hasty, lambda: len(hasty.engines) == 2)
    hasty.drain()
    assert hasty.engine.count(m.Load) == 0
    assert hasty.state.status.activity == "idle"


def test_a_cancel_that_is_obeyed_changes_nothing(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.session.pause()
    stage.finish("cancelled", run)
    (timer,) = [stage.session._driver._lease.link._timer]
    assert timer is None
    assert len(stage.engines) == 1


def test_a_prompt_whose_tokens_never_come_is_cancelled_with_its_model(hasty: Stage) -> None:
    hasty.loaded()
    asked = hasty.engine.last(m.Tokenize).run
    hasty.session.open_model("other")
    assert m.Cancel(run=asked) in hasty.engine.asked
    until(hasty, lambda: len(hasty.engines) == 2)


def test_a_prompt_changed_while_its_tokens_never_come(
    hasty: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tokens, "_SLOW_SECONDS", 0.0)
    hasty.loaded()
    asked = hasty.engine.last(m.Tokenize)
    hasty.session.set_chat(True)
    assert m.Cancel(run=asked.run) in hasty.engine.asked
    until(hasty, lambda: len(hasty.engines) == 2)
    hasty.answer_load()
    assert hasty.engine.last(m.Tokenize).request.chat


def test_a_question_that_is_cancelled_is_followed_by_the_next(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_tokens, "_SLOW_SECONDS", 0.0)
    stage.loaded("one")
    asked = stage.engine.last(m.Tokenize)
    stage.session.set_prompt("two")
    assert stage.engine.last(m.Tokenize) is asked
    stage.say(m.Finished(run=asked.run, reason="cancelled"))
    assert stage.engine.last(m.Tokenize).request.prompt == "two"


def test_an_engine_still_importing_is_given_time(stage: Stage) -> None:
    lose_patience(stage)
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("a")
    stage.session.cancel()
    pending = stage.session._driver._lease.link._timer
    assert pending is not None
    assert pending.interval > engine_link.FIRST_PATIENCE_SECONDS / 2


def test_a_large_model_is_given_the_time_of_a_layer(hasty: Stage) -> None:
    hasty.session.start_engine()
    hasty.drain()
    hasty.session.open_model("large")
    hasty.session.set_prompt("hello")
    hasty.answer_load(name="large", parameters=8_000_000_000, layers=32)
    hasty.session.run()
    hasty.prompted()
    hasty.session.pause()
    timer = hasty.session._driver._lease.link._timer
    assert timer is not None
    assert 30 < timer.interval < 120


def test_an_engine_that_is_lost_is_not_taken_for_unresponsive(stage: Stage) -> None:
    stage.loaded().session.run()  # the prompt's tokens are still asked for
    stage.prompted()
    stage.session.pause()
    stage.say(m.Lost(sentence="The engine's process ended."))
    assert stage.session._driver._lease.link._timer is None
    assert stage.state.status.activity == "lost"
    assert len(stage.engines) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_a_child_that_is_unresponsive_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))
    monkeypatch.setattr(engine_link, "PATIENCE_SECONDS", 0.2)
    posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    made: list[EngineProcess] = []

    def engine() -> EngineProcess:
        made.append(EngineProcess([sys.executable, str(FAKE), "unresponsive"]))
        return made[-1]

    session = Session(engine, posted.put)

    def until_state(condition: Callable[[State], bool]) -> None:
        while not condition(session.state):
            posted.get(timeout=60)()

    session.start_engine()
    session.open_model("x")
    until_state(lambda s: s.status.text == "busy")
    session.cancel()
    until_state(lambda s: "did not stop" in s.error)
    assert [one.alive for one in made] == [False, True]
    session.close()
