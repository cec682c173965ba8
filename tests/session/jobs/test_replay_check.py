"""A run of an earlier opening goes on only with the weights that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from explorer.session.driver import ENDLESS
from explorer.session.session import Session
from explorer.trace.experiments import (
    CacheExperiment,
    DrawMany,
    Draws,
    PrefixExperiment,
    ReadSlot,
    ScorePrompt,
    SearchSequences,
)
from explorer.trace.step import Step
from explorer.trace.wire import messages as m
from tests.session.answers import ANSWERS
from tests.session.scripted import Stage, ids, made_step

FILE = {"name": "a", "size": 1, "blocks_sha256": "one", "changed": "1.0"}
BEFORE = {"config": "tiny", "weights": [FILE]}
TOUCHED = {"config": "tiny", "weights": [{**FILE, "changed": "2.0"}]}
CHANGED = {"config": "tiny", "weights": [{**FILE, "blocks_sha256": "other"}]}


def opened_anew(stage: Stage, steps: int = 3, **card: object) -> Stage:
    """A run on screen, then its model opened once more."""
    stage.loaded().session.open_model("tiny")
    stage.answer_load(fingerprint=BEFORE)
    stage.ran(steps).session.open_model("tiny")
    stage.answer_load(**{"fingerprint": TOUCHED, **card})
    return stage


def test_files_that_nobody_touched_need_no_proof(stage: Stage) -> None:
    opened_anew(stage, fingerprint=BEFORE).session.step()
    assert stage.engine.count(m.Recapture) == 0
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)


def moved(index: int, by: float) -> Step:
    step = made_step(index)
    return replace(step, logits=step.logits + by * (step.logits > 0))


def test_the_last_step_is_computed_again_before_the_run_goes_on(stage: Stage) -> None:
    opened_anew(stage).session.step()
    assert stage.engine.last(m.Recapture).chosen == (10, 11)
    assert stage.engine.count(m.Advance) == 1
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12)
    assert stage.state.drift is None
    stage.prompted()
    stage.steps(1)
    stage.finish()
    stage.session.step()  # proven once is enough
    assert stage.engine.count(m.Recapture) == 1
    assert stage.engine.last(m.Advance).chosen == (10, 11, 12, 13)


def test_rounding_is_no_drift(stage: Stage) -> None:
    opened_anew(stage).session.step()
    stage.prove(moved(2, 1e-6))
    assert stage.engine.count(m.Advance) == 2


def test_other_numbers_end_it_and_the_size_is_told(stage: Stage) -> None:
    opened_anew(stage).session.run()
    before = stage.state.trace
    stage.prove(moved(2, 0.25))
    assert stage.engine.count(m.Advance) == 1
    assert stage.state.trace is before
    drift = stage.state.drift
    assert drift is not None
    assert drift.same_files
    assert drift.apart == pytest.approx(0.25)
    assert drift.limit < 1e-3
    assert drift.probability != drift.probability_now
    assert not stage.state.busy
    stage.session.look_only()
    assert stage.state.drift is None
    stage.session.step()  # known by now: told again, not computed again
    assert stage.state.drift is drift
    assert stage.engine.count(m.Recapture) == 1


def test_other_files_are_drift_however_close_the_numbers(stage: Stage) -> None:
    opened_anew(stage, fingerprint=CHANGED).session.step()
    stage.prove()
    drift = stage.state.drift
    assert drift is not None
    assert (drift.same_files, drift.apart) == (False, 0)


def test_other_tokens_are_drift(stage: Stage) -> None:
    opened_anew(stage).session.step()
    stage.prove(replace(made_step(2), token_ids=(7,)))
    assert stage.state.drift is not None
    assert stage.state.drift.apart == float("inf")


def test_the_run_made_again_is_a_branch_beside_the_old_one(stage: Stage) -> None:
    opened_anew(stage).session.step()
    stage.prove(moved(2, 0.25))
    old = stage.state.trace
    stage.session.run_again()
    assert stage.state.drift is None
    again = stage.engine.last(m.Advance)
    assert (again.chosen, again.steps) == ((), 3)
    run = stage.prompted()
    for index in range(3):
        said = m.Stepped(run=run, step=moved(index, 0.25), token=old.chosen[index])  # type: ignore[union-attr]
        stage.say(said)
    stage.finish()
    assert ids(stage.state) == [10, 11, 12]
    first, second = stage.state.tree
    assert first.trace is old
    assert second.trace is stage.state.trace
    assert second.name == "B (other weights)"
    stage.session.show_branch(first.number)
    stage.session.step()
    assert stage.state.drift is not None
    assert stage.engine.count(m.Advance) == 2


@pytest.mark.parametrize(
    "wish",
    [
        Session.run_self_check,
        lambda s: s.measure(PrefixExperiment),
        lambda s: s.measure(DrawMany, count=5, length=2),
        lambda s: s.measure(SearchSequences, length=2, width=2, passes=10),
        lambda s: s.measure(ReadSlot, slot=0),
        lambda s: s.measure(CacheExperiment),
        lambda s: s.measure(ScorePrompt, quiet=True),
        lambda s: s.compare(True),
    ],
)
@pytest.mark.parametrize("same", [True, False])
def test_nothing_is_computed_on_a_run_before_its_model_is_proven(
    stage: Stage, wish: Callable[[Session], None], same: bool
) -> None:
    opened_anew(stage)
    asked = len(stage.engine.asked)
    wish(stage.session)
    new = [type(one) for one in stage.engine.asked[asked:] if not isinstance(one, m.Cancel)]
    assert new == [m.Recapture]
    stage.prove(None if same else moved(2, 0.25))
    new = [type(one) for one in stage.engine.asked[asked:] if not isinstance(one, m.Cancel)]
    assert (stage.state.drift is None) == same
    assert len(new) == (2 if same else 1)


def test_what_was_found_with_other_weights_is_not_shown_beside_the_run(stage: Stage) -> None:
    stage.loaded().ran(1).session.measure(DrawMany, count=5, length=2)
    stage.say(m.Facts(run=stage.engine.last(DrawMany).run, facts=ANSWERS[DrawMany]))
    draws = stage.state.measured_of(Draws)
    assert draws is not None
    assert draws.fits(stage.state.trace, 0)
    stage.session.open_model("tiny")
    stage.answer_load(fingerprint=CHANGED)
    stage.session.run_again()
    stage.prompted()
    stage.steps(1)
    assert not draws.fits(stage.state.trace, 0)


def test_files_that_change_while_the_model_is_open(stage: Stage) -> None:
    stage.loaded().ran(2).session.step(2)
    run = stage.prompted()
    stage.steps(1)
    stage.say(m.Failed(run=run, sentence="model.safetensors has changed.", files_changed=True))
    assert stage.engine.count(m.Load) == 2  # opened again by itself, then proven
    assert ids(stage.state) == [10, 11, 12]
    stage.answer_load(fingerprint=CHANGED)
    assert stage.engine.last(m.Recapture).chosen == (10, 11)
    stage.prove(moved(2, 0.25))
    assert stage.state.drift is not None
    assert ids(stage.state) == [10, 11, 12]


def files_change(stage: Stage) -> None:
    run = stage.engine.last(m.Recapture).run
    stage.say(m.Failed(run=run, sentence="model.safetensors has changed.", files_changed=True))


def test_files_that_change_during_a_proof_keep_what_waits_for_it(stage: Stage) -> None:
    opened_anew(stage).session.run()
    files_change(stage)
    stage.answer_load(fingerprint=TOUCHED)
    stage.prove()
    assert stage.engine.last(m.Advance).steps == ENDLESS


@pytest.mark.parametrize(
    "wish",
    [
        lambda s: s.measure(DrawMany, count=5, length=2),
        lambda s: s.measure(ScorePrompt, quiet=True),
        lambda s: s.compare(True),
    ],
)
def test_no_step_is_run_in_place_of_what_was_wished_for(
    stage: Stage, wish: Callable[[Session], None]
) -> None:
    opened_anew(stage)
    loads, runs = stage.engine.count(m.Load), stage.engine.count(m.Advance)
    wish(stage.session)
    files_change(stage)
    assert stage.engine.count(m.Load) == loads
    assert stage.engine.count(m.Advance) == runs
    assert "has changed" in stage.state.error
    assert stage.state.status.activity == "idle"


def test_a_model_is_asked_for_with_the_fingerprint_of_its_run(stage: Stage) -> None:
    stage.loaded()
    assert stage.engine.last(m.Load).like == {}
    stage.ran(1).session.open_model("tiny")
    assert stage.engine.last(m.Load).like == {"config": "tiny"}
    stage.session.open_model("other")
    assert stage.engine.last(m.Load).like == {}
