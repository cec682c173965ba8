"""Looking along a run changes nothing; only the end is computed on, or a branch begun."""

from __future__ import annotations

import pytest

from explorer.trace.request import Sampling
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage, ids, stepped

HOT = Sampling(greedy=False, temperature=1.5, seed=7)


def branched(stage: Stage, steps: int = 1) -> Stage:
    """Five tokens; sampling is changed while the second is selected, and a step is taken."""
    stage.loaded().ran(5).session.select(step=1)
    stage.session.set_sampling(HOT)
    stage.session.step(steps)
    run = stage.prompted()
    for index in range(2, 2 + steps):
        stage.say(stepped(run, index, sampling=HOT))
    stage.finish()
    return stage


def test_looking_stops_at_both_ends_and_changes_nothing(stage: Stage) -> None:
    stage.loaded().ran(4)
    trace, asked = stage.state.trace, stage.engine.count(m.Advance)
    for by, index in ((-1, 2), (-5, 0), (-1, 0), (+1, 1), (+9, 3), (+1, 3)):
        stage.session.look(by)
        assert stage.state.step_index == index
        assert stage.state.trace is trace
    assert stage.state.selection.step is None, "at its end, the view follows new steps"
    assert stage.engine.count(m.Advance) == asked


def test_a_step_at_an_earlier_token_goes_to_the_next_and_computes_only_at_the_end(
    stage: Stage,
) -> None:
    stage.loaded().ran(3).session.select(step=0)
    asked = stage.engine.count(m.Advance)
    for index in (1, 2):
        stage.session.step()
        assert stage.state.step_index == index
    assert stage.engine.count(m.Advance) == asked
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)


def test_several_steps_look_first_and_compute_the_rest(stage: Stage) -> None:
    stage.loaded().ran(3).session.select(step=1)
    stage.session.step(4)
    advance = stage.engine.last(m.Advance)
    assert (advance.chosen, advance.steps) == ((10, 11, 12), 3)


def test_during_a_run_a_step_goes_along_and_asks_for_nothing(stage: Stage) -> None:
    stage.loaded().session.run()
    run = stage.prompted()
    stage.steps(4)
    asked = stage.engine.count(m.Advance)
    stage.session.look(-3)
    stage.session.step()
    stage.steps(1, run)
    assert stage.state.step_index == 1
    assert stage.engine.count(m.Advance) == asked


def test_a_run_from_an_earlier_token_goes_on_at_the_end(stage: Stage) -> None:
    stage.loaded().ran(3).session.select(step=0)
    stage.session.run()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)
    stage.prompted()
    stage.steps(1)
    assert stage.state.step_index == 3


@pytest.mark.parametrize("kind", ["step", "run"])
def test_changed_sampling_begins_a_branch_after_the_selected_token(stage: Stage, kind: str) -> None:
    stage.loaded().ran(5).session.select(step=1)
    whole = stage.state.trace
    stage.session.set_sampling(HOT)
    assert stage.state.branch_point == 2
    getattr(stage.session, kind)()
    assert stage.engine.last(m.Advance).chosen == (10, 11)
    assert (stage.state.trace, stage.state.step_index) == (whole, 1), "nothing has come yet"
    run = stage.prompted()
    stage.say(stepped(run, 2, sampling=HOT))
    assert ids(stage.state)[:2] == [10, 11]
    assert len(ids(stage.state)) == 3
    assert stage.state.step_index == 2
    stage.finish()
    assert [branch.trace.chosen_ids for branch in stage.state.tree] == [
        (10, 11, 12, 13, 14),
        tuple(ids(stage.state)),
    ]
    assert stage.state.undo_kind == kind


def test_undo_of_a_branch_brings_the_run_and_the_selected_token_back(stage: Stage) -> None:
    branched(stage, 3)
    fresh = ids(stage.state)
    for _ in range(3):
        stage.session.undo()
    assert ids(stage.state) == [10, 11, 12, 13, 14]
    assert stage.state.step_index == 1
    for _ in range(3):
        stage.session.redo()
    assert ids(stage.state) == fresh


def test_settings_put_back_begin_no_branch(stage: Stage) -> None:
    stage.loaded().ran(3).session.select(step=0)
    stage.session.set_sampling(HOT)
    stage.session.set_sampling(Sampling())
    stage.session.step()
    assert stage.state.step_index == 1
    assert stage.engine.count(m.Advance) == 1


def test_a_branch_cancelled_before_its_first_token_leaves_all_as_it_was(stage: Stage) -> None:
    stage.loaded().ran(5).session.select(step=1)
    whole = stage.state.trace
    stage.session.set_sampling(HOT)
    stage.session.step()
    stage.prompted()
    stage.session.cancel()
    assert (stage.state.trace, stage.state.step_index) == (whole, 1)
    assert stage.state.undo_kind == "sampling"


def test_at_the_end_changed_sampling_goes_on_without_a_branch(stage: Stage) -> None:
    stage.loaded().ran(3).session.set_sampling(HOT)
    assert stage.state.branch_point is None
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)


def test_a_branch_that_waits_for_its_model_begins_where_it_was_asked_for(stage: Stage) -> None:
    stage.loaded().ran(5).session.restart_engine()
    stage.drain()
    stage.session.select(step=1)
    stage.session.set_sampling(HOT)
    stage.session.step()
    stage.answer_load()
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_a_branch_that_is_shown_brings_its_sampling_settings(stage: Stage) -> None:
    branched(stage)
    stage.session.show_branch(1, select=0)
    assert stage.state.sampling == Sampling()
    asked = stage.engine.count(m.Advance)
    stage.session.step()
    assert stage.state.step_index == 1
    assert stage.engine.count(m.Advance) == asked
    stage.session.undo()
    assert stage.state.sampling == HOT


def test_forcing_an_earlier_token_keeps_the_old_continuation_in_the_tree(stage: Stage) -> None:
    stage.loaded().ran(4).session.select(step=1)
    stage.session.force(20)
    assert [branch.trace.chosen_ids for branch in stage.state.tree] == [
        (10, 11, 12, 13),
        (10, 20),
    ]
    stage.session.undo()
    assert stage.state.step_index == 1


def test_a_changed_request_begins_a_new_run_from_any_token(stage: Stage) -> None:
    stage.loaded().ran(4).session.select(step=1)
    stage.session.set_cache(False)
    assert stage.state.branch_point is None
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == ()
