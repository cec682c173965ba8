"""The training job: what it tells, what it does when asked, and what is left when it ends."""

from __future__ import annotations

import errno
import queue
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from explorer import places
from explorer.engine.errors import BadInput
from explorer.engine.training import job, kept_training
from explorer.trace.experiments import read_result
from explorer.trace.training.job import (
    KeptTrainings,
    SaveTrained,
    SteerTraining,
    Train,
    TrainingNews,
    TrainingPoint,
)
from explorer.trace.training.settings import TrainingSettings
from explorer.trace.wire import messages as m
from tests.engine.local_engine import LocalEngine
from tests.engine.training.stand_in import StandIn

PATIENCE = 20.0
SETTINGS = TrainingSettings(steps=40, rate=0.1, width=16, heads=2)


class Trainer:
    """An engine without a process, and what it told of trainings."""

    def __init__(self) -> None:
        self.engine = LocalEngine()
        self.events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
        self.engine.start(self.events.put)
        self.news: list[TrainingNews] = []
        self.run = 0

    def ask(self, request: m.Request) -> int:
        self.run += 1
        self.engine.send(msgspec.structs.replace(request, run=self.run))
        return self.run

    def steer(self, run: int, act: str, **more: object) -> None:
        self.engine.send(SteerTraining(run=run, act=act, **more))  # type: ignore[arg-type]

    def until(self, reached: Callable[[TrainingNews], bool]) -> TrainingNews:
        """The first news that `reached` accepts."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            assert not isinstance(event, m.Failed | m.Finished), event
            if isinstance(event, m.PartFacts):
                self.news.append(read_result(event.facts, TrainingNews))
                if reached(self.news[-1]):
                    return self.news[-1]

    def answer(self, run: int) -> m.Event:
        """The last word on a request; news that come before it are read."""
        while True:
            event = self.events.get(timeout=PATIENCE)
            if isinstance(event, m.PartFacts):
                self.news.append(read_result(event.facts, TrainingNews))
            elif event.run == run and isinstance(event, m.ENDS):
                return event

    @property
    def losses(self) -> dict[int, float]:
        """By step; what was told later holds."""
        found: dict[int, float] = {}
        for news in self.news:
            if news.rewound is not None:
                found = {step: loss for step, loss in found.items() if step <= news.rewound}
            found |= {one.step: one.loss for one in news.steps}
        return found

    @property
    def points(self) -> dict[int, TrainingPoint]:
        return {point.step: point for news in self.news for point in news.points}

    def close(self) -> None:
        self.engine.close()


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECODER_EXPLORER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(job, "Training", StandIn)
    monkeypatch.setattr(job, "TELL_SECONDS", 0.0)


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    trainer = Trainer()
    yield trainer
    trainer.close()


def alone(settings: TrainingSettings, steps: int) -> list[float]:
    """The losses of a training that nobody looked at."""
    training = StandIn(settings)
    return [training.advance().loss for _ in range(steps)]


def done(news: TrainingNews) -> bool:
    return news.phase == "done"


def at(step: int) -> Callable[[TrainingNews], bool]:
    return lambda news: any(one.step == step for one in news.steps)


def pausing_at(monkeypatch: pytest.MonkeyPatch, trainer: Trainer, step: int) -> None:
    """Ask for a pause ahead of the update after `step`: it is obeyed once that is done."""

    def before(now: int) -> None:
        if now == step - 1:
            trainer.steer(trainer.run, "pause")

    monkeypatch.setattr(StandIn, "before", staticmethod(before))


def test_every_update_is_told_and_points_have_the_maps(trainer: Trainer) -> None:
    trainer.ask(Train(settings=SETTINGS))
    last = trainer.until(done)
    assert list(trainer.losses.values()) == alone(SETTINGS, 40)
    assert list(trainer.losses) == list(range(1, 41))
    assert set(trainer.points) == set(range(41))  # 40 updates: a point at each
    assert trainer.points[0].maps[0, 0, 5, 4] == pytest.approx(1 / 6)
    assert trainer.points[40].maps[0, 0, 5, 4] == 1
    assert last.kept == tuple(range(41))


def test_pause_one_update_and_another_rate(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pausing_at(monkeypatch, trainer, 7)
    run = trainer.ask(Train(settings=SETTINGS))
    trainer.until(lambda news: news.phase == "paused")
    assert max(trainer.losses) == 7
    trainer.steer(run, "one update")
    trainer.until(lambda news: news.phase == "paused" and at(8)(news))
    assert max(trainer.losses) == 8
    trainer.steer(run, "one update", rate=1e-9)
    news = trainer.until(lambda news: news.phase == "paused" and at(9)(news))
    assert news.rate == 1e-9
    assert trainer.losses[9] == pytest.approx(trainer.losses[8], rel=1e-8)
    assert trainer.losses[8] < 0.999 * trainer.losses[7]


def test_rewinding_gives_the_same_updates_again(trainer: Trainer) -> None:
    run = trainer.ask(Train(settings=SETTINGS))
    trainer.until(done)
    first = trainer.losses
    trainer.steer(run, "one update", rewind=20)
    news = trainer.until(lambda news: news.rewound == 20)
    assert news.kept == tuple(range(21))
    trainer.until(at(21))
    assert trainer.losses == {step: loss for step, loss in first.items() if step <= 21}
    trainer.steer(run, "go on")
    trainer.until(done)
    assert trainer.losses == first


def test_a_point_that_is_not_kept_is_a_sentence_and_the_training_stays(trainer: Trainer) -> None:
    run = trainer.ask(Train(settings=SETTINGS))
    trainer.until(done)
    (folder,) = (places.data_folder() / "training").iterdir()
    (folder / "00000020.state").unlink()
    trainer.steer(run, "go on", rewind=20)
    event = trainer.answer(run)
    assert isinstance(event, m.Failed)
    assert "20 updates" in event.sentence
    trainer.steer(run, "pause")  # nothing changes, and that is answered
    assert trainer.until(lambda news: True).phase == "done"
    trainer.steer(run, "go on", rewind=39)
    trainer.until(done)


def test_states_stay_within_their_bytes(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "state_bytes", 1000)
    monkeypatch.setattr(kept_training.KeptPoints.__init__, "__defaults__", (10_500,))
    trainer.ask(Train(settings=SETTINGS))
    last = trainer.until(done)
    assert len(last.kept) == 10
    assert {last.kept[0], last.kept[-1]} == {0, 40}
    assert max(np.diff(last.kept)) <= 10  # spread over all of it
    (folder,) = (places.data_folder() / "training").iterdir()
    assert sum(file.stat().st_size for file in folder.glob("*.state")) <= 10_500
    assert len(list(folder.glob("*.news"))) == 41  # what was seen is all there


def test_after_the_engine_is_gone_all_but_the_updates_since_the_last_point_is_there(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a killed engine leaves it: a copy of the folder while it trains."""
    settings = msgspec.structs.replace(SETTINGS, steps=400)  # a point at every fourth update
    root = places.data_folder() / "training"

    def before(step: int) -> None:
        if step == 30:
            shutil.copytree(root, root.parent / "copy")

    monkeypatch.setattr(StandIn, "before", staticmethod(before))
    trainer.ask(Train(settings=settings, group="g"))
    trainer.until(at(40))
    trainer.close()
    shutil.rmtree(root)
    (root.parent / "copy").rename(root)

    monkeypatch.setattr(StandIn, "before", staticmethod(lambda step: None))
    again = Trainer()
    run = again.ask(m.FindTrainings())
    event = again.answer(run)
    assert isinstance(event, m.Facts)
    (found,) = read_result(event.facts, KeptTrainings).trainings
    assert (found.step, found.group, found.settings) == (28, "g", settings)
    run = again.ask(Train(resume=found.name))
    again.until(at(28))
    assert again.news[-1].phase == "paused"
    assert again.news[-1].settings == settings
    assert set(again.points) == {*range(0, 29, 4)}
    again.steer(run, "go on")
    again.until(at(60))
    assert list(again.losses.values())[:60] == alone(settings, 60)
    again.close()


