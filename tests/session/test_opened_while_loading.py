"""What is done while a model loads: a run keeps its request, and is proven before it goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from explorer.session.driver import KEEP_CHANGING
from explorer.trace.files import dxt
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.jobs.test_replay_check import BEFORE, CHANGED
from tests.session.saving.test_trace_files import made_trace, settle
from tests.session.scripted import Stage, card, ids, made_step


def of_model(name: str, **fields: object) -> Trace:
    """A saved run of two steps of this model."""
    trace = made_trace()
    request = msgspec.structs.replace(trace.request, model=name)
    return replace(trace, request=request, card=card(name, **fields))


def opened(stage: Stage, file: Path, trace: Trace) -> None:
    dxt.save(trace, file)
    stage.session.saving.open(file)
    settle(stage)


def answer(stage: Stage, name: str = "tiny", **fields: object) -> None:
    stage.answer_load(name=name, **fields)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "run.dxt"


def drifted() -> object:
    step = made_step(1)
    return replace(step, logits=step.logits + 0.5 * (step.logits > 0))


@pytest.mark.parametrize("asked", ["tiny", "/models/tiny"])
@pytest.mark.parametrize("first", [True, False])
def test_a_run_opened_while_its_changed_model_loads_is_proven(
    stage: Stage, file: Path, asked: str, first: bool
) -> None:
    if first:
        stage.session.start_engine()
        stage.drain()
    else:
        stage.loaded()
    stage.session.open_model(asked)
    opened(stage, file, of_model("tiny", fingerprint=BEFORE))
    own = stage.state.request
    answer(stage, fingerprint=CHANGED)
    assert stage.state.request == own
    assert not stage.state.request_changed
    stage.session.step()
    if asked != "tiny":  # the run's own name may stand for other files
        answer(stage, fingerprint=CHANGED)
    assert stage.engine.count(m.Advance) == 0
    assert stage.engine.last(m.Recapture).chosen == (10,)
    stage.prove(drifted())  # type: ignore[arg-type]
    assert stage.state.drift is not None
    assert not stage.state.drift.same_files
    assert stage.engine.count(m.Advance) == 0


def test_the_same_files_under_their_path_are_the_model_of_the_run(stage: Stage, file: Path) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.open_model("/models/tiny")
    opened(stage, file, of_model("tiny", fingerprint=BEFORE))
    answer(stage, fingerprint=BEFORE)
    assert not stage.state.reopens
    loads = stage.engine.count(m.Load)
    stage.session.step()
    assert stage.engine.count(m.Load) == loads
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_the_model_of_an_opened_run_may_be_opened_by_its_path_later(
    stage: Stage, file: Path
) -> None:
    stage.loaded()
    opened(stage, file, of_model("b", fingerprint=BEFORE))
    stage.session.open_model("/models/b")
    answer(stage, "b", fingerprint=BEFORE)
    assert not stage.state.request_changed
    stage.session.step()
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_a_run_of_another_model_waits_for_its_own(stage: Stage, file: Path) -> None:
    stage.loaded().session.open_model("a")
    opened(stage, file, of_model("b"))
    answer(stage, "a")
    assert (stage.state.request.model, stage.state.reopens) == ("b", True)
    stage.session.step()
    assert stage.engine.last(m.Load).model == "b"
    answer(stage, "b")
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11)
    assert not stage.state.reopens


@pytest.mark.parametrize("how", ["refused", "cancelled", "lost"])
@pytest.mark.parametrize("first", [True, False])
def test_a_load_that_comes_to_nothing_leaves_the_run_its_request(
    stage: Stage, file: Path, how: str, first: bool
) -> None:
    if first:
        stage.session.start_engine()
        stage.drain()
    else:
        stage.loaded()
    stage.session.open_model("a")
    opened(stage, file, of_model("b"))
    own = stage.state.request
    match how:
        case "refused":
            stage.say(m.Failed(run=stage.engine.last(m.Load).run, sentence="No such file."))
        case "cancelled":
            stage.session.cancel()
        case "lost":
            stage.say(m.Lost(sentence="gone"))
            stage.session.restart_engine()
            stage.drain()
    assert stage.state.request == own
    if not first:  # the one that works is opened again, beside the run
        assert stage.engine.last(m.Load).model == "tiny"
        answer(stage)
    assert stage.state.request == own
    stage.session.step()
    assert stage.engine.last(m.Load).model == "b"


def test_undo_while_a_model_loads_brings_the_run_back_with_its_request(
    stage: Stage, file: Path
) -> None:
    stage.loaded("mine").ran(2)
    mine = stage.state.request
    opened(stage, file, of_model("b"))
    stage.session.open_model("a")
    stage.session.undo()
    answer(stage, "a")
    assert (stage.state.request, ids(stage.state)) == (mine, [10, 11])
    assert not stage.state.request_changed
    stage.session.step()
    assert stage.engine.last(m.Load).model == "tiny"


def test_undo_of_a_prompt_while_a_model_loads_leaves_the_new_model(stage: Stage) -> None:
    stage.loaded("first").session.set_prompt("second")
    stage.session.open_model("a")
    stage.session.undo()
    answer(stage, "a")
    assert (stage.state.request.model, stage.state.reopens) == ("a", False)


def test_undo_of_a_prompt_over_a_run_of_the_model_before(stage: Stage) -> None:
    stage.loaded("first").ran(1).session.set_prompt("second")
    stage.session.open_model("a")
    answer(stage, "a")
    stage.session.undo()
    assert (stage.state.request.model, stage.state.request.prompt) == ("a", "first")


def test_reset_while_a_model_loads_begins_on_that_model(stage: Stage, file: Path) -> None:
    stage.loaded().session.open_model("a")
    opened(stage, file, of_model("b"))
    own = stage.state.request
    stage.session.reset()
    answer(stage, "a")
    assert (stage.state.trace, stage.state.request.model) == (None, "a")
    assert not stage.state.reopens
    stage.session.undo()
    assert stage.state.request == own
    assert not stage.state.request_changed


def test_reset_of_a_run_of_another_model_begins_on_the_open_one(stage: Stage, file: Path) -> None:
    stage.loaded()
    opened(stage, file, of_model("b"))
    stage.session.reset()
    assert stage.state.request.model == "tiny"
    stage.session.step()
    assert stage.engine.last(m.Advance).request.model == "tiny"


def test_a_prompt_typed_over_an_opened_run_stays_with_its_model(stage: Stage, file: Path) -> None:
    stage.loaded().session.open_model("a")
    opened(stage, file, of_model("b"))
    stage.session.set_prompt("typed")
    answer(stage, "a")
    assert (stage.state.request.model, stage.state.request.prompt) == ("b", "typed")
    stage.session.step()
    assert stage.engine.last(m.Load).model == "b"


def test_a_model_opened_after_the_run_takes_its_place(stage: Stage, file: Path) -> None:
    stage.loaded().session.open_model("a")
    opened(stage, file, of_model("b"))
    stage.session.open_model("c")
    answer(stage, "c")
    assert stage.state.request.model == "c"
    assert stage.state.request_changed


def test_a_step_asked_for_while_another_model_loads_goes_on_with_the_run(
    stage: Stage, file: Path
) -> None:
    stage.loaded().session.open_model("a")
    opened(stage, file, of_model("b"))
    stage.session.step()
    answer(stage, "a")
    assert stage.engine.last(m.Load).model == "b"
    answer(stage, "b")
    stage.prove()
    assert stage.engine.last(m.Advance).chosen == (10, 11)


def test_a_recovered_run_keeps_its_request_too(stage: Stage, data_folder: Path) -> None:
    data_folder.mkdir()
    kept = data_folder / "autosave-1.dxt"
    dxt.save(of_model("tiny", fingerprint=BEFORE), kept)
    stage.loaded().session.open_model("tiny")
    stage.session.saving.open(kept, own=True)
    settle(stage)
    answer(stage, fingerprint=CHANGED)
    stage.session.step()
    stage.prove(drifted())  # type: ignore[arg-type]
    assert stage.state.drift is not None


def test_a_second_run_is_not_named_as_the_first(stage: Stage, file: Path) -> None:
    stage.loaded()
    opened(stage, file, of_model("b"))
    opened(stage, file, of_model("tiny"))
    assert stage.state.request.model == "tiny"


def test_the_prompt_of_another_models_run_is_not_split_by_the_open_one(
    stage: Stage, file: Path
) -> None:
    stage.loaded()
    asked = stage.engine.count(m.Tokenize)
    stage.say(m.Tokens(run=stage.engine.last(m.Tokenize).run, text="hello", tokens=()))
    opened(stage, file, of_model("b"))
    assert stage.engine.count(m.Tokenize) == asked
    assert stage.state.prompt_tokens == ()
    stage.session.undo()
    assert stage.engine.count(m.Tokenize) == asked + 1


def test_the_recipe_is_that_of_the_open_model(stage: Stage, file: Path) -> None:
    stage.loaded()
    opened(stage, file, of_model("b"))
    stage.session.models.describe()
    assert stage.engine.last(m.Inspect).model == "tiny"


def files_change(stage: Stage, run: int) -> None:
    stage.say(m.Failed(run=run, sentence="model.safetensors was changed.", files_changed=True))


@pytest.mark.parametrize("read", [True, False])
def test_files_that_change_before_the_first_step_of_another_prompt(
    stage: Stage, read: bool
) -> None:
    stage.loaded("mine").ran(2)
    stage.session.run_prompt("of the batch", False, None, 0)
    run = stage.prompted() if read else stage.engine.last(m.Advance).run
    files_change(stage, run)
    answer(stage, fingerprint=CHANGED)
    again = stage.engine.last(m.Advance)
    assert (again.request.prompt, again.chosen, again.run != run) == ("of the batch", (), True)
    stage.prompted()
    stage.steps(1)
    stage.finish()
    assert ids(stage.state) == [10]
    stage.session.undo()  # it is one act still
    assert (stage.state.request.prompt, ids(stage.state)) == ("mine", [10, 11])


def test_files_that_change_all_the_time_are_opened_twice_only(stage: Stage) -> None:
    stage.loaded().session.step()
    for again in range(2):
        files_change(stage, stage.prompted())
        answer(stage, fingerprint={"config": str(again)})
    loads = stage.engine.count(m.Load)
    files_change(stage, stage.prompted())
    assert stage.engine.count(m.Load) == loads
    assert stage.state.error == KEEP_CHANGING
    assert stage.state.status.activity == "idle"
    stage.session.step()  # a new wish tries again
    assert stage.engine.count(m.Load) == loads + 1
