"""The training lab's runs: each has an engine of its own, and what it told is in the state."""

from __future__ import annotations

import msgspec

from explorer.lessons.scene import Scene, SceneTraining
from explorer.session.scenes import ScenePlayer
from explorer.trace.training.job import (
    FindTrainings,
    KeptTraining,
    KeptTrainings,
    SaveTrained,
    SteerTraining,
    Train,
)
from explorer.trace.training.run import TrainingLab
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage
from tests.session.trained import SETTINGS, ToldTraining

WRONG = msgspec.structs.replace(SETTINGS, wrong=("mask",))


def lab(stage: Stage) -> TrainingLab:
    return stage.state.training


def trained(stage: Stage, *steps: int) -> ToldTraining:
    """A run that told of so many updates at a time."""
    stage.session.trainings.train([SETTINGS])
    told = ToldTraining(stage.engine)
    for count in (0, *steps):
        told.tell(count)
    stage.drain()
    return told


def test_a_training_has_an_engine_of_its_own_and_leaves_the_run_alone(stage: Stage) -> None:
    stage.loaded().ran(2)
    trace, status, model = stage.state.trace, stage.state.status, stage.engine
    trained(stage, 5, 5)
    assert len(stage.engines) == 2
    assert stage.engine is not model
    assert (stage.state.trace, stage.state.status) == (trace, status)
    (run,) = lab(stage).runs
    assert [one.step for one in run.steps] == list(range(1, 11))
    assert [one.step for one in run.points] == [0, 5, 10]
    assert run.phase == "training"
    stage.session.cancel()
    assert stage.engine.count(m.Cancel) == 0
    assert stage.engine.alive


def test_what_is_looked_at_is_gone_on_from(stage: Stage) -> None:
    told = trained(stage, 10, 10)
    trainings = stage.session.trainings
    trainings.look_at(14)
    assert lab(stage).at == 14
    assert lab(stage).runs[0].point(14).step == 10  # type: ignore[union-attr]
    trainings.one_update()
    assert told.engine.last(SteerTraining) == SteerTraining(
        run=told.asked.run, act="one update", rewind=10
    )
    assert lab(stage).at is None
    told.training.restore(b"[10, 1.0, 0.1]")
    told.kept = (0,)
    told.tell(1, rewound=10, points=())
    stage.drain()
    assert [one.step for one in lab(stage).runs[0].steps] == list(range(1, 12))
    assert [one.step for one in lab(stage).runs[0].points] == [0, 10]
    trainings.go_on()
    assert told.engine.last(SteerTraining).rewind is None


def test_a_new_rate_leaves_a_paused_run_paused(stage: Stage) -> None:
    told = trained(stage, 10)
    stage.session.trainings.set_rate(0.5)
    assert told.engine.last(SteerTraining) == SteerTraining(
        run=told.asked.run, act="go on", rate=0.5
    )
    told.tell(1, phase="paused")
    stage.drain()
    stage.session.trainings.set_rate(0.25)
    assert told.engine.last(SteerTraining).act == "pause"


def test_after_a_lost_engine_it_goes_on_from_the_last_point(stage: Stage) -> None:
    told = trained(stage, 10)
    stage.say(m.Lost(sentence="The engine stopped unexpectedly."))
    (run,) = lab(stage).runs
    assert run.phase == "lost"
    assert "up to update 10 is kept" in run.problem
    assert [one.step for one in run.steps] == list(range(1, 11))  # still on screen
    stage.session.trainings.go_on()
    assert stage.engine is not told.engine
    assert stage.engine.last(Train).resume == "one"
    assert stage.engine.last(SteerTraining).act == "go on"
    again = ToldTraining(stage.engine)
    again.tell(12)
    stage.drain()
    (run,) = lab(stage).runs
    assert [one.step for one in run.steps] == list(range(1, 13))
    assert run.problem == ""


def test_a_training_that_cannot_begin_says_why(stage: Stage) -> None:
    stage.session.trainings.train([SETTINGS])
    run = stage.engine.last(Train).run
    stage.say(m.Failed(run=run, sentence="There is no file /a. Choose another."))
    assert lab(stage).runs[0].problem == "There is no file /a. Choose another."
    assert not lab(stage).going


def test_two_runs_beside_each_other_are_steered_together(stage: Stage) -> None:
    stage.session.trainings.train([SETTINGS, WRONG])
    right, wrong = map(ToldTraining, stage.engines)
    assert (right.asked.settings, wrong.asked.settings) == (SETTINGS, WRONG)
    assert right.asked.group == wrong.asked.group != ""
    assert right.asked.share == 2
    wrong.tell(10)
    right.tell(4)
    stage.drain()
    assert [run.step for run in lab(stage).runs] == [4, 10]
    stage.session.trainings.pause()
    assert [told.engine.last(SteerTraining).act for told in (right, wrong)] == ["pause"] * 2
    stage.session.trainings.look_at(6)
    stage.session.trainings.go_on()
    assert right.engine.last(SteerTraining).rewind is None  # it is not there yet
    assert wrong.engine.last(SteerTraining).rewind is None or wrong.kept == (10,)


