"""A large run waits for the user's word, and may be recorded thinly; never by itself."""

from __future__ import annotations

import pytest

from explorer.engine.passes import run_cost as plans
from explorer.engine.selftest import selftest
from explorer.figures.cost import run_cost as words
from explorer.trace.cost.run_cost import Plan
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m
from explorer.wording import seconds_text
from tests.engine.tiny import runner_on, tiny_model
from tests.session.scripted import LARGE, Stage


def asked_first(stage: Stage, steps: int = 3) -> m.Advance:
    stage.session.step(steps)
    asked = stage.engine.last(m.Advance)
    assert asked.ask_first
    stage.say(m.Planned(run=asked.run, plan=LARGE))
    stage.finish("plan")
    assert stage.state.plan == LARGE
    assert stage.state.status.activity == "idle"
    return asked


def test_go_on_runs_what_was_planned_and_asks_no_more() -> None:
    stage = Stage().loaded()
    asked_first(stage)
    assert stage.state.trace is None
    stage.session.go_on()
    going = stage.engine.last(m.Advance)
    assert (going.ask_first, going.steps, going.request.capture_every) == (False, 3, 1)
    stage.say(m.Planned(run=going.run, plan=LARGE))  # told again, for those who never ask
    assert stage.state.plan is None
    stage.prompted()
    stage.steps(3)
    stage.finish()
    assert len(stage.state.trace.steps) == 3  # type: ignore[union-attr]
    stage.session.step()
    assert not stage.engine.last(m.Advance).ask_first


def test_a_thinner_record_is_chosen_stated_and_can_be_undone() -> None:
    stage = Stage().loaded()
    asked_first(stage)
    stage.session.go_on(capture_every=4)
    going = stage.engine.last(m.Advance)
    assert (going.ask_first, going.request.capture_every) == (False, 4)
    assert stage.state.request.capture_every == 4
    stage.session.undo()
    assert stage.state.request.capture_every == 1
    stage.session.step()
    assert stage.engine.last(m.Advance).ask_first


def test_dropping_the_plan_or_changing_the_request_leaves_the_trace_alone() -> None:
    stage = Stage().loaded().ran(2)
    trace = stage.state.trace
    stage.session.set_prompt("longer")
    asked_first(stage)
    stage.session.drop_plan()
    assert stage.state.plan is None
    assert stage.state.trace is trace
    asked_first(stage)
    stage.session.set_cache(False)
    assert stage.state.plan is None
    asks = stage.engine.count(m.Advance)
    stage.session.go_on()
    assert stage.engine.count(m.Advance) == asks


def test_the_engines_figures_are_the_formulas() -> None:
    runner = runner_on(tiny_model("llama"), context=64)
    selftest.run(runner)
    ten = " ".join(["5"] * 10)
    found = plans.plan(runner, runner.prompt(RunRequest(prompt=ten)))
    assert found.tokens == 10
    assert found.weights_bytes == 4 * runner.model.num_parameters()
    assert found.capture_bytes == 10 * 4 * (3 * (4 + 2) * 8 + 32)
    assert not found.large
    thin = plans.plan(runner, runner.prompt(RunRequest(prompt=ten, capture_every=2)))
    assert thin.capture_bytes == 10 * 4 * (2 * (4 + 2) * 8 + 32)
    assert plans.plan(runner, runner.prompt(RunRequest(prompt=ten, cache=False))).cache_bytes == 0
    assert found.estimated_seconds is not None
    assert 0 < found.estimated_seconds < 1


@pytest.mark.parametrize(
    ("changes", "large"),
    [
        ({}, False),
        ({"capture_bytes": 600_000_000}, True),
        ({"estimated_seconds": 31.0}, True),
        ({"estimated_seconds": None}, False),
        ({"available_bytes": 10}, True),
    ],
)
def test_what_counts_as_large(changes: dict[str, object], large: bool) -> None:
    small = {"tokens": 9, "weights_bytes": 1, "cache_bytes": 10, "capture_bytes": 10}
    assert Plan(**{**small, **changes}).large == large  # type: ignore[arg-type]


def test_in_words() -> None:
    assert words.sentence(LARGE) == (
        "Reading 8,000 tokens takes up to 1.75 GiB of memory beside the 513 MiB of weights "
        "(cache 352 MiB, recorded attention 2 × 721 MiB) and about 2 min (an estimate)."
    )
    assert seconds_text(47) == "50 s"
