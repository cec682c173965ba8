"""Models on the disk, and the recipe of the open one: asked beside whatever else goes on."""

from __future__ import annotations

from typing import Any

from explorer.trace.wire import messages as m
from tests.session.scripted import Stage

RECIPE: dict[str, Any] = {
    "model": "tiny", "layers": 2, "hidden_size": 8, "parameters": 100,
    "parameters_rule_of_thumb": 120, "recipe": ["2 layers."], "compare": [],
}  # fmt: skip


def answer(stage: Stage, kind: type[Any], facts: dict[str, Any]) -> None:
    stage.say(m.Facts(run=stage.engine.last(kind).run, facts=facts))


def test_models_are_found_while_a_run_goes_on(stage: Stage) -> None:
    stage.loaded()
    stage.session.run()
    stage.session.models.find(add_folder="/models")
    assert stage.state.finding
    assert stage.engine.last(m.FindModels).add_folder == "/models"
    found = {"name": "a", "path": "/models/a", "memory_bytes": {"float32": 10}}
    answer(stage, m.FindModels, {"models": [found], "folders": ["/models"]})
    assert not stage.state.finding
    assert stage.state.library is not None
    assert stage.state.library.models[0].memory_bytes == {"float32": 10}
    assert stage.state.status.activity == "running"
    assert stage.engine.count(m.Cancel) == 0


def test_what_speaks_against_a_folder_is_no_error_of_the_window(stage: Stage) -> None:
    stage.loaded()
    stage.session.models.find(add_folder="/gone")
    stage.say(m.Failed(run=stage.engine.last(m.FindModels).run, sentence="There is no folder."))
    assert stage.state.library_problem == "There is no folder."
    assert stage.state.error == ""
    assert not stage.state.finding


def test_only_the_newest_list_counts(stage: Stage) -> None:
    stage.loaded()
    stage.session.models.find()
    first = stage.engine.last(m.FindModels).run
    stage.session.models.find()
    stage.say(m.Facts(run=first, facts={"models": [{"name": "old", "path": "/old"}]}))
    assert stage.state.library is None
    assert stage.state.finding


def test_a_recipe_is_asked_for_once_and_belongs_to_the_open_model(stage: Stage) -> None:
    stage.loaded()
    stage.session.models.describe()
    stage.session.models.describe()
    assert stage.engine.count(m.Inspect) == 1
    answer(stage, m.Inspect, RECIPE)
    assert stage.state.recipe is not None
    assert stage.state.recipe.recipe == ("2 layers.",)
    late = stage.engine.last(m.Inspect).run
    stage.session.open_model("other")
    stage.answer_load(name="other")
    stage.say(m.Facts(run=late, facts=RECIPE))
    assert stage.state.recipe is None


def test_an_engine_that_is_lost_leaves_nothing_waiting(stage: Stage) -> None:
    stage.loaded()
    stage.session.models.find()
    stage.say(m.Lost(sentence="gone"))
    assert not stage.state.finding
    stage.engine.alive = False
    stage.session.models.find()
    assert "not running" in stage.state.library_problem
    assert not stage.state.finding
