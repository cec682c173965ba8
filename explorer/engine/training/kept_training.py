"""Trainings on disk: the points of a run, from which it goes on after anything went wrong.

A folder of the data folder holds the last trainings, each in a folder of its own: its settings,
and for each point a file of what is told of it (`.news`) and, within a budget of bytes, one of all
that the next update depends on (`.state`).
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from explorer import disk, places
from explorer.engine import kept_json
from explorer.engine.errors import BadInput
from explorer.trace.training.job import (
    AccuracyByPosition,
    KeptTraining,
    KeptTrainings,
    TrainingPoint,
)
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.training.trained_step import TrainedStep

MOST_BYTES = 64 << 20  # of the states of one training; the first and the last are always kept
MOST_TRAININGS = 8  # the newest: two runs beside each other are two of them
_MOST_NEWS_BYTES = 64 << 20
_ABOUT = "training.json"
_MISSING = "This training is no longer on disk. Train again."


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a training's folder is of."""

    settings: TrainingSettings
    group: str = ""


class PointNews(msgspec.Struct, frozen=True, kw_only=True):
    """A point, and the updates since the one before."""

    steps: tuple[TrainedStep, ...]
    point: TrainingPoint
    positions: AccuracyByPosition | None = None


class KeptPoints:
    """The folder of one training.  Every method but `made` and `opened` may raise OSError."""

    def __init__(self, folder: Path, about: About, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self.about = about

    @classmethod
    def made(cls, about: About) -> KeptPoints:
        """A new folder; the oldest trainings make room for it.  OSError if there can be none."""
        root = _root()
        root.mkdir(parents=True, exist_ok=True)
        while True:
            now = time.time_ns()
            second = time.strftime("%Y-%m-%d %H.%M.%S", time.localtime(now // 10**9))
            folder = root / f"{second}.{now // 1000 % 10**6:06d}"  # in the order of their names
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                break
        kept_json.write(folder / _ABOUT, about)
        for old in sorted(_folders(), reverse=True)[MOST_TRAININGS:]:
            shutil.rmtree(old, ignore_errors=True)
        return cls(folder, about)

    @classmethod
    def opened(cls, name: str) -> KeptPoints:
        """An earlier one; BadInput if it is not there."""
        folder = _root() / name
        about = kept_json.read(folder / _ABOUT, About) if Path(name).name == name else None
        if about is None:
            raise BadInput(_MISSING)
        return cls(folder, about)

    @property
    def name(self) -> str:
        return self._folder.name

    def keep(self, news: PointNews, state: bytes) -> None:
        """Add a point; OSError if the disk takes no more, and what was kept before is still there.

        Where the states grow beyond the budget, the one that leaves the smallest gap goes.
        """
        step = news.point.step
        disk.write(self._file(step, "state"), state)
        disk.write(self._file(step, "news"), msgspec.msgpack.encode(news))
        states = self.states
        room = sum(self._file(one, "state").stat().st_size for one in states)
        while room > self._most_bytes and len(states) > 2:
            gaps = [(after - before, at) for before, at, after in _triples(states)]
            _, gone = min(gaps)
            file = self._file(gone, "state")
            room -= file.stat().st_size
            file.unlink()
            states = tuple(one for one in states if one != gone)

    def rewind(self, step: int) -> None:
        """Forget every point after this one."""
        for kind in ("state", "news"):
            for one in self._steps(kind):
                if one > step:
                    self._file(one, kind).unlink(missing_ok=True)

    @property
    def states(self) -> tuple[int, ...]:
        """The points that can be gone on from, rising."""
        told = set(self._steps("news"))
        return tuple(step for step in self._steps("state") if step in told)

    def state(self, step: int) -> bytes:
        """All that the update after a point depends on; BadInput if it is not kept."""
        try:
            with disk.opened(self._file(step, "state")) as stream:
                return stream.read()
        except OSError as error:
            raise BadInput(f"The point after {step:,} updates is no longer on disk.") from error

    def history(self, last: int) -> Iterator[PointNews]:
        """What was told up to a point, in order; what is damaged is left out."""
        for step in self._steps("news"):
            if step <= last and (news := self._news(step)) is not None:
                yield news

    def _news(self, step: int) -> PointNews | None:
        try:
            with disk.opened(self._file(step, "news")) as stream:
                return msgspec.msgpack.decode(stream.read(_MOST_NEWS_BYTES), type=PointNews)
        except (OSError, ValueError, RecursionError):
            return None

    def _steps(self, kind: str) -> list[int]:
        names = (file.stem for file in self._folder.glob(f"*.{kind}"))
        return sorted(int(name) for name in names if name.isdigit())

    def _file(self, step: int, kind: str) -> Path:
        return self._folder / f"{step:08d}.{kind}"


def find() -> KeptTrainings:
    """The trainings on disk that have a point to go on from, the newest first."""
    found = []
    for folder in sorted(_folders(), reverse=True):
        about = kept_json.read(folder / _ABOUT, About)
        states = () if about is None else KeptPoints(folder, about).states
        if about is not None and states:
            with contextlib.suppress(OSError):
                at = (folder / f"{states[-1]:08d}.state").stat().st_mtime
                found.append(
                    KeptTraining(
                        name=folder.name,
                        group=about.group,
                        settings=about.settings,
                        step=states[-1],
                        at=at,
                    )
                )
    return KeptTrainings(trainings=tuple(found))


def _root() -> Path:
    return places.data_folder() / "training"


def _folders() -> list[Path]:
    root = _root()
    return [folder for folder in root.iterdir() if folder.is_dir()] if root.is_dir() else []


def _triples(steps: tuple[int, ...]) -> Iterator[tuple[int, int, int]]:
    return zip(steps, steps[1:], steps[2:], strict=False)
