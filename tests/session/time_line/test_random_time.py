"""A thousand acts by chance on a run: looking changes nothing, and nothing that ran is lost."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from explorer.session.branches import same_root, shared_steps
from explorer.trace.request import Sampling
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, stepped

LONGEST = 30  # tokens of a run
LOOKS = {"back", "forward", "slider"}


class Traveller:
    """Acts by chance; the engine answers at once, or leaves a run open for the next act."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.session = stage.session
        self.random = random.Random(seed)
        self.runs: list[Trace] = []  # every run ever on screen, as far as it came
        self.acts: list[str] = []
        self.branches_begun = 0

    @property
    def running(self) -> bool:
        return self.stage.state.status.activity == "running"

    def act(self) -> None:
        name = self.random.choices(list(ACTS), [OFTEN.get(name, 1) for name in ACTS])[0]
        self.acts.append(name)
        before, asked = self.stage.state, self.stage.engine.count(m.Advance)
        ACTS[name](self)
        self.stage.drain()
        if name in LOOKS:
            assert self.stage.state.trace is before.trace
            assert self.stage.engine.count(m.Advance) == asked
        if name == "step" and before.looks_back and before.branch_point is None:
            assert self.stage.state.trace is before.trace
            assert self.stage.engine.count(m.Advance) == asked
            assert before.step_index is not None
            assert self.stage.state.step_index == before.step_index + 1
        self.branches_begun += before.branch_point is not None and name in ("step", "run")
        self.answer()
        self.remember()
        self.check()

    def answer(self, whole: bool = False) -> None:
        """What the engine says next to a run under way, if there is one."""
        if not self.running:
            return
        request = self.stage.engine.last(m.Advance)
        self.stage.say(m.Prompted(run=request.run, tokens=PROMPT))
        index, count = len(request.chosen), min(request.steps, 3)
        for _ in range(count):
            if index >= LONGEST:
                break
            self.stage.say(stepped(request.run, index, sampling=self.stage.state.sampling))
            index += 1
            if request.steps > 3 and not whole and self.random.random() < 0.3:
                self.interrupt(request.run, index)
                return
        reason = "steps" if count == request.steps else "length"
        self.stage.say(m.Finished(run=request.run, reason=reason))

    def interrupt(self, run: int, index: int) -> None:
        """In the middle of a run: look about, then let it go on or pause it."""
        trace = self.stage.state.trace
        self.session.look(-self.random.randrange(1, 4))
        self.session.step()
        assert self.stage.state.trace is trace
        if self.random.random() < 0.5:
            self.session.pause()
        elif index < LONGEST:
            self.stage.say(stepped(run, index, sampling=self.stage.state.sampling))
            self.stage.say(m.Finished(run=run, reason="length"))
        else:
            self.stage.say(m.Finished(run=run, reason="length"))

    def slide(self) -> None:
        trace = self.stage.state.trace
        if trace is not None and trace.steps:
            self.session.select(step=self.random.randrange(len(trace.steps)))

    def switch(self) -> None:
        numbers = [branch.number for branch in self.stage.state.branches.all]
        if numbers:
            self.session.show_branch(self.random.choice(numbers))

    def remember(self) -> None:
        trace = self.stage.state.trace
        if trace is not None and trace.steps:
            self.runs = [run for run in self.runs if not _holds(trace, run)]
            self.runs.append(trace)

    def check(self) -> None:
        """All that ever ran is in the tree, also after a cut or a reset."""
        state = self.stage.state
        assert state.error == ""
        for run in self.runs:
            assert any(_holds(branch.trace, run) for branch in state.branches.all), run.chosen_ids
        if state.step_index is not None and state.trace is not None:
            assert state.step_index < len(state.trace.steps)


def _holds(one: Trace, other: Trace) -> bool:
    """True if `one` has every token of `other`."""
    return same_root(one, other) and shared_steps(one, other) == len(other.chosen)


ACTS: dict[str, Callable[[Traveller], object]] = {
    "step": lambda t: t.session.step(),
    "back": lambda t: t.session.look(-1),
    "forward": lambda t: t.session.look(+1),
    "slider": Traveller.slide,
    "force": lambda t: t.session.force(t.random.randrange(10, 30)) if t.stage.state.trace else 0,
    "cut": lambda t: t.session.cut(),
    "reset": lambda t: t.session.reset() if t.random.random() < 0.2 else 0,
    "undo": lambda t: t.session.undo(),
    "redo": lambda t: t.session.redo(),
    "sampling": lambda t: t.session.set_sampling(Sampling(seed=t.random.randrange(3))),
    "branch": Traveller.switch,
    "run": lambda t: t.session.run(),
    "pause": lambda t: t.session.pause(),
}


OFTEN = {"step": 4, "run": 3, "sampling": 2, "back": 2, "slider": 2}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_a_thousand_acts_lose_nothing_and_unwind_to_the_start(stage: Stage, seed: int) -> None:
    traveller = Traveller(stage.loaded(), seed)
    start = stage.state.sampling
    try:
        for _ in range(1000):
            traveller.act()
        assert traveller.branches_begun > 10
        traveller.answer(whole=True)
        last = stage.state.trace
        undone = 0
        while stage.state.can_undo and stage.state.undo_kind != "prompt":
            stage.session.undo()
            undone += 1
            traveller.check()
        assert stage.state.trace is None
        assert stage.state.sampling == start
        for _ in range(undone):
            stage.session.redo()
        assert (stage.state.trace and stage.state.trace.chosen_ids) == (last and last.chosen_ids)
    except BaseException:
        print(f"seed {seed}, {len(traveller.acts)} acts:", *traveller.acts[-25:], sep="\n  ")
        raise
