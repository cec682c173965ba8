"""Undo and redo over everything the user changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from explorer.session.branches import Branches, step_bytes
from explorer.session.session import Session
from explorer.session.state import State
from explorer.session.undo_history import LIMIT, History
from explorer.trace.request import RunRequest, Sampling, Stops
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, card, cut_last, made_step

EDITS: dict[str, Callable[[Session], None]] = {
    "prompt": lambda s: s.set_prompt("another"),
    "chat": lambda s: s.set_chat(True),
    "causal mask": lambda s: s.set_causal_mask(False),
    "cache": lambda s: s.set_cache(False),
    "padding": lambda s: s.set_padding("left", 3),
    "sampling": lambda s: s.set_sampling(Sampling(greedy=False, temperature=0.5)),
    "cut": cut_last,
    "reset": lambda s: s.reset(),
    "force": lambda s: s.force(20),
    "stops": lambda s: s.set_stops(Stops(strings=("end",))),
    "rename": lambda s: s.rename_branch(1, "the first"),
}


def seen(state: State) -> tuple[object, ...]:
    return state.request, state.sampling, state.trace, state.stops, state.branch_names


@pytest.mark.parametrize("kind", EDITS)
def test_every_change_can_be_undone_and_redone(stage: Stage, kind: str) -> None:
    stage.loaded().ran(3)
    before = seen(stage.state)
    EDITS[kind](stage.session)
    after = seen(stage.state)
    assert any(a is not b for a, b in zip(before, after, strict=True))
    stage.session.undo()
    assert seen(stage.state) == before
    assert stage.state.can_redo
    stage.session.redo()
    assert seen(stage.state) == after
    assert not stage.state.can_redo


def test_a_chain_of_changes_unwinds_in_order(stage: Stage) -> None:
    stage.loaded().ran(3)
    seen_states = [seen(stage.state)]
    for edit in EDITS.values():
        if edit is EDITS["force"]:
            continue  # nothing is left to force after reset
        edit(stage.session)
        seen_states.append(seen(stage.state))
    for expected in reversed(seen_states[:-1]):
        stage.session.undo()
        assert seen(stage.state) == expected
    for expected in seen_states[1:]:
        stage.session.redo()
        assert seen(stage.state) == expected


def test_steps_are_taken_back_one_by_one_and_before_any_typing(stage: Stage) -> None:
    stage.loaded("hello")
    for _ in range(6):
        stage.session.step()
        stage.prompted()
        stage.steps(1)
        stage.finish()
    whole = stage.state.trace
    assert whole is not None
    for left in (5, 4, 3, 2, 1):
        assert stage.state.undo_kind == "step"
        stage.session.undo()
        assert stage.state.trace is not None
        assert len(stage.state.trace.steps) == left
        assert stage.state.request.prompt == "hello"
    stage.session.undo()
    assert stage.state.trace is None
    assert (stage.state.undo_kind, stage.state.redo_kind) == ("prompt", "step")
    for _ in range(6):
        stage.session.redo()
    assert stage.state.trace is not None
    assert stage.state.trace.chosen_ids == whole.chosen_ids
    assert stage.state.trace.steps[-1] is whole.steps[-1]


def test_a_setting_and_the_steps_after_it_unwind_in_order(stage: Stage) -> None:
    stage.loaded().ran(1).session.set_sampling(Sampling(greedy=False))
    stage.ran(2)
    kinds = []
    while stage.state.can_undo:
        kinds.append(stage.state.undo_kind)
        stage.session.undo()
    assert kinds == ["step", "step", "sampling", "step", "prompt"]
    assert stage.state.sampling == Sampling()


def test_a_run_is_one_act(stage: Stage) -> None:
    stage.loaded().ran(1).session.run()
    stage.prompted()
    stage.steps(5)
    stage.finish("length")
    assert stage.state.undo_kind == "run"
    stage.session.undo()
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 1


def test_steps_run_after_a_cut_come_back_with_redo(stage: Stage) -> None:
    cut_last(stage.loaded().ran(3).session, 2)
    stage.session.step()
    stage.prompted()
    stage.steps(1)
    stage.finish()
    branch = stage.state.trace
    stage.session.undo()
    stage.session.undo()
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 3
    stage.session.redo()
    stage.session.redo()
    assert stage.state.trace is branch


def test_undo_during_a_run_ends_it(stage: Stage) -> None:
    cut_last(stage.loaded().ran(3).session)
    stage.session.run()
    run = stage.prompted()
    stage.steps(2)
    stage.session.undo()
    assert m.Cancel(run=run) in stage.engine.asked
    assert stage.state.trace is not None
    assert len(stage.state.trace.steps) == 2


def test_undo_while_a_prompt_is_read_only_ends_that(stage: Stage) -> None:
    stage.loaded().ran(3).session.set_prompt("another")
    trace, kind = stage.state.trace, stage.state.undo_kind
    stage.session.step()
    run = stage.prompted()
    assert stage.state.undo_kind == "step"
    stage.session.undo()
    assert m.Cancel(run=run) in stage.engine.asked
    assert stage.state.trace is trace
    assert (stage.state.request.prompt, stage.state.undo_kind) == ("another", kind)


def test_what_could_be_redone_still_can_if_a_run_came_to_nothing(stage: Stage) -> None:
    stage.loaded().ran(3)
    stage.session.set_sampling(Sampling(greedy=False))
    stage.session.undo()
    stage.session.set_prompt("hello")
    stage.session.reset()
    stage.session.undo()
    assert stage.state.redo_kind == "reset"
    stage.session.set_causal_mask(False)
    stage.session.undo()
    stage.session.set_causal_mask(False)
    redo = stage.state.redo_kind
    stage.session.step()
    stage.prompted()
    stage.session.cancel()
    assert stage.state.redo_kind == redo


def test_undo_keeps_the_model_that_is_open(stage: Stage) -> None:
    stage.loaded("a").session.open_model("other")
    stage.answer_load(name="other")
    stage.session.undo()
    assert stage.state.request.prompt == ""
    assert stage.state.request.model == "other"


def test_undo_of_the_prompt_shows_its_tokens_again(stage: Stage) -> None:
    stage.loaded("a")
    asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=()))
    stage.session.undo()
    assert stage.engine.last(m.Tokenize).request.prompt == ""


def test_nothing_to_undo_does_nothing(stage: Stage) -> None:
    state = stage.state
    stage.session.undo()
    stage.session.redo()
    assert seen(stage.state) == seen(state)


def test_a_new_change_forgets_what_could_be_redone(stage: Stage) -> None:
    stage.session.set_prompt("a")
    stage.session.undo()
    stage.session.set_causal_mask(False)
    assert not stage.state.can_redo


def test_edits_of_one_gesture_are_one_entry() -> None:
    now = 0.0
    history = History(clock=lambda: now)
    for pause in (0.0, 0.3, 0.3, 0.9):
        now += pause
        history.push("prompt", State(), "request", merge=True)
    history.undo(State())
    assert not history.can_undo
    history.redo(State())
    now += 0.1
    history.push("prompt", State(), "request", merge=True)  # a redo ends the gesture
    now += 1.5
    history.push("prompt", State(), "request", merge=True)
    history.push("sampling", State(), "sampling", merge=True)
    for _ in range(4):
        assert history.can_undo
        history.undo(State())
    assert not history.can_undo


def test_switches_are_never_merged(stage: Stage) -> None:
    stage.session.set_causal_mask(False)
    stage.session.set_causal_mask(True)
    stage.session.undo()
    assert not stage.state.request.causal_mask


def test_history_is_bounded() -> None:
    history = History()
    for _ in range(LIMIT + 50):
        history.push("chat", State(), "request")
    count = 0
    while history.undo(State()):
        count += 1
    assert count == LIMIT


def test_old_traces_are_held_within_a_number_of_bytes_and_counted() -> None:
    history, traces = History(), [run_of(i) for i in range(6)]
    one = sum(map(step_bytes, traces[0].steps))
    for trace in traces:
        history.push("reset", replace(State(), trace=trace), "trace")
    assert history.within([]) == 6 * one
    assert history.within(traces[:2]) == 4 * one  # held by others anyway
    assert history.within([], limit=3 * one) == 3 * one
    for expected in reversed(traces[3:]):
        assert history.undo(State())["trace"] is expected
    assert not history.can_undo


def test_forcing_twice_holds_nothing_more(stage: Stage) -> None:
    stage.loaded().ran(2)
    before = stage.state.branches.bytes
    for token_id in (20, 21, 20):
        stage.session.force(token_id)
    assert stage.state.undo_bytes == 0
    assert stage.state.branches.bytes == before  # its logits and maps are the same arrays


def test_what_only_undo_holds_is_in_the_state(stage: Stage) -> None:
    stage.loaded().ran(3)
    assert stage.state.undo_bytes == 0
    stage.session.reset()
    assert stage.state.undo_bytes == 0  # its branch is kept
    stage.session._store.set(branches=Branches(let_go=1))
    trace = stage.session._edits._history._undo[-1].fields["trace"]
    assert stage.state.undo_bytes == sum(map(step_bytes, trace.steps)) > 0


def run_of(first: int) -> Trace:
    made = Trace(request=RunRequest(model="tiny"), card=card(), prompt=PROMPT)
    return made.appended(made_step(0), Token(first, b"t", "generated"))
