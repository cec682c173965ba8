"""A training run as a long job: it trains, tells what is new, and does what it is asked meanwhile.

Between two updates it looks whether it was told to pause, to go on from an earlier point, to save,
or to end.  Every so many updates it keeps a point on disk: when the engine ends, however it ends,
no more than the updates since the last point are lost.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from explorer import disk, places
from explorer.engine.callbacks import Stop
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.faults import failure
from explorer.engine.training.kept_training import About, KeptPoints, PointNews
from explorer.engine.training.training import Training
from explorer.trace.training.job import (
    AccuracyByPosition,
    Phase,
    SaveTrained,
    SteerTraining,
    Train,
    TrainingNews,
    TrainingPoint,
)
from explorer.trace.training.trained_step import TrainedStep
from explorer.trace.wire.messages import Event, Facts, PartFacts

Order = SteerTraining | SaveTrained
TELL_SECONDS = 0.2
_LOOK_SECONDS = 0.05
_POINTS = 100  # of a whole run, if it has as many updates
_MAP_BYTES = 64 << 20  # of the maps of all points: who looks at them keeps them in memory
_LARGEST_STATE = 512 << 20  # bytes; of larger models none is kept
_BYTES_A_PARAMETER = 12  # of a state: the weight and two figures of the optimiser


class TrainingJob:
    """One training, from `Train` to its end."""

    def __init__(
        self,
        request: Train,
        orders: queue.SimpleQueue[Order],
        say: Callable[[Event], None],
        stop: Stop,
    ) -> None:
        """`orders` may hold some already.  BadInput if it can't be trained or gone on with."""
        self._request, self._orders, self._say, self._stop = request, orders, say, stop
        self._kept = KeptPoints.opened(request.resume) if request.resume else None
        settings = self._kept.about.settings if self._kept else request.settings
        self._training = Training(settings)
        self._phase: Phase = "paused" if self._kept else "training"
        self._single = False  # make one update, and pause
        self._problem = ""
        self._untold: list[TrainedStep] = []
        self._unkept: list[TrainedStep] = []
        self._points: list[TrainingPoint] = []
        self._positions: list[AccuracyByPosition] = []
        self._evaluated = False  # generation was measured since the last point
        self._told_at = 0.0
        self._status: tuple[object, ...] = ()  # what was told last, but for updates and points
        self._every = 1

    def run(self) -> None:
        """Train until it is stopped; what goes wrong meanwhile is told, and it pauses."""
        self._begin()
        while not self._stop():
            self._take_orders()
            if self._phase == "training":
                self._advance()
            self._tell(at_once=self._phase != "training")
        if self._unkept:
            self._point()

    def _begin(self) -> None:
        if self._kept is None:
            if self._large:
                self._problem = (
                    "This model is too large for points of it to be kept on disk: it can't be "
                    "rewound, and is lost when the program ends. Pause it to save it."
                )
            else:
                self._keep_new()
            self._measure_every()
            self._point()
        else:
            self._measure_every(self._kept)
            self._resume(self._kept)
        self._tell(at_once=True)

    def _keep_new(self) -> None:
        try:
            about = About(settings=self._training.settings, group=self._request.group)
            self._kept = KeptPoints.made(about)
        except OSError as error:
            self._problem = _not_kept(error)

    def _resume(self, kept: KeptPoints) -> None:
        states = kept.states
        if not states:
            raise BadInput("This training has no point to go on from. Train again.")
        self._go_back(kept, states[-1])
        for news in kept.history(states[-1]):
            self._untold += news.steps
            self._points.append(news.point)
            self._positions += [news.positions] if news.positions else []
            self._tell(at_once=True)

    def _measure_every(self, kept: KeptPoints | None = None) -> None:
        """How many updates lie between two points."""
        maps = self._training.maps()
        points = max(10, min(_POINTS, _MAP_BYTES // max(maps.nbytes, 1)))
        self._every = max(1, self._training.settings.steps // points)

    @property
    def _large(self) -> bool:
        return self._training.parameters * _BYTES_A_PARAMETER > _LARGEST_STATE

    # -- training

    def _advance(self) -> None:
        steps = self._training.settings.steps
        try:
            done = self._training.advance(self._stop)
        except Cancelled:
            return
        except Exception as error:  # also a loss that is no number any more: there is a way back
            sentence = failure(self._request.run, error).sentence
            self._phase, self._single, self._problem = "paused", False, sentence
            return
        self._untold.append(done)
        self._unkept.append(done)
        if done.step >= steps:
            self._phase = "done"
        elif self._single:
            self._phase = "paused"
        self._single = False
        self._evaluated = self._evaluated or done.copy_accuracy is not None
        if self._phase != "training" or done.step % self._every == 0:
            self._point()

    def _point(self) -> None:
        """Look at the maps now, and keep all that it takes to come back here."""
        point = TrainingPoint.of(self._training.step, self._training.maps())
        self._points.append(point)
        positions = None
        if self._evaluated:
            own, forced = self._training.accuracy_by_position()
            positions = AccuracyByPosition(step=self._training.step, own=own, forced=forced)
            self._positions.append(positions)
            self._evaluated = False
        if self._kept is not None:
            news = PointNews(steps=tuple(self._unkept), point=point, positions=positions)
            try:
                self._kept.keep(news, self._training.state())
            except OSError as error:
                self._problem = _not_kept(error)
                return  # its updates belong to the next point that can be kept
            self._problem = ""
        self._unkept.clear()

    # -- orders

    def _take_orders(self) -> None:
        """Do all that was asked; while nothing is trained, wait a moment for more."""
        while True:
            try:
                if self._phase == "training":
                    order = self._orders.get_nowait()
                else:
                    order = self._orders.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                return
            self._obey(order)

    def _obey(self, order: Order) -> None:
        try:
            if isinstance(order, SaveTrained):
                if self._unkept and order.step == self._training.step:
                    self._point()
                self._say(self._saved(order))
            elif order.run == self._request.run:
                self._steer(order)
        except Exception as error:
            self._say(failure(order.run, error))

    def _saved(self, order: SaveTrained) -> Facts:
        """What stands in memory needs no point on disk."""
        if order.step != self._training.step:
            return saved(order)
        return _written(self._training, order)

    def _steer(self, order: SteerTraining) -> None:
        if order.rewind is not None and order.rewind != self._training.step:
            if self._kept is None:
                raise BadInput("No points of this training are kept, so it can't be rewound.")
            self._rewind(self._kept, order.rewind)
        if order.rate is not None:
            self._training.rate = order.rate
        self._problem = "" if self._kept else self._problem
        ended = self._training.step >= self._training.settings.steps
        if order.act == "pause" or ended:
            if self._phase == "training":
                self._phase = "paused"
                if self._unkept:
                    self._point()
        else:
            self._phase = "training"
            self._single = order.act == "one update"
        self._status = ()  # who asked waits for an answer, even if nothing has changed
        self._tell(at_once=True)

    def _rewind(self, kept: KeptPoints, step: int) -> None:
        self._go_back(kept, step)
        if self._phase == "done" and self._training.step < self._training.settings.steps:
            self._phase = "paused"
        self._untold.clear()
        self._unkept.clear()
        self._points.clear()
        self._positions.clear()
        kept.rewind(step)
        self._tell(at_once=True, rewound=step)

    def _go_back(self, kept: KeptPoints, step: int) -> None:
        self._training.restore(kept.state(step))
        if self._training.step >= self._training.settings.steps:
            self._phase = "done"

    # -- telling

    def _tell(self, at_once: bool = False, rewound: int | None = None) -> None:
        """What is new, a few times a second; `at_once` if there is anything."""
        now = time.monotonic()
        status = (self._phase, self._problem, self._training.rate)
        quiet = not self._untold and not self._points and rewound is None
        if (quiet and status == self._status) or (
            not at_once and now - self._told_at < TELL_SECONDS
        ):
            return
        training = self._training
        news = TrainingNews(
            name="" if self._kept is None else self._kept.name,
            phase=self._phase,
            settings=training.settings,
            rate=training.rate,
            parameters=training.parameters,
            labels=training.labels,
            ids=training.prompt,
            kept=() if self._kept is None else self._kept.states,
            steps=tuple(self._untold),
            points=tuple(self._points),
            positions=tuple(self._positions),
            lowest_loss=training.lowest_loss,
            rewound=rewound,
            problem=self._problem,
        )
        self._say(PartFacts(run=self._request.run, facts=msgspec.structs.asdict(news)))
        self._untold.clear()
        self._points.clear()
        self._positions.clear()
        self._told_at, self._status = now, status


def saved(request: SaveTrained) -> Facts:
    """Write a point's model as a folder, whatever is trained meanwhile; BadInput if it can't be."""
    kept = KeptPoints.opened(request.name)
    training = Training(kept.about.settings)
    training.restore(kept.state(request.step))
    return _written(training, request)


def _written(training: Training, request: SaveTrained) -> Facts:
    own = not request.folder
    folder = _own_folder(training) if own else Path(request.folder).expanduser()
    training.save(folder)
    return Facts(run=request.run, facts={"path": str(folder)})


def _own_folder(training: Training) -> Path:
    """Among the data folder's models, where the model picker finds it."""
    settings = training.settings
    task = Path(settings.task).stem
    wrong = "".join(f" {one}" for one in settings.wrong)
    name = f"{task}{wrong} {training.step}"
    root = places.trained_folder()
    folder, number = root / name, 1
    while folder.exists():
        number += 1
        folder = root / f"{name} ({number})"
    return folder


def _not_kept(error: OSError) -> str:
    return (
        f"This point could not be kept on disk ({disk.why(error)}). Training goes on; free some "
        "space to be able to rewind."
    )
