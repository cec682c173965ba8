"""Two sessions side by side: linked acts, linked selection, and memory for one model or two."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from explorer.figures.comparing import alignment
from explorer.figures.comparing.matching import Hand, Matching, by_depth, matched
from explorer.session.selection import Selection, Shown
from explorer.session.session import Session
from explorer.session.state import ModelKey, State, model_key
from explorer.trace.step import Token
from explorer.trace.trace import Trace
from explorer.trace.vocabulary import Vocabulary

Act = Callable[[Session], object]
ONE_MODEL = "Closed: no room for both models. Step opens it again."
NOT_STEPPED = (
    "The other side's model was not opened, so this side did not step. Turn Linked off to step it "
    "alone."
)
# Pairs of tokens or bytes behind the first difference that are searched for matches: it is done
# in the owner's thread, and takes some hundredths of a second at most.
_MOST = 250_000
_LOOKED_AT = tuple(Selection.__dataclass_fields__)
_OPENING = "starting", "loading"
_AHEAD = 5  # quick taps that are remembered, as by the driver
_BY_DEPTH = {"layer", "head"}  # these need no matching
_HOVERED = {"layer", "head", "query", "key"}
_numbers = count(1)  # of acts that are made on both sides; a session may outlive its links


class _Read(NamedTuple):
    """What a matching depends on, by identity."""

    left: tuple[Token, ...]  # chosen
    right: tuple[Token, ...]
    left_prompt: tuple[Token, ...]
    right_prompt: tuple[Token, ...]
    left_names: Vocabulary | None
    right_names: Vocabulary | None


class LinkedRuns:
    """What is done on one side is done on the other, too, while `linked`.

    Each session has an engine of its own.  Where the memory holds one model only, `one_at_a_time`:
    an act on a side first closes the model of the other.
    """

    def __init__(self, left: Session, right: Session) -> None:
        self.left, self.right = left, right
        self.linked = True
        self.one_at_a_time = False
        self._following = False
        self._waiting: deque[tuple[Session, Act]] = deque()  # acts for which there is no room yet
        self._held: list[tuple[Session, Act]] = []  # acts until the other side's model is open
        # The newest act of each that may open a model, and these models, until it has begun.
        self._last: dict[Session, tuple[Act, tuple[ModelKey, ...]]] = {}
        self._known: tuple[_Read, Matching] | None = None
        self._unsubscribe = [one.subscribe(partial(self._on_state, one)) for one in (left, right)]

    def close(self) -> None:
        """Follow the sessions no longer; they stay as they are."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._waiting.clear()
        self._held.clear()

    def swap(self) -> None:
        """What was on the left is on the right."""
        self.left, self.right = self.right, self.left
        self._known = None

    def other(self, session: Session) -> Session:
        """The session on the other side."""
        return self.right if session is self.left else self.left

    def set_linked(self, on: bool) -> None:
        """From now on; the selection of the left is taken over at once."""
        self.linked = on
        self._held.clear()
        if on:
            self._follow(self.left, _LOOKED_AT)

    # -- acts

    def step(self, session: Session) -> None:
        """One step of this side, and of the other if they are linked.

        Along steps that are there only this side goes; the other follows its selection.
        """
        if _goes_along(session.state):
            session.step()
            return
        self._go_on_both(session, partial(_numbered, next(_numbers), Session.step))

    def run_or_pause(self, session: Session) -> None:
        """Run both sides, or pause both; which of the two is for this side to say."""
        running = session.state.status.activity == "running"
        if not running:
            self._go_on_both(session, partial(_numbered, next(_numbers), Session.run))
            return
        for one in self._together(session):
            one.pause()

    def _go_on_both(self, session: Session, act: Act) -> None:
        """The act on each side; one whose model is open waits for one whose model is not."""
        sides = self._together(session)
        opening = [one for one in sides if _opens(one.state)]
        for one in sides:
            if opening and one not in opening and not self.one_at_a_time:
                self._held = [*self._held, (one, act)][-_AHEAD:]
            else:
                self.act(one, act)
        if self._held:
            session.post(self._do_held)  # the other side may have refused at once

    @property
    def held(self) -> Session | None:
        """The side that waits until the other one's model is open; None if none waits."""
        return self._held[0][0] if self._held else None

    def _do_held(self) -> None:
        """What waited for the other side's model; dropped if that was not opened."""
        if self.held is None:
            return
        other = self.other(self.held)
        if other.state.status.step_waits and not self.one_at_a_time:
            return
        opens = other.state.status.activity in _OPENING  # the model of before, without a step
        goes_on = self.one_at_a_time or (other.runs_or_will and not opens)
        acts, self._held = self._held, []
        if not goes_on:
            acts[0][0].report(NOT_STEPPED)
            return
        for session, act in acts:
            self.act(session, act)

    def look(self, session: Session, by: int) -> None:
        """Look along the run; the other side follows as it follows every selection."""
        session.look(by)

    def reset(self, session: Session) -> None:
        """Drop the run of this side, and of the other if they are linked."""
        self._at_once(session, Session.reset)

    def cut(self, session: Session) -> None:
        """Remove what follows the selected step, on both sides if they are linked."""
        self._at_once(session, Session.cut)

    def _at_once(self, session: Session, act: Act) -> None:
        """An act that ends what goes on, on both sides; each looks at its own place until then."""
        self._held.clear()
        number = next(_numbers)
        with self._not_following():
            for one in self._together(session):
                one.act_numbers.clear()
                one.act_numbers.append(number)
                act(one)
                one.act_numbers.clear()

    def undo(self, session: Session) -> None:
        """Take back the last act; on the other side, too, if that was made together with it."""
        numbers = [one.state.undo_number for one in (session, self.other(session))]
        self._take_back(session, Session.undo, numbers)

    def redo(self, session: Session) -> None:
        """Put back what was taken back last, as `undo`."""
        numbers = [one.state.redo_number for one in (session, self.other(session))]
        self._take_back(session, Session.redo, numbers)

    def _take_back(self, session: Session, act: Act, numbers: list[int]) -> None:
        self._held.clear()
        mine, theirs = numbers
        if not (self.linked and mine and mine == theirs):
            act(session)
            return
        with self._not_following():
            act(session)
            act(self.other(session))

    def _together(self, session: Session) -> list[Session]:
        """This side, and the other one if it is linked and its engine works."""
        other = self.other(session)
        lost = other.state.status.activity == "lost" and not self.one_at_a_time
        if not self.linked or lost:
            return [session]
        # Where one model is open at a time, the one that is goes first.
        first = self.one_at_a_time and other.holds_model
        return [other, session] if first else [session, other]

    # -- memory

    def act(self, session: Session, act: Act) -> None:
        """Do something for which the model of this side may have to be opened."""
        state = session.state
        self._last[session] = act, (model_key(state.request), *state.opened)
        if self.one_at_a_time:
            self._waiting.append((session, act))
            self._do_next()
        else:
            act(session)

    def _do_next(self) -> None:
        """The next act that waits, once the other side has come to rest."""
        while self._waiting:
            session, act = self._waiting[0]
            other = self.other(session)
            if other.runs_or_will or other.state.status.activity == "starting":
                return
            self._waiting.popleft()
            other.release(ONE_MODEL)
            act(session)

    def _make_room(self, session: Session) -> None:
        """A model did not fit beside the other side's: one at a time from now on."""
        self.one_at_a_time = True
        wanted = session.state.unopened_as
        assert wanted is not None
        again, needed = self._last.pop(session, (None, ()))
        self.other(session).release(ONE_MODEL)
        session.open_model(*wanted)
        session.act_numbers.clear()
        if again is not None and wanted in needed:
            again(session)  # once the model is there

    # -- selection

    @property
    def matching(self) -> Matching | None:
        """Which tokens of both runs belong together; None while a side has no run."""
        left, right = self.left.state, self.right.state
        if left.trace is None or right.trace is None:
            return None
        now = _read(left, right)
        if self._known is None or not all(map(is_, now, self._known[0])):
            shared = one_vocabulary(left, right)
            self._known = now, matched(left.trace, right.trace, shared, _MOST)
        return self._known[1]

    @property
    def _matching_of_hover(self) -> Matching | None:
        """While runs only grow, the last one: the mouse does not wait for what is new."""
        left, right = self.left.state, self.right.state
        if self._known is None or left.trace is None or right.trace is None:
            return self.matching
        before, matching = self._known
        now = _read(left, right)
        same = all(map(is_, now[2:], before[2:]))
        grown = all(map(_begins_as, now[:2], before[:2]))
        return matching if same and grown else self.matching

    def go_to_first_difference(self) -> bool:
        """Select it on both sides; False if there is none."""
        matching = self.matching
        places = None if matching is None else matching.first_difference
        if places is None:
            return False
        with self._not_following():
            for session, slot in zip((self.left, self.right), places, strict=True):
                trace = session.state.trace
                if slot is None and trace is not None:
                    session.select(step=None, query=None)  # its text ends before
                elif slot is not None:
                    session.select_slot(slot)
        return True

    def select_steps(self, step: int) -> None:
        """Each side looks at its own step of this number, whatever the other one chose there."""
        with self._not_following():
            for session in (self.left, self.right):
                trace = session.state.trace
                if trace is not None and step < len(trace.steps):
                    session.select_slot(len(trace.prompt) + step)

    @contextmanager
    def _not_following(self) -> Iterator[None]:
        """What is selected meanwhile on one side is not selected on the other."""
        before, self._following = self._following, True
        try:
            yield
        finally:
            self._following = before

    def _on_state(self, session: Session, old: State, new: State) -> None:
        if session.state is not new:
            return  # it has changed again meanwhile, which is told next
        if new.no_room and not old.no_room and self.other(session).holds_model:
            self._make_room(session)
        if new.status.activity == "running":
            self._last.pop(session, None)
        if old.status.activity != new.status.activity or old.plan is not new.plan:
            session.post(partial(_drop_numbers, session))  # what follows by itself goes first
        if self._waiting and old.status is not new.status:
            session.post(self._do_next)  # likewise
        if self._held and old.status is not new.status:
            session.post(self._do_held)
        if self.linked and old.selection != new.selection and not self._following:
            names = (
                n for n in _LOOKED_AT if getattr(old.selection, n) != getattr(new.selection, n)
            )
            self._follow(session, tuple(names))

    def _follow(self, session: Session, names: tuple[str, ...]) -> None:
        """The other side looks at what belongs to these fields of the selection."""
        other = self.other(session)
        mine, theirs = session.state.shown, other.state.shown
        if mine is None or theirs is None:
            return
        changes = self._counterpart(session, mine, theirs, names)
        with self._not_following():
            other.select(**changes)

    def _counterpart(
        self, session: Session, mine: Shown, theirs: Shown, names: tuple[str, ...]
    ) -> dict[str, Any]:
        """The fields to be changed on the other side."""
        now = session.state.selection
        hand: Hand = "left" if session is self.left else "right"
        changes: dict[str, Any] = {}
        if "layer" in names:
            changes["layer"] = by_depth(mine.layer, mine.layers, theirs.layers)
        if "layer" in names or "head" in names:
            heads = theirs.heads_of(changes.get("layer", theirs.layer))
            changes["head"] = by_depth(mine.head, mine.heads_of(mine.layer), heads)
        if _BY_DEPTH.issuperset(names):
            return changes
        matching = self._matching_of_hover if _HOVERED.issuperset(names) else self.matching
        assert matching is not None
        if "step" in names:
            changes["step"] = _step(matching, hand, now.step, mine.trace, theirs.trace)
        if "step" in names or "query" in names:
            changes["query"] = None if now.query is None else matching.other(now.query, hand)
        if "step" in names or "key" in names:
            changes["key"] = None if now.key is None else matching.other(now.key, hand)
        if "token_id" in names and matching.by_id:
            changes["token_id"] = now.token_id
        return changes


