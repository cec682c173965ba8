"""The window's clock: from the wish to the step, and from the step to its picture."""

from __future__ import annotations

import gc
import time
from dataclasses import replace

import pytest

from explorer.session.stopwatch import Stopwatch
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage, made_step, stepped


def test_a_lap_runs_from_the_wish_to_the_picture() -> None:
    watch = Stopwatch()
    watch.begin()
    at = time.perf_counter() + 1
    step = made_step(0)
    watch.arrived(step, at)
    lap = watch.lap(step)
    assert lap is not None
    assert lap.waited_ms == pytest.approx(1000, abs=50)
    assert lap.display_ms is None
    assert watch.painted(at + 0.25)
    lap = watch.lap(step)
    assert lap is not None
    assert lap.display_ms == pytest.approx(250)
    assert not watch.painted(at + 9)


def test_in_a_run_a_step_waits_from_the_one_before() -> None:
    watch = Stopwatch()
    watch.begin()
    first, second = made_step(0), made_step(1)
    watch.arrived(first, 10.0)
    watch.arrived(second, 10.1)
    assert watch.lap(second).waited_ms == pytest.approx(100)  # type: ignore[union-attr]


def test_a_step_that_was_overtaken_has_no_display_time() -> None:
    watch = Stopwatch()
    first, second = made_step(0), made_step(1)
    watch.arrived(first, 10.0)
    watch.arrived(second, 10.1)
    watch.painted(10.15)
    assert watch.lap(first).display_ms is None  # type: ignore[union-attr]
    assert watch.lap(second).display_ms == pytest.approx(50)  # type: ignore[union-attr]


def test_a_step_stays_known_when_its_records_are_let_go_and_is_forgotten_with_its_arrays() -> None:
    watch = Stopwatch()
    step = made_step(0)
    watch.arrived(step, 1.0)
    assert watch.lap(replace(step, layers=(), hidden=None)) is not None
    assert watch.lap(made_step(0)) is None
    del step
    gc.collect()
    assert not watch._laps


def test_every_step_of_a_session_has_a_lap_and_idle_windows_are_told() -> None:
    stage = Stage().loaded()
    stage.session.step(2)
    stage.prompted()
    stage.steps(1)
    assert stage.session.stopwatch.waiting
    stage.session.painted(time.perf_counter())
    assert stage.state.painted == 0  # during a run the next step brings it along
    stage.steps(1)
    stage.finish()
    stage.say(m.Finished(run=stage.engine.last(m.CheckTrace).run, reason="checked"))
    stage.session.painted(time.perf_counter())
    assert stage.state.painted == 1
    trace = stage.state.trace
    assert trace is not None
    laps = [stage.session.stopwatch.lap(step) for step in trace.steps]
    assert all(lap is not None and lap.display_ms is not None for lap in laps)


def test_a_pass_that_is_run_again_is_no_lap() -> None:
    stage = Stage().loaded().ran(1)
    again = stepped(0, 0)
    stage.say(m.Stepped(run=99, step=again.step, token=again.token))
    assert stage.session.stopwatch.lap(again.step) is None
