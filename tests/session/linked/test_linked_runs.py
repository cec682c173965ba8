"""Two sessions over scripted engines: acts and selections go along, a lost engine is lost alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer.figures.comparing.matching import Matching
from explorer.session.linked import linked_runs
from explorer.session.linked.linked_runs import NOT_STEPPED, ONE_MODEL, LinkedRuns
from explorer.session.session import Session
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, ScriptedEngine, Stage, card, ids, stepped


class TwoSides(Stage):
    """A loaded session with `count` steps, and one beside it that began as its copy."""

    def __init__(self, count: int = 2) -> None:
        super().__init__()
        self.loaded().ran(count)
        self.second = self.session.another()
        self.links = LinkedRuns(self.session, self.second)
        self.second.begin_as(self.session)
        self.drain()
        self.answer_load()

    @property
    def left_engine(self) -> ScriptedEngine:
        return self.engines[0]

    @property
    def right_engine(self) -> ScriptedEngine:
        return self.engines[1]

    def answer(self, engine: ScriptedEngine, session: Session, count: int = 1) -> None:
        """What was asked for last: the proof of a run, then its next steps."""
        if engine.asked and isinstance(proof := _last_run(engine), m.Recapture):
            assert session.state.trace is not None
            engine.say(
                stepped(proof.run, len(session.state.trace.steps) - 1),
                m.Finished(run=proof.run, reason="steps"),
            )
            self.drain()
        run = engine.last(m.Advance).run
        engine.say(m.Prompted(run=run, tokens=PROMPT))
        self.drain()
        assert session.state.trace is not None
        first = len(session.state.trace.steps)
        engine.say(*(stepped(run, first + more) for more in range(count)))
        engine.say(m.Finished(run=run, reason="steps"))
        self.drain()

    def close(self) -> None:
        self.links.close()
        self.second.close()
        super().close()


def _last_run(engine: ScriptedEngine) -> m.AnyRequest:
    kinds = (m.Recapture, m.Advance)
    return next(asked for asked in reversed(engine.asked) if isinstance(asked, kinds))


@pytest.fixture
def sides() -> Iterator[TwoSides]:
    made = TwoSides()
    yield made
    made.close()


def steps(session: Session) -> int:
    return 0 if session.state.trace is None else len(session.state.trace.steps)


def test_the_second_side_begins_as_a_copy_that_need_not_be_saved(sides: TwoSides) -> None:
    left, right = sides.state, sides.second.state
    assert right.trace is left.trace
    assert (right.request, right.sampling, right.stops) == (left.request, left.sampling, left.stops)
    assert right.card is not None
    assert left.unsaved
    assert not right.unsaved
    assert len(sides.engines) == 2
    assert sides.right_engine.count(m.Advance) == 0  # nothing was computed for it


def test_a_step_goes_on_both_sides_only_while_they_are_linked(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    assert (steps(sides.session), steps(sides.second)) == (3, 3)
    assert sides.second.state.unsaved  # now it has something of its own
    sides.links.set_linked(False)
    asked, states = len(sides.right_engine.asked), []
    sides.second.subscribe(lambda old, new: states.append(new))
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    assert (steps(sides.session), steps(sides.second)) == (4, 3)
    assert len(sides.right_engine.asked) == asked  # its engine was asked nothing
    assert states == []  # and nothing there was told of anything


def test_undo_takes_steps_back_on_both_sides_and_other_acts_on_one(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    sides.links.undo(sides.second)
    assert (steps(sides.session), steps(sides.second)) == (2, 2)
    sides.links.redo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (3, 3)
    sides.second.set_prompt("another")
    sides.links.undo(sides.second)
    assert sides.second.state.request.prompt == "hello"
    assert steps(sides.session) == 3  # its step was not what was taken back


def test_a_step_along_the_run_moves_both_sides_by_one(sides: TwoSides) -> None:
    for _ in range(3):
        sides.links.step(sides.session)
        sides.answer(sides.left_engine, sides.session)
        sides.answer(sides.right_engine, sides.second)
    sides.session.look(-3)
    asked = len(sides.left_engine.asked), len(sides.right_engine.asked)
    for index in (2, 3, 4):
        sides.links.step(sides.session)
        assert (sides.state.step_index, sides.second.state.step_index) == (index, index)
    sides.drain()
    assert (len(sides.left_engine.asked), len(sides.right_engine.asked)) == asked
    assert (steps(sides.session), steps(sides.second)) == (5, 5)


def test_cut_and_reset_are_done_and_taken_back_on_both_sides(sides: TwoSides) -> None:
    sides.session.look(-1)
    sides.links.cut(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (1, 1)
    sides.links.undo(sides.second)
    assert (steps(sides.session), steps(sides.second)) == (2, 2)
    assert (sides.state.step_index, sides.second.state.step_index) == (0, 0)
    sides.links.redo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (1, 1)
    sides.links.reset(sides.session)
    assert (sides.state.trace, sides.second.state.trace) == (None, None)
    sides.links.undo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (1, 1)
    sides.links.undo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (2, 2)


def test_a_side_follows_again_after_a_cut_that_fails(
    sides: TwoSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(session: Session) -> None:
        raise RuntimeError

    monkeypatch.setattr(Session, "cut", fails)
    with pytest.raises(RuntimeError):
        sides.links.cut(sides.session)
    sides.session.look(-1)
    assert sides.second.state.step_index == 0


def test_undo_leaves_steps_that_were_not_made_together(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    sides.links.set_linked(False)
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.links.set_linked(True)
    sides.links.undo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (3, 3)
    sides.links.undo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (2, 2)
    sides.links.redo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (3, 3)
    sides.links.redo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (4, 3)


def test_quick_steps_are_taken_back_in_pairs_whichever_side_is_slower(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.links.step(sides.session)  # the right one has not answered the first
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second, 2)
    assert (steps(sides.session), steps(sides.second)) == (4, 4)
    for count in (3, 2):
        sides.links.undo(sides.second)
        assert (steps(sides.session), steps(sides.second)) == (count, count)


def test_an_act_that_came_to_nothing_leaves_no_trace_in_undo(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.session.cancel()
    sides.answer(sides.right_engine, sides.second)
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    assert (steps(sides.session), steps(sides.second)) == (3, 4)
    sides.links.undo(sides.session)
    assert (steps(sides.session), steps(sides.second)) == (2, 3)
    sides.links.undo(sides.second)
    assert (steps(sides.session), steps(sides.second)) == (2, 2)


def test_a_selection_goes_along(sides: TwoSides) -> None:
    sides.session.select(layer=1, head=1, query=1, key=0)
    there = sides.second.state.selection
    assert (there.layer, there.head, there.query, there.key) == (1, 1, 1, 0)
    sides.second.look(-1)
    assert sides.session.state.selection.step == 0
    sides.second.look(+1)
    assert sides.session.state.selection.step is None
    sides.links.set_linked(False)
    sides.session.select(layer=0)
    assert sides.second.state.selection.layer == 1


def test_a_hover_does_not_wait_for_a_long_search_or_for_new_steps(
    sides: TwoSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[int] = []
    real = linked_runs.matched

    def counted(left: Trace, right: Trace, by_id: bool, most: int) -> Matching:
        searched.append(most)
        return real(left, right, by_id, most)

    monkeypatch.setattr(linked_runs, "matched", counted)
    sides.session.select(layer=1, head=1)  # by depth: no token is looked for
    assert searched == []
    sides.session.select(query=1)
    sides.links.set_linked(False)
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.links.set_linked(True)
    before = len(searched)
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    sides.session.select(query=2, key=1)
    assert (sides.second.state.selection.query, sides.second.state.selection.key) == (2, 1)
    assert len(searched) == before
    assert sides.links.matching is not None
    assert len(searched) == before + 1  # now the new steps are there
    sides.second.look(-2)
    sides.second.force(20)
    sides.session.select(query=0)
    assert len(searched) == before + 2  # a run that is another one is read anew
    assert max(searched) <= 300_000  # pairs: some hundredths of a second


def test_the_first_difference_is_selected_on_both_sides(sides: TwoSides) -> None:
    assert not sides.links.go_to_first_difference()
    sides.second.look(-1)
    sides.second.force(20)
    sides.second.select(step=None)
    assert ids(sides.second.state)[0] == 20
    assert sides.links.go_to_first_difference()
    assert sides.session.state.selection.step == 0
    assert sides.second.state.step_index == 0


def test_steps_of_one_number_are_selected_where_one_side_is_shifted(sides: TwoSides) -> None:
    sides.links.set_linked(False)
    sides.second.look(-1)
    sides.second.force(11)  # the left chose it at its second step
    sides.second.step()
    sides.answer(sides.right_engine, sides.second)
    sides.links.set_linked(True)
    assert (ids(sides.state), ids(sides.second.state)) == ([10, 11], [11, 11])
    for step in (0, 1):
        sides.links.select_steps(step)
        assert (sides.state.step_index, sides.second.state.step_index) == (step, step)


def test_the_other_side_lives_when_an_engine_is_lost(sides: TwoSides) -> None:
    sides.right_engine.say(m.Lost(sentence="The engine stopped unexpectedly."))
    sides.drain()
    assert sides.second.state.status.activity == "lost"
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    assert steps(sides.session) == 3
    assert len(sides.engines) == 2  # a linked step does not start a lost engine
    sides.second.restart_engine()
    sides.drain()
    assert len(sides.engines) == 3
    assert sides.engine.last(m.Load).model == "tiny"


def test_linked_steps_wait_for_the_model_of_the_other_side(sides: TwoSides) -> None:
    sides.second.open_model("other")
    sides.drain()
    made = sides.left_engine.count(m.Advance)
    for _ in range(2):
        sides.links.step(sides.session)
    sides.drain()
    assert sides.links.held is sides.session
    assert sides.left_engine.count(m.Advance) == made
    assert sides.second.state.status.step_waits
    load = sides.right_engine.last(m.Load)
    sides.right_engine.say(m.Loaded(run=load.run, card=card("other")))
    sides.drain()
    assert sides.links.held is None
    assert sides.right_engine.last(m.Advance).steps == 2
    sides.answer(sides.left_engine, sides.session, 2)
    run = sides.right_engine.last(m.Advance).run
    sides.right_engine.say(m.Prompted(run=run, tokens=PROMPT), stepped(run, 0), stepped(run, 1))
    sides.right_engine.say(m.Finished(run=run, reason="steps"))
    sides.drain()
    assert (steps(sides.session), steps(sides.second)) == (4, 2)


@pytest.mark.parametrize("how", ["failed", "cancelled", "lost", "unlinked", "refused"])
def test_a_linked_step_moves_no_side_alone_where_the_other_opens_no_model(
    sides: TwoSides, how: str
) -> None:
    sides.second.open_model("other")
    if how == "refused":
        sides.second.set_prompt("\ud800")
    sides.drain()
    made = sides.left_engine.count(m.Advance)
    sides.links.step(sides.session)
    load = sides.right_engine.last(m.Load)
    if how == "failed":
        sides.right_engine.say(m.Failed(run=load.run, sentence="It is damaged."))
    elif how == "cancelled":
        sides.second.cancel()
    elif how == "lost":
        sides.right_engine.say(m.Lost(sentence="The engine stopped unexpectedly."))
    elif how == "unlinked":
        sides.links.set_linked(False)
    sides.drain()
    assert sides.links.held is None
    assert sides.left_engine.count(m.Advance) == made
    assert steps(sides.session) == 2
    assert sides.state.error == ("" if how == "unlinked" else NOT_STEPPED)


def test_models_that_do_not_fit_together_take_turns() -> None:
    sides = Stage().loaded().ran(1)
    second = sides.session.another()
    links = LinkedRuns(sides.session, second)
    second.begin_as(sides.session)
    sides.drain()
    left, right = sides.engines
    right.say(m.Failed(run=right.last(m.Load).run, sentence="Too large.", no_room=True))
    sides.drain()
    assert links.one_at_a_time
    assert not left.alive  # its memory is free
    assert sides.state.status.text == ONE_MODEL
    assert sides.state.status.released
    assert sides.state.trace is not None  # the run stays
    assert right.count(m.Load) == 2
    sides.answer_load()
    assert second.state.card is not None
    assert second.state.error == ""

    links.step(sides.session)  # the open model goes first, then the other is opened again
    proof = right.last(m.Recapture)
    right.say(stepped(proof.run, 0), m.Finished(run=proof.run, reason="steps"))
    sides.drain()
    assert len(sides.engines) == 2
    run = right.last(m.Advance).run
    right.say(m.Prompted(run=run, tokens=PROMPT), stepped(run, 1))
    right.say(m.Finished(run=run, reason="steps"))
    sides.drain()
    assert steps(second) == 2
    assert not right.alive
    again = sides.engines[2]
    assert again.last(m.Load).model == "tiny"
    links.close()
    second.close()
    sides.close()


def test_a_model_from_the_list_takes_the_room_of_the_other_side(sides: TwoSides) -> None:
    sides.links.step(sides.session)
    sides.answer(sides.left_engine, sides.session)
    sides.answer(sides.right_engine, sides.second)
    engine, made = sides.left_engine, sides.left_engine.count(m.Advance)
    sides.session.open_model("big", dtype="bfloat16")
    sides.drain()
    engine.say(m.Failed(run=engine.last(m.Load).run, sentence="Too large.", no_room=True))
    sides.drain()
    assert sides.links.one_at_a_time
    assert not sides.right_engine.alive
    load = engine.last(m.Load)
    assert (load.model, load.dtype) == ("big", "bfloat16")
    engine.say(m.Loaded(run=load.run, card=card("big")))
    sides.drain()
    assert sides.state.request.model == "big"
    assert engine.count(m.Advance) == made  # nobody asked for a step
    assert sides.state.error == ""


def test_a_step_goes_on_once_its_model_has_room(sides: TwoSides) -> None:
    sides.left_engine.say(m.Lost(sentence="The engine stopped unexpectedly."))
    sides.drain()
    sides.links.step(sides.session)
    sides.drain()
    engine = sides.engines[2]
    sides.links.set_linked(False)
    engine.say(m.Failed(run=engine.last(m.Load).run, sentence="Too large.", no_room=True))
    sides.drain()
    assert not sides.right_engine.alive
    engine.say(m.Loaded(run=engine.last(m.Load).run, card=card()))
    sides.drain()
    sides.answer(engine, sides.session)
    assert steps(sides.session) == 3
