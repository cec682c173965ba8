"""How a .gguf file is opened: asked for, resolved by the engine, remembered by the run."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from explorer.lessons.scene import Scene
from explorer.session.jobs.background import OTHER_TOKENS
from explorer.session.saving.scene_capture import captured
from explorer.session.scenes import ScenePlayer
from explorer.trace.batch import BatchRequest
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage, made_step


def ran_as(stage: Stage, form: str) -> Stage:
    stage.session.start_engine()
    stage.session.open_model("a.gguf", form=form)
    stage.answer_load(name="a", form=form or "float32")
    stage.session.set_prompt("abc")
    stage.session.step()
    return stage


def test_the_usual_form_is_known_by_its_name_once_the_file_is_open(stage: Stage) -> None:
    ran_as(stage, "")
    assert stage.engine.last(m.Load).form == ""
    assert stage.state.request.form == "float32"
    assert stage.engine.last(m.Advance).request.form == "float32"
    assert stage.engine.count(m.Load) == 1, "it is open"


def test_a_file_is_asked_for_as_it_is_and_stays_so(stage: Stage) -> None:
    ran_as(stage, "as-is")
    assert stage.engine.last(m.Load).form == "as-is"
    stage.session.restart_engine()
    assert stage.engine.last(m.Load).form == "as-is"
    assert captured(stage.state).form == "as-is"


def test_another_file_opens_in_its_usual_form(stage: Stage) -> None:
    ran_as(stage, "as-is").session.open_model("b.gguf")
    assert stage.engine.last(m.Load).form == ""


def test_gpu_layers_belong_to_the_run_and_to_a_file_as_it_is(stage: Stage) -> None:
    stage.session.open_model("a.gguf", form="as-is", gpu_layers=7)
    ran_as(stage, "as-is").prompted()
    assert stage.engine.last(m.Load).gpu_layers == 7
    assert stage.engine.last(m.Advance).request.gpu_layers == 7
    stage.steps(1)
    stage.finish()
    stage.session.open_model("a.gguf", form="as-is", gpu_layers=0)
    stage.answer_load(name="a", form="as-is")
    assert stage.state.request_changed
    stage.session.open_model("a.gguf", gpu_layers=7)
    stage.session.open_model("a.gguf", form="float32")
    assert stage.engine.last(m.Load).gpu_layers == 0
    stage.session.open_model("a.gguf", form="as-is", gpu_layers=7)
    stage.session.open_model("b.gguf")
    assert stage.engine.last(m.Load).gpu_layers == 0


def test_a_run_as_it_is_does_not_go_on_in_float32(stage: Stage) -> None:
    ran_as(stage, "as-is").prompted()
    stage.steps(1)
    stage.finish()
    stage.session.open_model("a.gguf", form="float32")
    stage.answer_load(name="a", form="float32")
    assert stage.state.request_changed
    trace = stage.state.trace
    assert trace is not None
    assert trace.request.form == "as-is"


def compared(stage: Stage, **changes: object) -> Stage:
    """A run in float32 whose step was run as it is, too."""
    ran_as(stage, "float32").prompted()
    stage.steps(1)
    stage.finish()
    stage.finish(run=stage.engine.last(m.CheckTrace).run)
    stage.session.compare(True, "form")
    run = stage.engine.last(m.Recapture).run
    step = replace(made_step(0), **changes)  # type: ignore[arg-type]
    stage.say(m.Stepped(run=run, step=step, token=Token(10, b"x")), m.Finished(run=run))
    return stage


def test_a_step_is_run_in_the_other_form_and_stands_beside_it(stage: Stage) -> None:
    compared(stage)
    asked = stage.engine.last(m.Recapture).request
    assert (asked.form, asked.cache, asked.causal_mask) == ("as-is", False, True)
    shown = stage.state.shown
    assert shown is not None
    assert shown.other is not None
    converted, as_it_is = shown.sides
    assert converted is shown.last_pass
    assert as_it_is is shown.other.step
    stage.session.compare(True)
    assert stage.state.comparison is None, "the other side of the mask is another one"


def test_other_tokens_in_the_other_form_are_told(stage: Stage) -> None:
    compared(stage, token_ids=(0, 1, 7))
    assert stage.state.error == OTHER_TOKENS
    assert not stage.state.comparing


def test_a_scene_that_pads_opens_the_file_in_float32(stage: Stage) -> None:
    ran_as(stage, "as-is")
    player = ScenePlayer(stage.session)
    scene = Scene(model="a.gguf", prompt="abc")
    player.play(scene)
    assert stage.engine.count(m.Load) == 1, "as it is will do"
    player.play(
        msgspec.structs.replace(scene, batch=BatchRequest(prompts=("a", "b c"), padding="left"))
    )
    assert stage.engine.last(m.Load).form == "float32"
    player.close()
