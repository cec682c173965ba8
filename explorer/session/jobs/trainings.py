"""The training lab: each run has an engine of its own, so the run on screen goes on as before."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from explorer.session.connection.engine_link import EngineLink, Post
from explorer.session.connection.ports import Engine
from explorer.session.store import Store
from explorer.trace.experiments import UnfitAnswer, read_result
from explorer.trace.training.job import (
    Act,
    FindTrainings,
    KeptTraining,
    KeptTrainings,
    SaveTrained,
    SteerTraining,
    Train,
    TrainingNews,
)
from explorer.trace.training.run import TrainingLab, TrainingRun
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.wire import messages as m

_log = logging.getLogger(__name__)
MOST_RUNS = 2


class _Line:
    """The engine of one run."""

    def __init__(self, link: EngineLink) -> None:
        self.link = link
        self.run = 0  # number of its Train
        self.begins = False  # no news of it yet: the first take the place of what was known


class Trainings:
    """One or two runs; the state's `training` tells of them."""

    def __init__(
        self, store: Store, factory: Callable[[], Engine], post: Post, asked: EngineLink
    ) -> None:
        """`asked` is the engine that is asked what is on disk."""
        self._store, self._factory, self._post, self._asked = store, factory, post, asked
        self._lines: list[_Line] = []
        self._finding = 0  # run number of the open question; 0 = none
        self._saving: tuple[_Line, int, Callable[[str], object]] | None = None

    @property
    def _now(self) -> TrainingLab:
        return self._store.state.training

    # -- what is on disk

    def find(self) -> None:
        """Ask which trainings are on the engine's disk: `state.training.kept`."""
        if self._asked.alive and not self._finding:
            self._finding = self._asked.ask(FindTrainings())

    def answered(self, event: m.Facts | m.Failed) -> bool:
        """True if this is the answer."""
        if not self._finding or event.run != self._finding:
            return False
        self._finding = 0
        if isinstance(event, m.Facts):
            try:
                kept = read_result(event.facts, KeptTrainings).trainings
            except UnfitAnswer as error:
                _log.warning("%s", error.details)
            else:
                self._put(replace(self._now, kept=kept))
        return True

    def forget(self) -> None:
        """The engine that is asked is gone."""
        self._finding = 0

    # -- beginning and ending

    def train(self, settings: Sequence[TrainingSettings]) -> None:
        """Train these, one or two beside each other, in place of what was trained before.

        That stays on disk, as far as trainings are kept.
        """
        runs = tuple(TrainingRun(settings=one, rate=one.rate) for one in settings[:MOST_RUNS])
        self._begin(runs)

    def resume(self, kept: Sequence[KeptTraining]) -> None:
        """Put trainings that are on disk on screen, paused."""
        runs = tuple(TrainingRun(settings=one.settings, name=one.name) for one in kept[:MOST_RUNS])
        self._begin(runs)

    def _begin(self, runs: tuple[TrainingRun, ...]) -> None:
        self.end()
        self.find()  # what was shown until now is an earlier training
        group = f"{time.time_ns():x}"
        self._put(TrainingLab(runs=runs, kept=self._now.kept))
        for place, run in enumerate(runs):
            line = _Line(EngineLink(self._factory, self._post, partial(self._receive, place)))
            self._lines.append(line)
            self._start(line, run, group)

    def _start(self, line: _Line, run: TrainingRun, group: str = "") -> None:
        if self._saving is not None and self._saving[0] is line:  # by an engine that ends now
            self._saving = None
            self._put(replace(self._now, saving=False))
        line.link.start()
        line.begins = True
        share = len(self._now.runs)
        line.run = line.link.ask(
            Train(settings=run.settings, resume=run.name, group=group, share=share)
        )

    def end(self) -> None:
        """End the engines; what they learned is on disk, and nothing is shown any more."""
        for line in self._lines:
            line.link.close()
        self._lines, self._saving = [], None
        self._put(TrainingLab(kept=self._now.kept))

    def close(self) -> None:
        """The window closes."""
        for line in self._lines:
            line.link.close()

    # -- while it goes on

    def pause(self) -> None:
        """After the update under way."""
        for line, run in self._pairs():
            if run.going:
                self._steer(line, "pause")

    def go_on(self) -> None:
        """From the point that is looked at; of a run whose engine is gone, from its last one."""
        self._move("go on")

    def one_update(self) -> None:
        """Make one update, from the point that is looked at."""
        self._move("one update")

    def _move(self, act: Act) -> None:
        at = self._now.at
        self._put(replace(self._now, at=None, problem=""))
        for line, run in self._pairs():
            rewind = None if at is None or at >= run.step else run.kept_before(at)
            if run.phase == "lost":
                self._set(line, replace(run, phase="starting", problem=""))
                self._start(line, run)
            self._steer(line, act, rewind=rewind)

    def set_rate(self, rate: float) -> None:
        """Another learning rate, from the next update on."""
        for line, run in self._pairs():
            if run.phase != "lost" and rate != run.rate:
                self._steer(line, "go on" if run.going else "pause", rate)

    def _steer(
        self, line: _Line, act: Act, rate: float | None = None, rewind: int | None = None
    ) -> None:
        line.link.send(SteerTraining(run=line.run, act=act, rate=rate, rewind=rewind))

    def look_at(self, step: int | None) -> None:
        """Look at the run as it was after so many updates; None: at the newest."""
        now = self._now
        at = None if step is None or step >= now.step else max(0, step)
        if at != now.at:
            self._put(replace(now, at=at))

    def save(self, place: int, folder: str, then: Callable[[str], object] = lambda _: None) -> None:
        """Write the model that is looked at; `then` gets the folder.

        `folder` "" is one of the program's own, where the model picker finds it.
        """
        now = self._now
        line, run = self._lines[place], now.runs[place]
        step = run.savable(now.at)
        if step is None:
            words = "No point of this training is kept, so it can't be saved. Pause it first."
            self._put(replace(now, problem=words))
            return
        if not line.link.alive:  # its engine is gone, the point is not
            line.link.start()
        request = SaveTrained(name=run.name, step=step, folder=folder)
        self._saving = line, line.link.ask(request), then
        self._put(replace(now, saving=True, saved="", problem=""))

    # -- answers

    def _receive(self, place: int, event: m.Event) -> None:
        line, run = self._lines[place], self._now.runs[place]
        match event:
            case m.Lost():
                self._on_lost(line, run, event.sentence)
            case m.Facts() | m.Failed() if self._is_saving(line, event.run):
                self._on_saved(event)
            case _ if event.run != line.run:
                pass  # stale
            case m.PartFacts():
                self._on_news(line, run, event)
            case m.Failed() if run.phase == "lost":
                pass  # why it could not begin is said already
            case m.Failed() if line.begins:
                self._set(line, replace(run, phase="lost", problem=event.sentence))
            case m.Failed():
                self._put(replace(self._now, problem=event.sentence))
            case _:
                pass

    def _on_news(self, line: _Line, run: TrainingRun, event: m.PartFacts) -> None:
        try:
            news = read_result(event.facts, TrainingNews)
        except UnfitAnswer as error:
            _log.warning("%s", error.details)
            self._put(replace(self._now, problem=str(error)))
            return
        if line.begins:
            run, line.begins = TrainingRun(settings=run.settings), False
        self._set(line, run.told(news))

    def _on_lost(self, line: _Line, run: TrainingRun, sentence: str) -> None:
        saving = self._saving
        if saving is not None and saving[0] is line:
            self._saving = None
            self._put(replace(self._now, saving=False, problem=sentence))
        if run.phase == "lost":
            return
        if run.kept:
            kept = f"Everything up to update {run.kept[-1]:,} is kept. Press Continue to go on."
        elif run.name:
            kept = "What was kept of it is still on disk. Press Continue to go on."
        else:
            kept = "Nothing of this training was kept. Train again."
        self._set(line, replace(run, phase="lost", problem=f"{sentence} {kept}"))

    def _is_saving(self, line: _Line, run: int) -> bool:
        return self._saving is not None and self._saving[:2] == (line, run)

    def _on_saved(self, event: m.Facts | m.Failed) -> None:
        assert self._saving is not None
        (_, _, then), self._saving = self._saving, None
        if isinstance(event, m.Failed):
            self._put(replace(self._now, saving=False, problem=event.sentence))
            return
        path = str(event.facts.get("path", ""))
        self._put(replace(self._now, saving=False, saved=path))
        then(path)

    # -- the state

    def _pairs(self) -> list[tuple[_Line, TrainingRun]]:
        return list(zip(self._lines, self._now.runs, strict=True))

    def _set(self, line: _Line, run: TrainingRun) -> None:
        place, now = self._lines.index(line), self._now
        self._put(replace(now, runs=(*now.runs[:place], run, *now.runs[place + 1 :])))

    def _put(self, training: TrainingLab) -> None:
        self._store.set(training=training)
