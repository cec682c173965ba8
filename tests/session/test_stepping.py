"""Stepping forwards and backwards, forcing, and what changes reach a run."""

from __future__ import annotations

import numpy as np
import pytest

from explorer.trace.request import Sampling
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, cut_last, ids, stepped


def test_first_step_is_a_prefill_and_the_next_names_the_whole_context(stage: Stage) -> None:
    stage.loaded().ran(1)
    assert stage.engine.last(m.Advance).chosen == ()
    assert stage.state.trace is not None
    assert stage.state.trace.prompt == PROMPT
    assert stage.state.status.activity == "checking"  # gives way to the next wish
    stage.session.step()
    again = stage.engine.last(m.Advance)
    assert (again.chosen, again.steps) == ((10,), 1)
    stage.prompted()
    stage.steps(1)
    stage.finish("end token")
    assert ids(stage.state) == [10, 11]
    assert stage.state.trace.stop_reason == "end token"


def test_step_before_any_model_says_so(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.step()
    assert "Open a model first" in stage.state.error


def test_step_while_loading_waits_for_the_model(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("tiny")
    stage.session.set_prompt("hi")
    stage.session.step(3)
    assert stage.engine.count(m.Advance) == 0
    stage.answer_load()
    assert stage.engine.last(m.Advance).steps == 3


def test_steps_wished_for_during_a_step_are_run_after_it(stage: Stage) -> None:
    stage.loaded().session.step()
    for _ in range(5):  # six quick taps in all
        stage.session.step()
    assert stage.engine.count(m.Advance) == 1
    stage.prompted()
    stage.steps(1)
    stage.finish()
    assert stage.engine.count(m.Advance) == 2
    assert stage.engine.last(m.Advance).steps == 5
    assert stage.engine.last(m.Advance).chosen == (10,)


def test_a_key_held_down_does_not_pile_up_steps(stage: Stage) -> None:
    stage.loaded().session.step()
    for _ in range(50):
        stage.session.step()
    stage.prompted()
    stage.steps(1)
    stage.finish()
    assert stage.engine.last(m.Advance).steps == 5


def test_late_steps_of_a_paused_run_are_stale(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.steps(2)
    assert stage.state.status.activity == "running"
    stage.session.pause()
    assert m.Cancel(run=run) in stage.engine.asked
    stage.say(stepped(run, 2), m.Finished(run=run, reason="cancelled"))
    assert ids(stage.state) == [10, 11]
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 11)
    stage.say(stepped(run, 2))
    assert ids(stage.state) == [10, 11]


def test_a_step_out_of_order_is_never_shown(stage: Stage) -> None:
    stage.loaded().ran(1).session.step()
    run = stage.prompted()
    stage.say(stepped(run, 5))
    assert ids(stage.state) == [10]
    assert "out of order" in stage.state.error
    assert stage.state.status.activity == "idle"


def test_failure_in_a_run_keeps_the_steps(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.steps(2)
    stage.say(m.Failed(run=run, sentence="Not enough memory."))
    assert stage.state.error == "Not enough memory."
    assert ids(stage.state) == [10, 11]
    assert not stage.state.busy


def test_a_changed_request_keeps_the_trace_until_the_next_step(stage: Stage) -> None:
    stage.loaded().ran(2)
    old = stage.state.trace
    stage.session.set_causal_mask(False)
    assert stage.state.trace is old
    assert stage.state.request_changed
    stage.session.step()
    advance = stage.engine.last(m.Advance)
    assert advance.chosen == ()
    assert not advance.request.causal_mask
    assert stage.state.trace is old
    stage.prompted()
    assert stage.state.trace is not old
    assert not stage.state.request_changed
    stage.steps(1)
    stage.finish()
    stage.session.undo()
    assert stage.state.trace is old


def test_a_fresh_run_that_fails_leaves_the_old_trace(stage: Stage) -> None:
    stage.loaded().ran(2)
    old = stage.state.trace
    stage.session.set_prompt("")
    stage.session.step()
    stage.say(m.Failed(run=stage.engine.last(m.Advance).run, sentence="The prompt is empty."))
    assert stage.state.trace is old
    assert stage.state.error == "The prompt is empty."


def test_a_prompt_read_as_other_tokens_stops_with_a_sentence(stage: Stage) -> None:
    stage.loaded().ran(1).session.step()
    run = stage.engine.last(m.Advance).run
    stage.say(m.Prompted(run=run, tokens=(Token(7, b"x"),)))
    assert "different tokens" in stage.state.error
    assert stage.state.trace is not None
    assert stage.state.trace.prompt == PROMPT


def test_cut_removes_what_follows_and_stepping_again_is_a_new_pass(stage: Stage) -> None:
    stage.loaded().ran(5).session.select(step=2)
    stage.session.cut()
    assert ids(stage.state) == [10, 11, 12]
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)
    stage.session.cancel()


def test_a_cut_is_one_act_and_undo_selects_the_token_again(stage: Stage) -> None:
    stage.loaded().ran(5).session.select(step=2)
    whole = stage.state.trace
    stage.session.cut()
    assert stage.state.undo_kind == "cut"
    stage.session.undo()
    assert stage.state.trace is whole
    assert stage.state.step_index == 2
    stage.session.redo()
    assert ids(stage.state) == [10, 11, 12]


def test_at_the_end_of_a_run_there_is_nothing_to_cut(stage: Stage) -> None:
    stage.loaded().ran(2)
    before, kind = stage.state.trace, stage.state.undo_kind
    stage.session.cut()
    assert (stage.state.trace, stage.state.undo_kind) == (before, kind)


def test_a_cut_during_a_run_ends_the_run(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.steps(3)
    cut_last(stage.session)
    assert m.Cancel(run=run) in stage.engine.asked
    stage.say(stepped(run, 2))
    assert ids(stage.state) == [10, 11]


def test_force_replaces_the_last_token_with_the_models_probability(stage: Stage) -> None:
    stage.loaded().ran(2).session.force(25)
    trace = stage.state.trace
    assert trace is not None
    assert trace.chosen[-1] == Token(25, b"t25", "forced")
    draw = trace.steps[-1].draw
    logits = trace.steps[-1].logits.astype(np.float64)
    expected = np.exp(logits[25]) / np.exp(logits).sum()
    assert draw.how == "forced"
    assert draw.raw_probability == pytest.approx(expected, rel=1e-6)
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 25)


def test_force_on_an_earlier_step_cuts_what_came_after(stage: Stage) -> None:
    stage.loaded().ran(5).session.select(step=1)
    stage.session.force(20)
    assert ids(stage.state) == [10, 20]
    assert stage.state.selection.step is None
    stage.session.undo()
    assert ids(stage.state) == [10, 11, 12, 13, 14]
    stage.session.redo()
    assert ids(stage.state) == [10, 20]


def test_force_of_an_unknown_token_is_refused_in_words(stage: Stage) -> None:
    stage.loaded().session.force(12)
    assert "no generated token" in stage.state.error
    stage.ran(1).session.force(35)
    assert "Token 35" in stage.state.error
    assert ids(stage.state) == [10]


def test_sampling_changes_reach_a_run_under_way(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    hot = Sampling(greedy=False, temperature=1.5)
    stage.session.set_sampling(hot)
    assert stage.engine.last(m.Resample) == m.Resample(run=run, sampling=hot)
    stage.session.undo()
    assert stage.engine.last(m.Resample) == m.Resample(run=run, sampling=Sampling())
    assert stage.state.status.activity == "running"


def test_sampling_never_touches_an_idle_engine(stage: Stage) -> None:
    stage.loaded().ran(1)
    before = len(stage.engine.asked)
    stage.session.set_sampling(Sampling(greedy=False, top_k=3))
    assert len(stage.engine.asked) == before
    assert not stage.state.request_changed


def test_impossible_sampling_is_refused_in_words(stage: Stage) -> None:
    stage.session.set_sampling(Sampling(greedy=False, top_p=1.5))
    assert "Top-p" in stage.state.error
    assert stage.state.sampling == Sampling()


def test_selection_follows_the_newest_step_when_stepping(stage: Stage) -> None:
    stage.loaded().ran(3).session.select(step=1, query=2, layer=1, head=1)
    assert stage.state.step_index == 1
    stage.session.step(2)
    assert stage.state.status.activity == "running"
    assert (stage.state.selection.step, stage.state.selection.query) == (None, None)
    assert (stage.state.selection.layer, stage.state.selection.head) == (1, 1)


def test_another_step_drops_the_old_cursor(stage: Stage) -> None:
    stage.loaded().ran(3).session.select(step=0, query=2, key=1)
    stage.session.select(step=1)
    assert (stage.state.selection.query, stage.state.selection.key) == (None, None)
    stage.session.select(step=2, query=4)
    assert stage.state.selection.query == 4


def test_reset_drops_and_undo_brings_back(stage: Stage) -> None:
    stage.loaded().ran(2)
    trace = stage.state.trace
    stage.session.reset()
    assert stage.state.trace is None
    assert stage.state.can_undo
    stage.session.undo()
    assert stage.state.trace is trace
