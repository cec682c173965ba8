"""Scenes are put in place by the session: on the real engine with the bundled model, no window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from explorer.engine.training import job
from explorer.lessons.expressions import parse
from explorer.lessons.live_figures import NAMES
from explorer.lessons.quantities import NotKnown, Quantity
from explorer.lessons.scene import (
    ExperimentWish,
    ForcedToken,
    Scene,
    SceneTraining,
    SceneView,
    read_scene,
    write_scene,
)
from explorer.session.lesson_facts import facts_of
from explorer.session.saving.scene_capture import captured
from explorer.session.scenes import CANCELLED, INTERRUPTED
from explorer.session.state import Selection
from explorer.trace.batch import BatchRequest
from explorer.trace.experiments import PrefixShift, PromptScores
from explorer.trace.files.saved_view import SavedView
from explorer.trace.request import Sampling
from explorer.trace.training.settings import TrainingSettings
from tests.engine.local_engine import LocalEngine
from tests.engine.training.stand_in import StandIn
from tests.session.playing import Playing

SCENE = Scene(model="copycat", prompt="red fish blue bird red fish", run=3, layer=1)


@pytest.fixture(scope="module")
def opened() -> Iterator[Playing]:
    playing = Playing(LocalEngine)
    assert playing.play(SCENE).finished
    yield playing
    playing.session.close()


@pytest.fixture
def playing(opened: Playing) -> Playing:
    opened.session.reset()
    return opened


def chosen(playing: Playing) -> list[str]:
    assert playing.state.trace is not None
    return [token.text for token in playing.state.trace.chosen]


def test_a_scene_is_run_and_selected(playing: Playing) -> None:
    progress = playing.play(SCENE)
    assert (progress.finished, progress.problem) == (True, "")
    assert chosen(playing) == [" blue", " bird", " red"]
    assert playing.state.selection.layer == 1


def test_undo_takes_a_scene_back_at_once(playing: Playing) -> None:
    before = playing.state.request
    playing.play(msgspec.structs.replace(SCENE, prompt="one two one two one"))
    assert playing.state.undo_kind == "scene"
    playing.session.undo()
    assert (playing.state.request, playing.state.trace) == (before, None)


def test_what_is_in_place_is_not_run_again(playing: Playing) -> None:
    playing.play(SCENE)
    trace = playing.state.trace
    assert trace is not None
    playing.play(msgspec.structs.replace(SCENE, head=2, step=0))
    assert playing.state.trace is not None
    assert playing.state.trace.steps is trace.steps
    assert (playing.state.selection.head, playing.state.selection.step) == (2, 0)


@pytest.mark.parametrize(
    "changes",
    [{"run": 2}, {"causal_mask": False}, {"sampling": Sampling(greedy=False, seed=3)}],
    ids=str,
)
def test_another_scene_is_run_anew(playing: Playing, changes: dict[str, object]) -> None:
    playing.play(SCENE)
    scene = msgspec.structs.replace(SCENE, **changes)
    assert playing.play(scene).finished
    trace = playing.state.trace
    assert trace is not None
    assert len(trace.steps) == scene.run
    assert trace.request.causal_mask is scene.causal_mask
    assert {step.sampling for step in trace.steps} == {scene.sampling}


def test_tokens_are_forced_at_their_steps(playing: Playing) -> None:
    forced = (ForcedToken(step=1, token=" red"), ForcedToken(step=2, token="fish"))
    scene = msgspec.structs.replace(SCENE, run=4, force=forced, compare=True)
    assert playing.play(scene).problem == ""
    assert chosen(playing)[:3] == [" blue", " red", " fish"]
    again = playing.state.trace
    assert playing.play(scene).finished
    assert again is not None
    assert playing.state.trace is not None
    assert playing.state.trace.steps is again.steps


def test_a_run_that_is_compared_goes_on_after_a_forced_token(playing: Playing) -> None:
    playing.play(msgspec.structs.replace(SCENE, compare=True))
    forced = (ForcedToken(step=1, token=" red"),)
    assert playing.play(msgspec.structs.replace(SCENE, run=4, force=forced)).problem == ""


def test_comparison_experiments_and_batch(playing: Playing) -> None:
    wishes = tuple(ExperimentWish(name=name) for name in ("prefix", "surprisal", "recipe"))
    batch = BatchRequest(prompts=("red fish", "a b c"), padding="right")
    scene = msgspec.structs.replace(SCENE, compare=True, experiments=wishes, batch=batch)
    assert playing.play(scene).problem == ""
    facts = facts_of(playing.state)
    assert facts.comparison is not None
    assert set(facts.results) >= {PrefixShift, PromptScores}
    assert facts.batch is not None
    assert facts.recipe is not None
    measured = playing.state.measured
    assert playing.play(scene).finished
    assert playing.state.measured is measured  # known results are not measured again


def test_what_a_scene_made_needs_no_saving_but_what_the_user_adds_does(playing: Playing) -> None:
    forced = (ForcedToken(step=1, token=" red"),)
    batch = BatchRequest(prompts=("red fish", "a b"), padding="right")
    for scene in (SCENE, msgspec.structs.replace(SCENE, force=forced, batch=batch)):
        assert playing.play(scene).finished
        assert not playing.state.unsaved
    playing.session.step()
    playing.until(lambda state: state.trace is not None and len(state.trace.steps) == 4)
    assert playing.state.unsaved
    assert playing.play(SCENE).finished  # the user's run is a branch beside it
    assert playing.state.unsaved
    playing.play(msgspec.structs.replace(SCENE, prompt="one two one"))
    assert not playing.state.unsaved


def test_the_user_s_own_run_is_not_taken_for_the_scene_s(playing: Playing) -> None:
    prompt = "one two three four one two"
    playing.session.set_prompt(prompt)
    playing.session.step(3)
    playing.until(lambda state: state.trace is not None and len(state.trace.steps) == 3)
    playing.until(lambda state: state.status.activity in ("idle", "checking"))
    playing.play(msgspec.structs.replace(SCENE, prompt=prompt))
    assert playing.state.unsaved


PROBLEMS = [
    ({"model": "no-such-model"}, "There is no model called no-such-model"),
    ({"layer": 9}, "layers 0 to 1"),
    ({"prompt": ""}, "prompt is empty"),
    ({"run": 2, "force": (ForcedToken(step=0, token="nosuchtoken"),)}, "not one token"),
    ({"run": 2, "force": (ForcedToken(step=0, token=9999),)}, "9999"),
]


@pytest.mark.parametrize(("changes", "words"), PROBLEMS, ids=[p[1] for p in PROBLEMS])
def test_why_a_scene_is_not_in_place(
    playing: Playing, changes: dict[str, object], words: str
) -> None:
    progress = playing.play(msgspec.structs.replace(SCENE, **changes))
    assert not progress.finished
    assert words in progress.problem


def test_a_scene_can_be_cancelled(playing: Playing) -> None:
    playing.player.play(msgspec.structs.replace(SCENE, run=200))
    playing.player.cancel()
    assert not playing.player.playing
    assert playing.state.scene is not None
    assert playing.state.scene.problem == CANCELLED
    assert playing.play(SCENE).finished


def test_what_the_user_does_meanwhile_ends_a_scene(playing: Playing) -> None:
    playing.player.play(msgspec.structs.replace(SCENE, run=200))
    playing.session.set_prompt("something else")
    playing.until(lambda state: not playing.player.playing)
    assert playing.state.scene is not None
    assert "Show it again" in playing.state.scene.problem


def test_what_is_on_screen_is_a_scene_again(playing: Playing) -> None:
    scene = msgspec.structs.replace(
        SCENE,
        prompt=" one two three one two",
        run=4,
        step=1,
        head=2,
        query=3,
        key=1,
        compare=True,
        force=(ForcedToken(step=1, token=465),),
        sampling=Sampling(greedy=False, temperature=2.0, seed=5),
        batch=BatchRequest(prompts=("red fish", "a b c"), padding="right"),
        experiments=(
            ExperimentWish(name="prefix"),
            ExperimentWish(name="search", length=2, width=3),
            ExperimentWish(name="samples", count=7, length=2),
            ExperimentWish(name="cache", tokens=3),
        ),
    )
    assert playing.play(scene).problem == ""
    view = SavedView(shown=("attention",), theme="dark")
    found = captured(playing.state, view, 1.5)
    wanted = msgspec.structs.replace(
        scene, view=SceneView(shown=("attention",), theme="dark", zoom=1.5)
    )
    assert found == wanted
    assert read_scene(write_scene(found), "saved.toml") == found


def test_a_scene_compared_with_the_model_as_it_is_comes_back(playing: Playing) -> None:
    scene = msgspec.structs.replace(
        SCENE, run=1, compare="interventions", interventions=("silence 1.0",)
    )
    assert playing.play(scene).problem == ""
    found = playing.state.comparison
    assert found is not None
    assert found.request.interventions == ()
    assert captured(playing.state).compare == "interventions"


def test_a_scene_of_what_is_on_screen_can_always_be_read(playing: Playing) -> None:
    playing.play(SCENE)
    trace = playing.state.trace
    assert trace is not None
    long = replace(trace, steps=trace.steps * 1000, chosen=trace.chosen * 1000)
    path = msgspec.structs.replace(trace.request, model="/home/somebody/model.gguf")
    for odd in (
        replace(playing.state, trace=long, selection=Selection(step=2500)),
        replace(playing.state, trace=None, request=path),
        replace(playing.state, trace=None, selection=Selection(step=3)),
    ):
        found = captured(odd)
        assert "/" not in found.model
        assert read_scene(write_scene(found), "saved.toml") == found


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is trained learns at once, and stays on disk for as long as the test."""
    monkeypatch.setattr(StandIn, "before", staticmethod(lambda step: None))
    monkeypatch.setattr(job, "Training", StandIn)