def _read(left: State, right: State) -> _Read:
    assert left.trace is not None
    assert right.trace is not None
    one, other = left.trace, right.trace
    return _Read(one.chosen, other.chosen, one.prompt, other.prompt, left.names, right.names)


def _begins_as(chosen: Sequence[Token], before: Sequence[Token]) -> bool:
    """True if the tokens of a run have only become more."""
    return len(before) <= len(chosen) and all(map(is_, chosen, before))


def _goes_along(state: State) -> bool:
    """True if a step looks at the next of the steps that are there, and computes nothing."""
    return state.looks_back and not state.request_changed and state.branch_point is None


def _opens(state: State) -> bool:
    """True if a step waits until a model is open."""
    starts = state.status.activity in (*_OPENING, "lost")
    return starts or state.card is None or state.reopens


def _numbered(number: int, act: Act, session: Session) -> None:
    """A step or run by whose number undo finds it on the other side."""
    if act is not Session.step or not _goes_along(session.state):
        session.act_numbers.append(number)
    act(session)
    _drop_numbers(session)


def _drop_numbers(session: Session) -> None:
    """Where nothing is to come any more, acts have ended without a step."""
    if not session.runs_or_will and session.state.plan is None:
        session.act_numbers.clear()


def _step(
    matching: Matching, hand: Hand, step: int | None, mine: Trace, theirs: Trace
) -> int | None:
    """The step that chose the same token, else the one of the same number; None = the latest."""
    if step is None:
        return None
    last = len(theirs.steps) - 1
    slot = matching.other(len(mine.prompt) + step, hand)
    found = step if slot is None or slot < len(theirs.prompt) else slot - len(theirs.prompt)
    return None if found >= last else found


def one_vocabulary(left: State, right: State) -> bool:
    """True if both runs use one vocabulary: by all of it where both models are open."""
    assert left.trace is not None
    assert right.trace is not None
    if left.trace.card.vocab_size != right.trace.card.vocab_size:
        return False
    mine, theirs = left.names, right.names
    if mine is None or theirs is None:
        return alignment.one_vocabulary(left.trace, right.trace)
    return np.array_equal(mine.offsets, theirs.offsets) and np.array_equal(mine.data, theirs.data)
