"""What runs when the user rests: the self-check, and old passes run again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from explorer.session import capture_budget
from explorer.trace.card import Check
from explorer.trace.wire import messages as m
from tests.session.scripted import VOCABULARY, Stage, cut_last, made_step, played, stepped


def checked(run: int, name: str, measured: float) -> m.Checked:
    check = Check(name=name, passed=measured <= 1.0, measured=measured, tolerance=1.0)
    return m.Checked(run=run, check=check)


def test_a_run_that_ends_is_checked_by_itself(stage: Stage) -> None:
    stage.loaded().session.run()
    stage.prompted()
    stage.steps(2)
    stage.finish("end token")
    asked = stage.engine.last(m.CheckTrace)
    assert asked.chosen == (10, 11)
    assert stage.state.status.activity == "checking"
    assert not stage.state.busy
    stage.say(checked(asked.run, "rows", 0.5))
    assert stage.state.self_check.passed is None
    assert len(stage.state.self_check.checks) == 1
    stage.say(m.Finished(run=asked.run, reason="checked"))
    assert stage.state.self_check.passed is True
    assert stage.state.trace is not None
    assert stage.state.trace.self_check is stage.state.self_check
    assert stage.state.trace.stop_reason == "end token"
    assert stage.state.status.activity == "idle"


def test_a_failed_check_is_red_at_once(stage: Stage) -> None:
    stage.loaded().ran(1).session.run_self_check()
    run = stage.engine.last(m.CheckTrace).run
    stage.say(checked(run, "rows", 0.5), checked(run, "mask", 7.0))
    assert stage.state.self_check.passed is False
    stage.say(m.Finished(run=run, reason="checked"))
    assert stage.state.self_check.passed is False


def test_pause_checks_what_is_there(stage: Stage) -> None:
    stage.loaded().session.run()
    stage.prompted()
    stage.steps(2)
    stage.session.pause()
    assert stage.engine.last(m.CheckTrace).chosen == (10, 11)


def test_the_check_gives_way_to_the_user(stage: Stage) -> None:
    stage.loaded().ran(2).session.run_self_check()
    run = stage.engine.last(m.CheckTrace).run
    stage.say(checked(run, "rows", 0.5))
    stage.session.step()
    assert m.Cancel(run=run) in stage.engine.asked
    assert stage.state.status.activity == "running"
    stage.say(checked(run, "late", 9.0), m.Finished(run=run, reason="cancelled"))
    assert stage.state.self_check.passed is not False
    stage.prompted()
    stage.steps(1)
    assert stage.state.self_check.passed is None
    assert stage.state.self_check.checks == ()


def test_the_result_goes_with_its_trace(stage: Stage) -> None:
    stage.loaded().ran(2).session.run_self_check()
    run = stage.engine.last(m.CheckTrace).run
    stage.say(checked(run, "rows", 0.5), m.Finished(run=run, reason="checked"))
    cut_last(stage.session)
    assert stage.state.self_check.passed is None
    stage.session.undo()
    assert stage.state.self_check.passed is True


def test_an_automatic_check_that_fails_to_run_is_no_error(stage: Stage) -> None:
    stage.loaded().session.run()
    stage.prompted()
    stage.steps(1)
    stage.finish("length")
    stage.say(m.Failed(run=stage.engine.last(m.CheckTrace).run, sentence="no memory"))
    assert stage.state.error == ""
    assert stage.state.self_check.passed is None
    stage.session.run_self_check()
    stage.say(m.Failed(run=stage.engine.last(m.CheckTrace).run, sentence="no memory"))
    assert stage.state.error == "no memory"


def test_a_check_without_a_trace_says_what_is_missing(stage: Stage) -> None:
    stage.loaded().session.run_self_check()
    assert "needs a run" in stage.state.error


def uncached(stage: Stage, steps: int, keep: int) -> Stage:
    """A run without a cache whose budget holds its last `keep` passes."""
    stage.loaded().session.set_cache(False)
    sizes = [capture_budget.layer_bytes(made_step(i, recompute=True)) for i in range(steps)]
    stage.session.background.budget_bytes = sum(sizes[-keep:])
    return stage.ran(steps, recompute=True)


def kinds(stage: Stage) -> list[str]:
    assert stage.state.trace is not None
    return [step.layers[0].kind for step in stage.state.trace.steps]


def test_the_oldest_passes_without_a_cache_are_let_go(stage: Stage) -> None:
    uncached(stage, steps=6, keep=3)
    assert kinds(stage) == ["absent"] * 3 + ["qk"] * 3
    trace = stage.state.trace
    assert trace is not None
    gone = trace.steps[0]
    assert gone.hidden is None
    assert [record.layer for record in gone.layers] == [0, 1]
    assert "deleted to save memory" in gone.layers[0].reason
    np.testing.assert_array_equal(gone.logits, made_step(0).logits)
    with pytest.raises(ValueError, match="deleted to save memory"):
        trace.weights(0, 0, 0)


def test_a_cached_run_never_gives_keys_up(stage: Stage) -> None:
    stage.loaded().session.background.budget_bytes = 1
    stage.ran(4)
    assert kinds(stage) == ["qk"] * 4


def test_the_step_looked_at_keeps_its_records(stage: Stage) -> None:
    stage.loaded().session.set_cache(False)
    stage.session.background.budget_bytes = 1
    stage.session.run()
    stage.prompted()
    stage.steps(1, recompute=True)
    stage.session.select(step=0)
    stage.steps(3, recompute=True)
    assert kinds(stage) == ["qk", "absent", "absent", "qk"]


def test_selecting_a_step_that_was_let_go_runs_it_again(stage: Stage) -> None:
    uncached(stage, steps=6, keep=3).session.select(step=1)
    asked = stage.engine.last(m.Recapture)
    assert asked.chosen == (10,)
    assert not asked.request.cache
    stage.say(stepped(asked.run, 1, recompute=True), m.Finished(run=asked.run, reason="steps"))
    trace = stage.state.trace
    assert trace is not None
    assert trace.steps[1].layers[0].kind == "qk"
    assert "computed again" in trace.steps[1].note
    assert trace.steps[1].draw == made_step(1).draw
    assert trace.weights(1, 0, 0).shape == (4, 4)
    assert stage.state.selection.step == 1
    total = sum(capture_budget.layer_bytes(step) for step in trace.steps)
    assert total <= stage.session.background.budget_bytes
    assert stage.state.status.activity == "idle"


def test_a_pass_run_again_that_differs_says_so(stage: Stage) -> None:
    uncached(stage, steps=4, keep=1).session.select(step=1)
    run = stage.engine.last(m.Recapture).run
    stage.say(stepped(run, 2, recompute=True))
    assert stage.state.trace is not None
    assert stage.state.trace.steps[1].layers[0].kind == "absent"
    assert "differs" in stage.state.error


@pytest.mark.parametrize(
    "other",
    [
        {"token_ids": (0, 1, 9)},
        {"first_slot": 1},
        {"logits": np.zeros(VOCABULARY + 1, np.float32)},
    ],
)
def test_records_of_another_pass_are_refused(other: dict[str, Any]) -> None:
    trace = played(1)
    fresh = trace.steps[0]
    assert capture_budget.with_records(trace, 0, fresh).steps[0].note == capture_budget.RERUN_NOTE
    with pytest.raises(ValueError, match="Token 1, computed again, differs"):
        capture_budget.with_records(trace, 0, replace(fresh, **other))


def test_a_recapture_waits_for_the_run_and_takes_the_latest_wish(stage: Stage) -> None:
    uncached(stage, steps=6, keep=2).session.run()
    stage.session.select(step=1)
    stage.session.select(step=2)
    assert stage.engine.count(m.Recapture) == 0
    stage.prompted()
    stage.steps(1, recompute=True)
    stage.finish("length")
    assert stage.engine.count(m.Recapture) == 1
    assert stage.engine.last(m.Recapture).chosen == (10, 11)


def test_scrubbing_asks_only_for_where_it_rests(stage: Stage) -> None:
    uncached(stage, steps=6, keep=2)
    stage.session.select(step=0)
    first = stage.engine.last(m.Recapture).run
    stage.session.select(step=1)
    assert m.Cancel(run=first) in stage.engine.asked
    assert stage.engine.last(m.Recapture).chosen == (10,)
    stage.session.select(step=5)
    assert stage.engine.last(m.Cancel).run == stage.engine.last(m.Recapture).run
    stage.session.select(layer=1)
    assert stage.state.status.activity == "idle"