def test_a_point_is_saved_as_a_folder(stage: Stage) -> None:
    told = trained(stage, 10, 10)
    stage.session.trainings.look_at(10)
    paths: list[str] = []
    stage.session.trainings.save(0, "", paths.append)
    asked = told.engine.last(SaveTrained)
    assert (asked.name, asked.step, asked.folder) == ("one", 10, "")
    assert lab(stage).saving
    stage.say(m.Facts(run=asked.run, facts={"path": "/trained/copy 10"}))
    assert paths == [lab(stage).saved] == ["/trained/copy 10"]
    stage.session.trainings.save(0, "/full")
    asked = told.engine.last(SaveTrained)
    stage.say(m.Failed(run=asked.run, sentence="The disk is full."))
    assert (lab(stage).saving, lab(stage).problem) == (False, "The disk is full.")


def test_of_what_is_not_kept_on_disk_the_paused_model_is_saved(stage: Stage) -> None:
    stage.session.trainings.train([SETTINGS])
    told = ToldTraining(stage.engine, name="")
    told.tell(10, kept=())
    stage.drain()
    stage.session.trainings.save(0, "/folder")
    assert told.engine.count(SaveTrained) == 0
    assert lab(stage).problem.endswith("Pause it first.")
    told.tell(1, kept=(), phase="paused")
    stage.drain()
    stage.session.trainings.look_at(5)
    stage.session.trainings.save(0, "/folder")
    assert told.engine.count(SaveTrained) == 0
    stage.session.trainings.look_at(None)
    stage.session.trainings.save(0, "/folder")
    asked = told.engine.last(SaveTrained)
    assert (asked.name, asked.step, asked.folder) == ("", 11, "/folder")


def test_trainings_on_disk_are_offered_and_resumed(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.trainings.find()
    found = [
        KeptTraining(name=name, group=group, settings=settings, step=30, at=1.0)
        for name, group, settings in (("3", "b", WRONG), ("2", "b", SETTINGS), ("1", "a", SETTINGS))
    ]
    facts = msgspec.structs.asdict(KeptTrainings(trainings=tuple(found)))
    stage.say(m.Facts(run=stage.engine.last(FindTrainings).run, facts=facts))
    assert [one.name for one in lab(stage).earlier] == ["2", "3"]
    stage.session.trainings.resume(lab(stage).earlier)
    assert [engine.last(Train).resume for engine in stage.engines[1:]] == ["2", "3"]
    told = ToldTraining(stage.engines[1], "2")
    told.tell(30, phase="paused")
    stage.drain()
    assert lab(stage).runs[0].phase == "paused"
    assert [one.name for one in lab(stage).earlier] == ["1"]


def test_a_kept_training_whose_engine_does_not_start_can_go_on(stage: Stage) -> None:
    kept = KeptTraining(name="1", group="", settings=SETTINGS, step=30, at=1.0)
    stage.session.trainings.resume([kept])
    stage.say(m.Lost(sentence="The engine stopped unexpectedly."))
    (run,) = lab(stage).runs
    assert "still on disk. Press Continue" in run.problem
    stage.session.trainings.go_on()
    assert stage.engine.last(Train).resume == "1"
    asked = stage.engine.last(Train).run
    stage.say(  # to the training, and to the wish to go on
        m.Failed(run=asked, sentence="This training is no longer on disk."),
        m.Failed(run=asked, sentence="This training has ended."),
    )
    (run,) = lab(stage).runs
    assert (run.phase, run.problem) == ("lost", "This training is no longer on disk.")


def test_going_on_ends_a_save_by_the_engine_that_goes(stage: Stage) -> None:
    trained(stage, 10)
    stage.say(m.Lost(sentence="The engine stopped unexpectedly."))
    stage.session.trainings.save(0, "/folder")
    assert lab(stage).saving
    stage.session.trainings.go_on()
    assert not lab(stage).saving


def test_a_page_that_needs_the_training_under_way_does_not_begin_it_again(stage: Stage) -> None:
    stage.loaded()
    player = ScenePlayer(stage.session)
    first, second = (
        Scene(model="tiny", prompt="hello", run=0, layer=layer, train=SceneTraining(steps=40))
        for layer in (0, 1)
    )
    player.play(first)
    told = ToldTraining(stage.engine)
    told.tell(10)
    stage.drain()
    player.play(second)
    player.cancel()
    assert stage.engine.last(SteerTraining).act == "pause"
    told.tell(1, phase="paused")
    stage.drain()
    player.play(second)
    assert told.engine.count(Train) == 1
    assert stage.engine is told.engine
    assert stage.engine.last(SteerTraining).act == "go on"
    told.tell(29, phase="done")
    stage.drain()
    assert stage.state.scene is not None
    assert stage.state.scene.finished
    player.close()


def test_a_scene_that_is_cancelled_leaves_the_user_s_training_alone(stage: Stage) -> None:
    stage.loaded()
    told = trained(stage, 10)
    player = ScenePlayer(stage.session)
    player.play(Scene(model="tiny", prompt="hello", run=3))
    assert player.playing
    player.cancel()
    assert told.engine.count(SteerTraining) == 0
    player.close()


def test_what_an_engine_of_before_says_is_stale(stage: Stage) -> None:
    before = trained(stage, 10)
    stage.session.trainings.train([WRONG])
    assert not before.engine.alive
    before.tell(5)
    stage.drain()
    assert lab(stage).runs[0].steps == ()
    after = stage.engine
    stage.close()
    assert not after.alive
