"""Two sides of a run: the other one is a real pass of the step on screen."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import PrefixExperiment, PrefixShift
from explorer.trace.interventions.kinds import Silence
from tests.engine import folders
from tests.engine.local_engine import LocalEngine


class Owner:
    """A session whose owner is the test's thread."""

    def __init__(self, model: str) -> None:
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.session = Session(LocalEngine, self.posted.put)
        self.session.start_engine()
        self.session.open_model(model)
        self.session.set_prompt("the cat sat on the")
        self.until(lambda state: state.card is not None)

    def until(self, condition: Callable[[State], bool]) -> State:
        while not condition(self.session.state):
            self.posted.get(timeout=100)()
        return self.session.state

    def step(self, steps: int) -> State:
        count = len(self.session.state.trace.steps) if self.session.state.trace else 0
        self.session.step(steps)
        return self.until(
            lambda s: (
                s.trace is not None
                and len(s.trace.steps) == count + steps
                and s.status.activity == "idle"
            )
        )

    def compared(self) -> State:
        return self.until(
            lambda s: s.comparison is not None and s.comparison.fits(s.trace, s.step_index)
        )


@pytest.fixture
def owner(tmp_path: object) -> Iterator[Owner]:
    from pathlib import Path

    folder = folders.write_folder(Path(str(tmp_path)) / "tiny", folders.model(eos_token_id=None))
    made = Owner(str(folder))
    yield made
    made.session.close()


def test_the_other_side_sees_the_future_and_the_trace_stays(owner: Owner) -> None:
    before = owner.step(3)
    owner.session.compare(True)
    state = owner.compared()
    assert state.trace is before.trace or state.trace == before.trace
    assert state.comparison is not None
    other = state.comparison.step
    assert state.trace is not None
    assert other.positions_processed == state.trace.read_slots(2)
    assert other.logits.shape == state.trace.steps[2].logits.shape
    assert np.abs(other.logits - state.trace.steps[2].logits).max() > 1e-3
    records = [record for record in other.layers if record.mask is not None]
    assert all(record.mask.allowed().all() for record in records if record.mask)


def test_a_step_in_comparison_is_checked_too(owner: Owner) -> None:
    owner.session.compare(True)
    owner.session.step(2)
    owner.until(lambda s: s.trace is not None and len(s.trace.steps) == 2)
    owner.compared()
    assert owner.until(lambda s: s.self_check.passed is not None).self_check.passed


def test_it_follows_the_step_on_screen_and_new_steps(owner: Owner) -> None:
    owner.step(3)
    owner.session.compare(True)
    owner.compared()
    owner.session.select(step=0)
    first = owner.compared()
    assert first.comparison is not None
    assert first.comparison.chosen == ()
    owner.session.select(step=None)
    after = owner.step(1)
    assert after.trace is not None
    again = owner.compared()
    assert again.comparison is not None
    assert len(again.comparison.chosen) == 3
    assert after.trace.steps[3].rebuilt_tokens == 0  # the run's cache outlives the comparison


def test_switched_off_it_asks_no_more(owner: Owner) -> None:
    owner.session.compare(True)
    owner.step(1)
    owner.compared()
    owner.session.compare(False)
    assert owner.session.state.comparison is None
    owner.step(1)
    assert owner.session.state.comparison is None


def test_a_run_without_mask_is_compared_with_the_masked_one(owner: Owner) -> None:
    owner.session.set_causal_mask(False)
    owner.step(2)
    owner.session.compare(True)
    state = owner.compared()
    assert state.comparison is not None
    assert state.comparison.request.causal_mask
    mask = state.comparison.step.layers[0].mask
    assert mask is not None
    assert not mask.allowed()[0, 1:].any()


def test_a_run_with_interventions_is_compared_with_the_model_as_it_is(owner: Owner) -> None:
    plain = owner.step(1).trace
    changes = (Silence(layer=0, head=1), Silence(layer=1, part="mlp"))
    owner.session.set_interventions(changes)
    owner.session.compare(True, "interventions")
    assert owner.session.state.comparison is None, "the run on screen has no interventions"
    owner.session.step(1)
    state = owner.compared()
    assert state.comparison is not None
    assert state.trace is not None
    assert state.trace.request.interventions == changes
    assert (state.comparison.of, state.comparison.request.interventions) == ("interventions", ())
    assert plain is not None
    np.testing.assert_allclose(state.comparison.step.logits, plain.steps[0].logits, atol=1e-5)
    shown = state.shown
    assert shown is not None
    assert shown.sides == (state.comparison.step, state.trace.steps[0]), (
        "what it is measured by first"
    )
    asked_once = state.comparison
    owner.session.set_interventions(changes[:1])
    owner.session.step(1)
    owner.until(lambda s: s.trace is not None and len(s.trace.request.interventions) == 1)
    after = owner.until(lambda s: s.status.activity in ("idle", "checking"))
    assert after.comparison is asked_once, "the same tokens on the same model"
    assert asked_once.fits(after.trace, 0)


def test_mask_and_interventions_are_two_comparisons_of_one_run(owner: Owner) -> None:
    owner.session.set_interventions([Silence(layer=0, head=1)])
    owner.step(1)
    owner.session.compare(True)
    state = owner.compared()
    assert state.comparison is not None
    assert state.comparison.request.interventions, "only the mask is the other way"
    assert not state.comparison.request.causal_mask
    owner.session.compare(True, "interventions")
    assert owner.session.state.comparison is None
    owner.session.compare(True)  # changes of mind, each before the last is answered
    owner.session.compare(True, "interventions")
    state = owner.until(lambda s: s.comparison is not None)
    assert state.comparison is not None
    assert state.comparison.of == "interventions"
    assert state.comparison.request.causal_mask
    assert not state.comparison.request.interventions


def test_prefix_experiment_lands_in_the_state(owner: Owner) -> None:
    owner.step(2)
    owner.session.measure(PrefixExperiment)
    state = owner.until(lambda s: s.measured_of(PrefixShift) is not None)
    found = state.measured_of(PrefixShift)
    assert found is not None
    assert found.fits(state.trace, 1)
    assert not found.fits(state.trace, 0), "of another step's prefix"
    assert max(found.result.masked.layers) < 1e-4
    assert found.result.unmasked is not None
    assert min(found.result.unmasked.layers) > 1e-2
