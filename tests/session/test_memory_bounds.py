"""What branches and undo hold is counted as it is, and bounded."""

from __future__ import annotations

import gc
import tracemalloc

from explorer.session.branches import step_bytes
from explorer.session.state import State
from explorer.session.undo_history import LIMIT_BYTES, History
from explorer.trace.request import RunRequest
from explorer.trace.step import Step
from tests.session.scripted import Stage, cut_last, made_step


def test_a_step_is_counted_with_the_objects_around_its_arrays() -> None:
    made_step(1)  # whatever is made once
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    steps: list[Step] = [made_step(1 + index % 9) for index in range(300)]
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.6 < sum(map(step_bytes, steps)) / held < 1.6


def test_many_steps_and_switches_leave_undo_small() -> None:
    stage = Stage().loaded().ran(60)
    cut_last(stage.session, 30)
    stage.session.force(20)
    first, second = (branch.number for branch in stage.state.branches.all)
    before = stage.state.undo_bytes
    for _ in range(50):
        stage.session.show_branch(first)
        stage.session.show_branch(second)
    assert stage.state.undo_bytes - before <= len("hello")  # the steps are the branches' own
    assert len(stage.state.branches.all) == 2


def test_long_prompts_count_against_the_bound_of_undo() -> None:
    history = History()
    prompt = "x" * (LIMIT_BYTES // 4)
    for number in range(8):
        state = State(request=RunRequest(prompt=prompt + str(number)))
        history.push("prompt", state, "request")
        assert history.within(()) <= LIMIT_BYTES
    undone = 0
    while history.can_undo:
        history.undo(State())
        undone += 1
    assert 0 < undone < 8
