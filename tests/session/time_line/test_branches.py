"""The branch tree: old futures are kept, steps shared, memory bounded; without an engine's help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from explorer.session import capture_budget
from explorer.session.branches import Branches, shared_steps, step_bytes
from explorer.trace.request import RunRequest
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, card, made_step


def trace(*ids: int, prompt: str = "hello", base: Trace | None = None) -> Trace:
    """A run that chose these ids; what it shares with `base` are the same steps."""
    made = Trace(request=RunRequest(model="tiny", prompt=prompt), card=card(), prompt=PROMPT)
    if base is not None:
        made = base.truncated(shared_steps(base, trace(*ids)))
    for i in range(len(made.steps), len(ids)):
        made = made.appended(made_step(i), Token(ids[i], b"t", "generated"))
    return made


def test_going_back_and_on_in_another_way_keeps_the_old_future() -> None:
    one = trace(1, 2, 3)
    tree = Branches().seen(one).seen(one.truncated(1))
    assert [b.trace.chosen_ids for b in tree.all] == [(1, 2, 3)]
    tree = tree.seen(trace(1, 7, base=one))
    assert [(b.name, b.trace.chosen_ids) for b in tree.all] == [("A", (1, 2, 3)), ("B", (1, 7))]
    assert tree.current == 2
    assert tree.seen(one).current == 1


def test_a_branch_grows_and_a_run_again_of_its_beginning_is_no_other() -> None:
    one = trace(1, 2)
    tree = Branches().seen(one).seen(trace(1, 2, 3, base=one)).seen(trace(1, 2))
    assert [b.trace.chosen_ids for b in tree.all] == [(1, 2, 3)]


def test_another_prompt_is_another_tree() -> None:
    one, other = trace(1, 2), trace(1, 2, prompt="bye")
    tree = Branches().seen(one).seen(other)
    assert len(tree.all) == 2
    assert [b.trace for b in tree.beside(other)] == [other]


def test_shared_steps_are_counted_once() -> None:
    one = trace(1, 2, 3)
    two = trace(1, 2, 9, base=one)
    tree = Branches().seen(one).seen(two)
    distinct = {id(s): s for s in (*one.steps, *two.steps)}
    assert len(distinct) == 4
    assert tree.bytes == sum(map(step_bytes, distinct.values()))
    assert tree.seen(one).without(2).bytes == sum(map(step_bytes, one.steps))


def test_the_oldest_branches_go_when_there_is_no_room_but_never_the_one_on_screen() -> None:
    one = trace(1, 2, 3)
    room = Branches().seen(one).bytes
    tree = Branches().seen(one, room)
    for i in range(5):
        tree = tree.seen(trace(10 + i, 2, 3), room)
    assert len(tree.all) == 1
    assert tree.let_go == 5
    assert tree.bytes <= room
    tiny = tree.seen(trace(50, 2, 3), 1)
    assert [b.trace.chosen_ids for b in tiny.all] == [(50, 2, 3)]


def test_passes_that_gave_their_records_up_no_longer_count() -> None:
    request = RunRequest(model="tiny", prompt="hello", cache=False)
    one = Trace(request=request, card=card(), prompt=PROMPT)
    for i in range(3):
        one = one.appended(made_step(i, recompute=True), Token(i, b"t", "generated"))
    tree = Branches().seen(one.truncated(2)).seen(one)
    assert tree.bytes == sum(map(step_bytes, one.steps))
    smaller = capture_budget.within(one, 1)
    assert smaller is not one
    assert tree.seen(smaller).bytes == sum(map(step_bytes, smaller.steps)) < tree.bytes


def test_names_are_given_once() -> None:
    tree = Branches()
    for i in range(28):
        tree = tree.seen(trace(i, 1))
    assert [tree.all[i].name for i in (0, 25, 26, 27)] == ["A", "Z", "AA", "AB"]
    assert tree.without(3).seen(trace(99, 1)).all[-1].name == "AC"


def test_shared_steps_compares_ids_not_objects() -> None:
    assert shared_steps(trace(1, 2, 3), trace(1, 2, 4)) == 2
    assert shared_steps(trace(), trace(1)) == 0


# -- in the session


def test_back_force_and_switching_in_the_session() -> None:
    stage = Stage().loaded().ran(3)
    whole = stage.state.trace
    assert whole is not None
    stage.session.select(step=0)
    stage.session.force(20)
    names = [b.name for b in stage.state.branches.all]
    assert names == ["A", "B"]
    stage.session.show_branch(1)
    assert stage.state.trace is not None
    assert stage.state.trace.chosen_ids == whole.chosen_ids
    assert stage.state.branches.current == 1
    stage.session.undo()
    assert stage.state.trace.chosen_ids == (20,)
    assert stage.state.branches.current == 2
    stage.session.redo()
    assert stage.state.trace.chosen_ids == whole.chosen_ids
    stage.session.show_branch(2)
    stage.session.step()
    assert stage.engine.last(m.Advance).chosen == (20,)


def test_a_branch_of_another_prompt_brings_its_prompt_along() -> None:
    stage = Stage().loaded("first").ran(2)
    stage.session.set_prompt("second")
    stage.ran(1)
    assert [b.trace.request.prompt for b in stage.state.branches.all] == ["first", "second"]
    stage.session.show_branch(1, select=0)
    assert stage.state.request.prompt == "first"
    assert not stage.state.request_changed
    assert stage.state.step_index == 0
    stage.session.undo()
    assert stage.state.request.prompt == "second"


def test_renaming_and_forgetting() -> None:
    stage = Stage().loaded().ran(2)
    stage.session.force(20)
    stage.session.rename_branch(1, "  the  old one ")
    stage.session.rename_branch(1, " ")
    assert [b.name for b in stage.state.tree] == ["the old one", "B"]
    stage.session.forget_branch(2)  # it is on screen
    assert len(stage.state.tree) == 2
    stage.session.forget_branch(1)
    assert [b.number for b in stage.state.tree] == [2]
    stage.session.show_branch(1)
    assert "deleted" in stage.state.error
    stage.session.undo()
    assert [b.name for b in stage.state.tree] == ["the old one", "B"]
    stage.session.undo()
    assert [b.name for b in stage.state.tree] == ["A", "B"]
    stage.session.redo()
    stage.session.redo()
    assert [b.number for b in stage.state.tree] == [2]


def test_steps_run_since_a_branch_was_renamed_stay_when_that_is_undone() -> None:
    stage = Stage().loaded().ran(2)
    stage.session.rename_branch(1, "first")
    stage.session.step()
    stage.prompted()
    stage.steps(1)
    stage.finish()
    stage.session.undo()  # the step
    assert [(b.name, len(b.trace.steps)) for b in stage.state.tree] == [("first", 3)]
    stage.session.undo()
    assert [(b.name, len(b.trace.steps)) for b in stage.state.tree] == [("A", 3)]


def test_a_forgotten_branch_that_is_gone_on_with_is_back() -> None:
    stage = Stage().loaded().ran(2)
    ids = stage.state.trace.chosen_ids if stage.state.trace else ()
    stage.session.force(20)
    stage.session.forget_branch(1)
    stage.session.force(ids[1])
    assert stage.state.branches.current == 1
    assert [b.number for b in stage.state.tree] == [1, 2]


def test_forgotten_branches_are_the_first_to_go() -> None:
    one, two, three = trace(1, 2), trace(3, 4), trace(5, 6)
    tree = Branches().seen(one).seen(two)
    kept = tree.seen(three, tree.bytes, given_up={2})
    assert [b.number for b in kept.all] == [1, 3]
    assert kept.let_go == 0


def test_a_beginning_that_two_share_is_shown_as_part_of_the_one_asked_for() -> None:
    stage = Stage().loaded().ran(3)
    stage.session.force(20)
    stage.session.show_branch(1, steps=2)
    assert stage.state.branches.current == 1
    stage.session.show_branch(2, steps=1)
    assert stage.state.branches.current == 2


@pytest.mark.parametrize("steps", [1, 3])
def test_the_tree_follows_records_swapped_in(steps: int) -> None:
    one = trace(1, 2, 3)
    tree = Branches().seen(one)
    again = replace(one.truncated(steps), steps=tuple(
        replace(s, logits=np.array(s.logits)) for s in one.steps[:steps]
    ))  # fmt: skip
    kept = tree.seen(again).all[0].trace
    assert kept is (again if steps == 3 else one)
