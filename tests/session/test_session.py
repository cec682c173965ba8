"""The session against an engine that says what the test wants, in the order the test wants."""

from __future__ import annotations

import pytest

from explorer.session.state import State
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage, ids, stepped


def test_nothing_starts_by_itself(stage: Stage) -> None:
    assert stage.engines == []
    assert stage.state.status.activity == "starting"


def test_start_then_hello_is_idle(stage: Stage) -> None:
    stage.session.start_engine()
    assert stage.state.status.activity == "starting"
    stage.drain()
    assert stage.state.status.activity == "idle"


def test_an_engine_that_cannot_be_made_is_lost_with_a_sentence() -> None:
    from explorer.session.session import Session

    def none() -> None:
        raise FileNotFoundError(2, "No such file", "engine")

    session = Session(none, lambda call: call())  # type: ignore[arg-type]
    session.start_engine()
    assert session.state.status.activity == "lost"
    assert "could not be started" in session.state.error
    session.close()


def test_load_shows_progress_then_the_card(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny", dtype="bfloat16")
    load = stage.engine.last(m.Load)
    assert (load.model, load.dtype) == ("tiny", "bfloat16")
    assert stage.state.status.activity == "loading"
    stage.say(m.Progress(run=load.run, text="Reading weights", fraction=0.5))
    assert (stage.state.status.text, stage.state.status.fraction) == ("Reading weights", 0.5)
    assert stage.state.card is None
    stage.answer_load()
    assert stage.state.card is not None
    assert stage.state.status.activity == "idle"
    assert stage.state.request.dtype == "bfloat16"


def test_a_failed_first_load_leaves_a_sentence_and_no_model(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("other")
    run = stage.engine.last(m.Load).run
    stage.say(m.Failed(run=run, sentence="There is no model called other.", details="its why"))
    assert stage.state.request.model == ""
    assert stage.state.error == "There is no model called other."
    assert "its why" in caplog.text
    assert stage.state.card is None
    stage.session.report("")
    assert stage.state.error == ""


def test_the_answer_of_a_load_that_was_replaced_is_dropped(stage: Stage) -> None:
    stage.loaded().session.open_model("a")
    old = stage.engine.last(m.Load).run
    stage.session.open_model("b")
    stage.say(m.Failed(run=old, sentence="no a"))
    assert stage.state.error == ""
    assert stage.state.status.activity == "loading"
    assert m.Cancel(run=old) in stage.engine.asked


def test_events_of_a_replaced_engine_are_dropped(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    old = stage.engine
    old.say(stepped(run, 0))  # posted, not yet delivered
    stage.session.restart_engine()
    stage.drain()
    assert stage.state.trace is None  # as before a run of which no step was seen
    assert not old.alive
    assert len(stage.engines) == 2


def test_a_lost_engine_keeps_trace_and_prompt_and_one_click_goes_on(stage: Stage) -> None:
    stage.loaded("my prompt").session.run()
    stage.prompted()
    stage.steps(3)
    trace = stage.state.trace
    stage.say(m.Lost(sentence="The engine's process ended (killed)."))
    assert stage.state.status.activity == "lost"
    assert stage.state.error.startswith("The engine's process ended (killed).")
    assert stage.state.trace is trace
    assert stage.state.request.prompt == "my prompt"
    stage.session.run()
    stage.drain()
    assert len(stage.engines) == 2
    assert stage.engine.last(m.Load).model == "tiny"
    assert stage.state.error == ""
    stage.answer_load()
    advance = stage.engine.last(m.Advance)
    assert advance.chosen == (10, 11, 12)
    stage.prompted()
    stage.steps(1)
    assert ids(stage.state) == [10, 11, 12, 13]


def test_restart_loads_the_model_again_without_running(stage: Stage) -> None:
    stage.loaded().ran(1)
    stage.say(m.Lost(sentence="gone"))
    stage.session.restart_engine()
    stage.drain()
    stage.answer_load()
    assert stage.engine.count(m.Advance) == 0
    assert stage.state.status.activity == "idle"
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10,)


def test_an_engine_lost_while_loading_loads_again(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    stage.say(m.Lost(sentence="gone"))
    stage.session.restart_engine()
    stage.drain()
    assert stage.engine.count(m.Load) == 1
    assert stage.state.status.activity == "loading"


def test_cancel_ends_a_load(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    run = stage.engine.last(m.Load).run
    stage.session.cancel()
    assert m.Cancel(run=run) in stage.engine.asked
    stage.answer_load()
    assert stage.state.card is None
    assert stage.state.status.activity == "idle"


def test_listeners_hear_every_change_in_order_even_when_one_changes_state(stage: Stage) -> None:
    heard: list[tuple[str, str]] = []

    def meddle(old: State, new: State) -> None:
        if new.request.prompt == "a":
            stage.session.set_prompt("ab")

    stage.session.subscribe(meddle)
    stop = stage.session.subscribe(
        lambda old, new: heard.append((old.request.prompt, new.request.prompt))
    )
    stage.session.set_prompt("a")
    assert heard == [("", "a"), ("a", "ab")]
    stop()
    stage.session.set_prompt("abc")
    assert len(heard) == 2


def test_close_ends_the_engine_and_nothing_comes_after(stage: Stage) -> None:
    stage.loaded().session.run()
    engine = stage.engine
    stage.session.close()
    assert not engine.alive
