"""Parts of the window redraw on what they depend on, and on nothing else."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from explorer.session.changes import changed
from explorer.session.selection import Selection
from explorer.session.state import State, Status
from explorer.trace.comparison import Comparison, other_side
from explorer.trace.request import RunRequest, Sampling
from tests.trace.runs import made_trace


def test_the_first_call_is_a_change_and_the_same_state_is_none() -> None:
    state = State(trace=made_trace(2))
    assert changed(None, state)
    assert not changed(state, state, "trace", "step_index", "shown.trace")


def test_settings_are_compared_by_value() -> None:
    state = State(request=RunRequest(prompt="a"), status=Status(activity="idle"))
    same = replace(state, request=RunRequest(prompt="a"), sampling=Sampling())
    assert not changed(state, same, "request", "sampling", "status")
    assert changed(state, replace(state, sampling=Sampling(seed=7)), "sampling")
    assert changed(state, replace(state, request=RunRequest(prompt="b")), "card", "request.prompt")


def test_of_a_run_another_object_is_a_change() -> None:
    state = State(trace=made_trace(2), selection=Selection(layer=1))
    again = replace(state, trace=made_trace(2))
    assert changed(state, again, "trace")
    assert not changed(state, again, "step_index", "selection.layer")


@pytest.mark.parametrize("part", ["step_index", "selection.step"])
def test_parts_may_be_worked_out_or_lie_deeper(part: str) -> None:
    state = State(trace=made_trace(3))
    assert changed(state, replace(state, selection=Selection(step=1)), part)


def test_nothing_is_shown_before_the_first_step() -> None:
    assert State().shown is None
    assert State(trace=replace(made_trace(1), steps=(), chosen=())).shown is None


def test_every_index_lies_within_the_run() -> None:
    trace = made_trace(2)
    shown = State(trace=trace, selection=Selection(layer=99, head=99, query=999)).shown
    assert shown is not None
    assert shown.step == 1
    assert shown.last_pass is trace.steps[1]
    assert shown.layer == trace.card.layers - 1
    assert shown.head == max(record.heads for record in shown.last_pass.layers) - 1
    assert shown.query == shown.slots - 1


def test_without_a_choice_the_readout_is_the_query() -> None:
    trace = made_trace(2)
    shown = State(trace=trace, selection=Selection(step=0)).shown
    assert shown is not None
    assert shown.query == trace.steps[0].readout


def test_sides_are_with_the_mask_first() -> None:
    trace = made_trace(1)
    other = Comparison((), other_side(trace.request), trace.steps[0], trace.card)
    state = State(trace=trace, comparison=other)
    assert state.shown is not None
    assert state.shown.sides == (trace.steps[0], other.step)
    request = msgspec.structs.replace(trace.request, causal_mask=False)
    unmasked = replace(state, trace=replace(trace, request=request))
    assert unmasked.shown is not None
    assert unmasked.shown.other is None  # it is of another run
    assert unmasked.shown.sides == (None, trace.steps[0])