TRAINED = Scene(
    model="copycat", run=0, train=SceneTraining(steps=30, wrong=("mask",), beside=True, seed=4)
)


@pytest.mark.usefixtures("stand_in")
def test_a_scene_trains_and_its_figures_are_known(playing: Playing) -> None:
    assert playing.play(TRAINED).problem == ""
    runs = playing.state.training.runs
    assert [run.phase for run in runs] == ["done", "done"]
    assert [(run.settings.seed, run.settings.wrong) for run in runs] == [(4, ()), (4, ("mask",))]
    facts = facts_of(playing.state)
    values = {
        source: parse(source, NAMES).value(facts)
        for source in (
            "training_loss(2)", "right_in_generation", "trained_head_layer('answer')",
            "trained_head('before')", "lowest_loss", "trained_updates", "training_loss(3)",
        )
    }  # fmt: skip
    assert values["training_loss(2)"] == Quantity(runs[1].steps[-1].loss, "nats")
    assert values["right_in_generation"] == Quantity(1.0, "share")
    assert values["trained_head_layer('answer')"] == Quantity(1, "")
    assert values["trained_head('before')"] == Quantity(1.0, "share")
    assert values["lowest_loss"] == Quantity(0.5, "nats")
    assert values["trained_updates"] == Quantity(30, "count")
    assert isinstance(values["training_loss(3)"], NotKnown)
    playing.play(msgspec.structs.replace(TRAINED, view=SceneView(shown=("training",))))
    assert playing.state.training.runs is runs  # it was there already
    assert read_scene(write_scene(TRAINED), "scene") == TRAINED
    playing.session.trainings.end()


@pytest.mark.usefixtures("stand_in")
def test_another_training_ends_the_scene_that_waits_for_one(playing: Playing) -> None:
    playing.player.play(msgspec.structs.replace(TRAINED, train=SceneTraining(steps=5000)))
    playing.until(lambda state: bool(state.training.runs))
    playing.session.trainings.train([TrainingSettings(steps=2)])
    playing.until(lambda state: not playing.player.playing)
    assert playing.state.scene is not None
    assert playing.state.scene.problem == INTERRUPTED
    playing.session.trainings.end()
