"""A run whose engine is lost goes on with the next one from where it was, after one click."""

from __future__ import annotations

from explorer.session.connection.lost_words import still_silent
from explorer.session.driver import GOES_ON, RESTART, RUN_KEPT, RUNNING
from explorer.trace.request import Sampling
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage, ids

LOST = m.Lost(sentence="The connection to the engine broke.")


def lost_while_running(stage: Stage) -> Stage:
    """After three of endless steps."""
    stage.loaded().session.run()
    stage.prompted()
    stage.steps(3)
    stage.say(LOST)
    return stage


def test_one_click_and_the_run_goes_on(stage: Stage) -> None:
    before = ids(lost_while_running(stage).state)
    assert stage.state.error == f"{LOST.sentence} {RUN_KEPT} {GOES_ON.format(3)}"
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    asked = stage.engine.last(m.Advance)
    assert list(asked.chosen) == before == [10, 11, 12]
    assert asked.steps > 1000
    stage.prompted()
    stage.steps(1)
    assert ids(stage.state) == [10, 11, 12, 13]


def test_lost_again_before_it_goes_on(stage: Stage) -> None:
    lost_while_running(stage)
    for _ in range(2):  # while the model is opened, and while the run is proven
        stage.session.restart_engine()
        stage.drain()
        stage.say(LOST)
        assert GOES_ON.format(3) in stage.state.error
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    stage.say(LOST)
    assert GOES_ON.format(3) in stage.state.error


def test_steps_that_were_asked_for_are_counted(stage: Stage) -> None:
    stage.loaded().session.step(5)
    stage.prompted()
    stage.steps(2)
    stage.say(LOST)
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.last(m.Advance).steps == 3


def test_what_has_changed_meanwhile_does_not_go_on(stage: Stage) -> None:
    lost_while_running(stage).session.set_prompt("another prompt")
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.count(m.Advance) == 0


def test_a_run_that_was_paused_does_not_go_on(stage: Stage) -> None:
    stage.loaded().ran(2)
    stage.say(LOST)
    assert stage.state.error.endswith(RESTART)
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.count(m.Advance) == 0


def test_a_step_in_place_of_the_click_is_one_step(stage: Stage) -> None:
    lost_while_running(stage).session.step()
    stage.drain()
    stage.answer_load()
    assert stage.engine.last(m.Advance).steps == 1


def test_a_branch_that_was_begun_is_not_put_at_the_end(stage: Stage) -> None:
    stage.loaded().ran(3)
    stage.session.set_sampling(Sampling(seed=7))
    stage.session.look(-2)
    stage.session.step()
    asked = stage.engine.last(m.Advance)
    assert len(asked.chosen) < 3
    stage.say(LOST)
    assert GOES_ON.format(len(asked.chosen)) in stage.state.error
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.last(m.Advance).chosen == asked.chosen


def test_a_run_that_is_read_again_is_not_made_longer(stage: Stage) -> None:
    stage.loaded().ran(3)
    stage.session.run_again()
    stage.say(LOST)
    assert stage.state.error.endswith(RESTART)
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.count(m.Advance) == 0


def test_a_step_that_waits_for_the_model_is_said_to_wait(stage: Stage) -> None:
    lost_while_running(stage).session.restart_engine()
    assert stage.state.status.step_waits


def test_a_link_that_works_again_is_no_longer_said_to_be_silent(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.steps(2)
    stage.say(m.Progress(run=run, text=still_silent(20)))
    assert stage.state.status.text == still_silent(20)
    stage.steps(1)
    assert stage.state.status.text == RUNNING
