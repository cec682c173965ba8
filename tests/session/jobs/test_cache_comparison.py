"""The cache experiment and the machine's bound, as the window meets them."""

from __future__ import annotations

from explorer.trace.experiments import CacheComparison, CacheExperiment
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage

FACTS = {
    "prompt": 10,
    "tokens": 20,
    "ids": list(range(20)),
    "same_tokens": True,
    "cached": {"positions": [10, *[1] * 19], "ms": [5.0] * 20},
    "uncached": {"positions": list(range(10, 30)), "ms": [float(i) for i in range(20)]},
}
BOUND = {"bytes_per_second": 8e9, "step_bytes": 538_000_000, "threads": 1}


def test_both_ways_end_in_the_state_and_leave_the_trace_alone() -> None:
    stage = Stage().loaded().ran(3)
    trace = stage.state.trace
    stage.session.measure(CacheExperiment, tokens=20)
    asked = stage.engine.last(CacheExperiment)
    assert asked.tokens == 20
    assert trace is not None
    assert asked.request == trace.request
    stage.say(m.Progress(run=asked.run, text="Token 3 of 20", fraction=0.25))
    assert stage.state.status.fraction == 0.25
    stage.say(m.Facts(run=asked.run, facts=FACTS))
    found = stage.state.measured_of(CacheComparison)
    assert found is not None
    runs = found.result
    assert (sum(runs.cached.positions), sum(runs.uncached.positions)) == (29, 390)
    assert runs.uncached.ms[-1] == 19
    assert found.fits_prompt(trace)
    assert stage.state.status.activity == "idle"
    assert stage.state.trace is trace
    stage.session.set_prompt("another")
    stage.ran(1)
    assert not found.fits_prompt(stage.state.trace)


def test_it_is_cancelled_by_pause_and_by_the_next_step() -> None:
    stage = Stage().loaded().ran(1)
    for end in (stage.session.pause, stage.session.step):
        stage.session.measure(CacheExperiment)
        run = stage.engine.last(CacheExperiment).run
        end()
        assert stage.engine.last(m.Cancel).run == run
        stage.say(m.Facts(run=run, facts=FACTS))
        assert stage.state.measured_of(CacheComparison) is None


def test_without_a_prompt_or_its_model_it_says_so() -> None:
    stage = Stage().loaded(prompt="")
    stage.session.measure(CacheExperiment)
    assert "needs a prompt" in stage.state.error
    assert stage.engine.count(CacheExperiment) == 0


def test_the_bound_is_asked_for_once_a_model_and_shown_for_its_own_trace_only() -> None:
    stage = Stage().loaded()
    assert stage.engine.count(m.MeasureTraffic) == 1
    stage.say(m.Facts(run=stage.engine.last(m.MeasureTraffic).run, facts=BOUND))
    stage.ran(2)
    assert stage.engine.count(m.MeasureTraffic) == 1
    floor = stage.state.floor
    assert floor is not None
    assert floor.floor_ms == 67.25
    stage.session.open_model("other")
    stage.answer_load(name="other", fingerprint={"config": "other"})
    assert stage.state.traffic is None
    assert stage.state.floor is None
    run = stage.engine.last(m.MeasureTraffic).run
    stage.say(m.Failed(run=run, sentence="The machine is too busy."))
    assert stage.state.error == ""
