"""Hundreds of acts in random order: after each, the window says what is so, and no run is lost.

The engine is scripted, and answers in full, in part or not at all before the next act.  A failure
names its seed; the acts up to it are printed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from explorer.session.branches import same_root, shared_steps
from explorer.session.engine_lease import Job
from explorer.trace.request import Sampling, Stops
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from explorer.ui.frame.topbar import open_name, title_of
from explorer.ui.menus.undo_words import redo_text, undo_text
from tests.session.scripted import PROMPT, card, made_step, stepped
from tests.ui.stage import WindowStage

GOOD, BAD = ("tiny", "other"), ("/models/bad.gguf", "/models/no model here")


class Player:
    """Acts on one window, and knows which runs there have been."""

    def __init__(self, stage: WindowStage, seed: int) -> None:
        self.stage, self.session = stage, stage.session
        self.random = random.Random(seed)
        self.runs: list[Trace] = []  # as far as each was seen
        self.acts: list[str] = []

    # -- the engine's side

    @property
    def job(self) -> Job | None:
        return self.session._driver._lease.job

    def answer(self, whole: bool = False) -> None:
        """What the engine says to what it was asked last: all of it, some of it, or nothing yet."""
        for _ in range(40 if whole else self.random.randrange(4)):
            if self.job is None or self.stage.state.status.activity == "lost":
                return
            self._say_one(self.job, whole)
            self.see()

    def _say_one(self, job: Job, whole: bool) -> None:
        state, say = self.stage.state, self.stage.say
        match job.kind:
            case "load" if job.request.model in GOOD:
                say(m.Loaded(run=job.run, card=card(job.request.model, dtype=job.request.dtype)))
            case "load":
                say(m.Failed(run=job.run, sentence="There is no such model."))
            case "advance" if job.fresh:
                say(m.Prompted(run=job.run, tokens=PROMPT))
            case "advance":
                assert state.trace is not None
                index = len(state.trace.steps) if job.kept is None else job.kept
                recompute = not job.request.uses_cache
                say(stepped(job.run, index, recompute=recompute, sampling=state.sampling))
                if not job.endless or whole or index > 40:
                    say(m.Finished(run=job.run, reason="steps"))
            case "recapture" | "compare" | "proof":
                step = made_step(job.step, recompute=not job.request.uses_cache)
                say(m.Stepped(run=job.run, step=step, token=step.top[0]))
                say(m.Finished(run=job.run, reason="steps"))
            case "check":
                say(m.Finished(run=job.run, reason="checked"))
            case _:
                say(m.Failed(run=job.run, sentence="Not today."))

    # -- the user's side

    def act(self) -> None:
        """One act by chance, and whatever the engine says to it."""
        name = self.random.choice(list(ACTS))
        self.acts.append(name)
        ACTS[name](self)
        self.stage.drain()
        self.see()
        self.answer()
        self.stage.paint()
        self.check()

    def trigger(self, name: str) -> None:
        """As from the menu."""
        self.stage.window.actions_table.by_id[name].trigger()

    def undo(self) -> None:
        """What the menu says is what is taken back."""
        before, kind = self.stage.state, self.stage.state.undo_kind
        reading = self.job is not None and self.job.begun is not None
        self.trigger("undo")
        after = self.stage.state
        changed = {
            name
            for name in ("sampling", "stops", "branch_names", "forgotten")
            if getattr(before, name) != getattr(after, name)
        }
        expected = {"sampling": "sampling", "stops": "stops", "rename": "branch_names"}
        expected["branch"] = "sampling"  # a branch brings the settings that it was drawn with
        assert changed <= {expected.get(kind, "forgotten")}
        if kind in ("step", "run") and not reading:
            assert after.request == before.request
            if before.trace is not None and after.trace is not None:
                # A branch may choose the same tokens, but it has drawn them with other settings.
                shown = [
                    (one.request, one.chosen_ids, [step.sampling for step in one.steps])
                    for one in (before.trace, after.trace)
                ]
                assert shown[0] != shown[1]
        if kind == "prompt":
            same = (before.trace is after.trace) or reading
            assert same, "typing was undone, and the run with it"

    def switch(self) -> None:
        numbers = [branch.number for branch in self.stage.state.branches.all]
        if numbers:
            self.session.show_branch(self.random.choice(numbers))

    def rename(self) -> None:
        numbers = [branch.number for branch in self.stage.state.branches.all]
        if numbers:
            self.session.rename_branch(self.random.choice(numbers), self.random.choice("xyz"))

    def pick(self) -> None:
        trace = self.stage.state.trace
        if trace is not None and trace.steps:
            self.session.select(step=self.random.randrange(len(trace.steps)))

    # -- what must hold

    def see(self) -> None:
        """Remember the run on screen, as far as it has come."""
        trace = self.stage.state.trace
        if trace is None or not trace.steps:
            return
        self.runs = [
            run for run in self.runs
            if not (same_root(run, trace) and shared_steps(run, trace) == len(run.chosen))
        ]  # fmt: skip
        self.runs.append(trace)

    def check(self) -> None:
        self._check_words()
        self._check_screen()
        self._check_runs()

    def _check_words(self) -> None:
        state, window = self.stage.state, self.stage.window
        undo, redo = (window.actions_table.by_id[name] for name in ("undo", "redo"))
        assert (undo.text(), undo.isEnabled()) == (undo_text(state), state.can_undo)
        assert (redo.text(), redo.isEnabled()) == (redo_text(state), state.can_redo)
        model = title_of(state.request.model)
        assert model in window.windowTitle()
        hint = window.topbar._model.toolTip().split("\n")[0]
        assert hint in (open_name(state), "Choose a model")
        assert state.request.model not in BAD
        assert window.notices.lost.isVisible() == (state.status.activity == "lost")
        assert (state.status.activity in ("loading", "running", "checking")) == (
            self.job is not None
        )
        running = window.actions_table.by_id["run"].isChecked()
        assert running == (state.status.activity == "running")

    def _check_screen(self) -> None:
        state, window = self.stage.state, self.stage.window
        assert window.prompt.edit.text() == state.request.prompt
        assert window.topbar.mask_switch.isChecked() == state.request.causal_mask
        tokens = state.prompt_tokens if state.trace is None else state.trace.tokens
        assert window.sequence.strip._tokens == tokens
        bars = window.notices
        said = bars.stale.text + bars.unmasked.text * (not state.request.causal_mask)
        if state.request_changed and not (bars.stale._closed or bars.unmasked._closed):
            assert "Press Step" in said
        elif not state.request_changed and not state.reopens:
            assert "Press Step" not in said

    def _check_runs(self) -> None:
        """Every run that was ever on screen is in the tree, or it was said that it had to go."""
        state = self.stage.state
        if state.branches.let_go:
            assert self.stage.window.notices.dropped.text
            return
        for run in self.runs:
            assert any(
                same_root(branch.trace, run) and shared_steps(branch.trace, run) == len(run.chosen)
                for branch in state.branches.all
            ), f"lost: {run.request} {run.chosen_ids}"

    def unwind(self) -> None:
        """All the way back and forth again: the same run is on screen."""
        self.answer(whole=True)
        self.session.cancel()
        if self.stage.state.status.activity == "lost":
            self.session.restart_engine()
        self.stage.drain()
        self.answer(whole=True)
        last = self.stage.state.trace
        redoable = 0
        while self.stage.state.can_undo:
            self.undo()
            redoable += 1
            self.check()
        for _ in range(redoable):
            self.trigger("redo")
        self.check()
        trace = self.stage.state.trace
        assert (trace and trace.chosen_ids) == (last and last.chosen_ids)


ACTS: dict[str, Callable[[Player], object]] = {
    "type": lambda p: p.session.set_prompt(p.random.choice(["hello", "another", "a cat"])),
    "chat": lambda p: p.session.set_chat(p.random.random() < 0.5),
    "mask": lambda p: p.trigger("mask"),
    "cache": lambda p: p.trigger("cache"),
    "padding": lambda p: p.session.set_padding(*p.random.choice([(None, 0), ("left", 2)])),
    "sampling": lambda p: p.session.set_sampling(Sampling(seed=p.random.randrange(9))),
    "stops": lambda p: p.session.set_stops(Stops(strings=(p.random.choice("abc"),))),
    "step": lambda p: p.trigger("step"),
    "another step": lambda p: p.trigger("step"),
    "step, to its end": lambda p: (p.trigger("step"), p.stage.drain(), p.answer(whole=True)),
    "run": lambda p: p.session.run(),
    "run or pause": lambda p: p.trigger("run"),
    "pause": lambda p: p.session.pause(),
    "cancel": lambda p: p.session.cancel(),
    "back": lambda p: p.trigger("back"),
    "forward": lambda p: p.trigger("forward"),
    "cut": lambda p: p.trigger("cut"),
    "reset": lambda p: p.trigger("reset"),
    "force": lambda p: p.session.force(p.random.randrange(10, 30)),
    "look": Player.pick,
    "compare": lambda p: p.session.compare(p.random.random() < 0.5),
    "undo": Player.undo,
    "undo again": Player.undo,
    "redo": lambda p: p.trigger("redo"),
    "switch": Player.switch,
    "rename": Player.rename,
    "open": lambda p: p.session.open_model(p.random.choice(GOOD)),
    "open a bad one": lambda p: p.session.open_model(p.random.choice(BAD)),
    "a prompt of a batch": lambda p: p.session.run_prompt("of a batch", False, None, 0),
    "lose the engine": lambda p: p.stage.say(m.Lost(sentence="The engine's process ended.")),
    "restart": lambda p: p.trigger("restart-engine"),
}


def play(stage: WindowStage, seed: int, acts: int) -> None:
    player = Player(stage, seed)
    stage.loaded()
    try:
        for _ in range(acts):
            player.act()
        player.unwind()
    except BaseException:
        print(f"seed {seed}, {len(player.acts)} acts:", *player.acts[-25:], sep="\n  ")
        raise


@pytest.mark.parametrize("seed", range(2))
def test_random_acts(stage: WindowStage, seed: int) -> None:
    play(stage, seed, 50)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_many_random_acts(qapp: QApplication, tmp_path: Path) -> None:
    for seed in range(100, 120):
        stage = WindowStage(qapp, tmp_path)
        try:
            play(stage, seed, 200)
        finally:
            stage.close()
