"""A training run as far as it is known: all that was told of it, put together."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Literal

from explorer.trace.training.job import (
    AccuracyByPosition,
    KeptTraining,
    TrainingNews,
    TrainingPoint,
)
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

Of = TrainedStep | TrainingPoint | AccuracyByPosition
RunPhase = Literal["starting", "training", "paused", "done", "lost"]


def _step(one: Of) -> int:
    return one.step


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """One run, from its first update to its newest."""

    settings: TrainingSettings
    phase: RunPhase = "starting"
    name: str = ""  # of what is kept of it on the engine's disk; empty: nothing is
    rate: float = 0.0
    parameters: int = 0
    labels: tuple[str, ...] = ()  # of the tokens of the fixed prompt
    ids: tuple[int, ...] = ()
    steps: tuple[TrainedStep, ...] = ()  # rising
    points: tuple[TrainingPoint, ...] = ()  # rising
    kept: tuple[int, ...] = ()  # points that it can go on from, rising
    positions: tuple[AccuracyByPosition, ...] = ()  # rising
    lowest_loss: float | None = None  # no causal model gets below; None: not known
    problem: str = ""  # one sentence

    def told(self, news: TrainingNews) -> TrainingRun:
        """With what is new."""
        steps, points, positions = self.steps, self.points, self.positions
        if news.rewound is not None:
            steps = steps[: bisect_right(steps, news.rewound, key=_step)]
            points = points[: bisect_right(points, news.rewound, key=_step)]
            positions = positions[: bisect_right(positions, news.rewound, key=_step)]
        return replace(
            self,
            settings=news.settings, phase=news.phase, name=news.name, rate=news.rate,
            parameters=news.parameters, labels=news.labels, ids=news.ids,
            steps=steps + news.steps, points=points + news.points, kept=news.kept,
            positions=positions + news.positions, lowest_loss=news.lowest_loss,
            problem=news.problem,
        )  # fmt: skip

    @property
    def step(self) -> int:
        """Updates made so far."""
        last = self.steps[-1].step if self.steps else 0
        return max(last, self.points[-1].step if self.points else 0)

    @property
    def going(self) -> bool:
        """True while it trains, or soon will."""
        return self.phase in ("starting", "training")

    def point(self, step: int | None = None) -> TrainingPoint | None:
        """The last point up to this many updates, or of all; None if there is none."""
        count = len(self.points) if step is None else bisect_right(self.points, step, key=_step)
        return self.points[count - 1] if count else None

    def by_position(self, step: int | None = None) -> AccuracyByPosition | None:
        """The last figures by position up to this many updates, or of all."""
        count = len(self.positions)
        if step is not None:
            count = bisect_right(self.positions, step, key=_step)
        return self.positions[count - 1] if count else None

    def figures(self, step: int | None = None) -> TrainedStep | None:
        """The last update up to this many, or of all."""
        count = len(self.steps) if step is None else bisect_right(self.steps, step, key=_step)
        return self.steps[count - 1] if count else None

    def evaluated(self, step: int | None = None) -> TrainedStep | None:
        """The last update up to this many after which generation was measured."""
        last = len(self.steps) if step is None else bisect_right(self.steps, step, key=_step)
        found = (one for one in reversed(self.steps[:last]) if one.copy_accuracy is not None)
        return next(found, None)

    def savable(self, at: int | None = None) -> int | None:
        """Updates after which a model can be saved, up to this many or of all; None: no model.

        What stands in the engine's memory can, once it stands still.
        """
        if self.phase in ("paused", "done") and (at is None or at >= self.step):
            return self.step
        return self.kept_before(self.step if at is None else at)

    def kept_before(self, step: int) -> int | None:
        """The last point up to this many updates that it can go on from."""
        count = bisect_right(self.kept, step)
        return self.kept[count - 1] if count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLab:
    """What the training lab shows."""

    runs: tuple[TrainingRun, ...] = ()  # one, or two beside each other
    at: int | None = None  # updates after which it is looked at; None = the newest
    kept: tuple[KeptTraining, ...] = ()  # trainings on the engine's disk, the newest first
    saving: bool = False  # a model is being written
    saved: str = ""  # the folder that it was written to last
    problem: str = ""  # why something that was asked for was not done, in one sentence

    @property
    def going(self) -> bool:
        """True while any of the runs trains."""
        return any(run.going for run in self.runs)

    @property
    def step(self) -> int:
        """Updates of the run that is furthest."""
        return max((run.step for run in self.runs), default=0)

    @property
    def earlier(self) -> tuple[KeptTraining, ...]:
        """The runs on disk that were shown last, if they are not on screen: they can go on."""
        shown = {run.name for run in self.runs}
        found = [one for one in self.kept if one.name not in shown]
        if not found:
            return ()
        group = found[0].group
        same = [one for one in found if group and one.group == group] or found[:1]
        return tuple(sorted(same, key=lambda one: one.name))