def test_a_training_that_is_ended_keeps_its_last_update(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = msgspec.structs.replace(SETTINGS, steps=100_000)  # a point at every thousandth

    def before(step: int) -> None:
        if step == 50:
            trainer.engine.send(m.Cancel(run=trainer.run))

    monkeypatch.setattr(StandIn, "before", staticmethod(before))
    run = trainer.ask(Train(settings=settings))
    assert isinstance(trainer.answer(run), m.Finished)
    (kept,) = kept_training.find().trainings
    assert kept.step == 50


def test_a_full_disk_is_told_and_nothing_else_is_lost(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = kept_training.disk.write

    def full(path: Path, data: bytes) -> None:
        if "00000010" <= path.stem < "00000020":
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, data)

    monkeypatch.setattr(kept_training.disk, "write", full)
    trainer.ask(Train(settings=SETTINGS))
    last = trainer.until(done)
    told = [news.problem for news in trainer.news]
    assert any("No space left on device" in problem for problem in told)
    assert last.problem == ""  # there was room again
    assert list(trainer.losses) == list(range(1, 41))
    assert last.kept == (*range(10), *range(20, 41))
    kept = kept_training.KeptPoints.opened(last.name)
    assert [one.step for news in kept.history(40) for one in news.steps] == list(range(1, 41))


def test_the_model_of_a_point_is_saved_while_it_trains(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pausing_at(monkeypatch, trainer, 7)
    run = trainer.ask(Train(settings=SETTINGS))
    name = trainer.until(lambda news: news.phase == "paused").name
    saved = trainer.answer(trainer.ask(SaveTrained(name=name, step=5, folder=str(tmp_path / "a"))))
    assert isinstance(saved, m.Facts)
    assert saved.facts == {"path": str(tmp_path / "a")}
    walk = alone(SETTINGS, 5)[-1]
    assert msgspec.json.decode((tmp_path / "a" / "model.json").read_bytes()) == [5, walk]
    refused = trainer.answer(
        trainer.ask(SaveTrained(name=name, step=5, folder=str(tmp_path / "a")))
    )
    assert isinstance(refused, m.Failed)
    own = [trainer.answer(trainer.ask(SaveTrained(name=name, step=7))) for _ in range(2)]
    paths = {Path(str(one.facts["path"])) for one in own if isinstance(one, m.Facts)}
    assert {path.name for path in paths} == {"copy 7", "copy 7 (2)"}
    assert {path.parent for path in paths} == {places.trained_folder()}
    trainer.engine.send(m.Cancel(run=run))
    trainer.answer(run)
    late = trainer.answer(
        trainer.ask(SaveTrained(name=name, step=7, folder=str(tmp_path / "late")))
    )
    assert isinstance(late, m.Facts)


def test_settings_that_can_t_be_trained_are_one_sentence(trainer: Trainer) -> None:
    run = trainer.ask(Train(settings=msgspec.structs.replace(SETTINGS, heads=3)))
    event = trainer.answer(run)
    assert isinstance(event, m.Failed)
    assert event.sentence == "The width must be a multiple of the heads."
    run = trainer.ask(Train(resume="../somewhere"))
    event = trainer.answer(run)
    assert isinstance(event, m.Failed)
    assert event.sentence.startswith("This training is no longer on disk.")
    assert kept_training.find().trainings == ()


@pytest.mark.parametrize("error", [BadInput("The loss is no number."), RuntimeError("broken")])
def test_an_update_that_fails_pauses_the_training(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def before(step: int) -> None:
        if step == 7:
            raise error

    monkeypatch.setattr(StandIn, "before", staticmethod(before))
    run = trainer.ask(Train(settings=SETTINGS))
    news = trainer.until(lambda news: news.phase == "paused")
    assert str(error) in news.problem
    assert list(trainer.losses) == list(range(1, 8))
    monkeypatch.setattr(StandIn, "before", staticmethod(lambda step: None))
    trainer.steer(run, "go on", rewind=5)
    assert trainer.until(done).problem == ""
    assert list(trainer.losses.values()) == alone(SETTINGS, 40)


def test_of_a_model_that_is_too_large_no_point_is_kept(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(job, "_LARGEST_STATE", 1000)
    trainer.ask(Train(settings=SETTINGS))
    last = trainer.until(done)
    assert last.problem.startswith("This model is too large for points of it to be kept")
    assert (last.kept, last.name) == ((), "")
    assert len(trainer.points) == 41  # its maps are drawn all the same
    assert not (places.data_folder() / "training").exists()
    walk = alone(SETTINGS, 40)[-1]
    for folder in ("", str(tmp_path / "mine")):  # it stands in memory
        saved = trainer.answer(trainer.ask(SaveTrained(name="", step=40, folder=folder)))
        assert isinstance(saved, m.Facts)
        path = Path(str(saved.facts["path"]))
        assert path == (Path(folder) if folder else places.trained_folder() / "copy 40")
        assert msgspec.json.decode((path / "model.json").read_bytes()) == [40, walk]


def test_the_oldest_trainings_make_room(trainer: Trainer) -> None:
    settings = msgspec.structs.replace(SETTINGS, steps=1)
    for seed in range(kept_training.MOST_TRAININGS + 2):
        run = trainer.ask(Train(settings=msgspec.structs.replace(settings, seed=seed)))
        trainer.until(done)
        trainer.engine.send(m.Cancel(run=run))
        trainer.answer(run)
    seeds = [one.settings.seed for one in kept_training.find().trainings]
    assert seeds == list(range(kept_training.MOST_TRAININGS + 1, 1, -1))
