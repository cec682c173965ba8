"""The model that works keeps its place until another one is open."""

from __future__ import annotations

import pytest

from explorer.session.driver import CANCELLED, UNREAD, UNREAD_EARLIER
from explorer.trace.experiments import (
    CacheExperiment,
    PrefixExperiment,
    ScorePrompt,
    SearchSequences,
)
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage


def refuse(stage: Stage, sentence: str = "No such file.") -> None:
    stage.say(m.Failed(run=stage.engine.last(m.Load).run, sentence=sentence))


def test_a_model_that_cannot_be_opened_leaves_the_one_that_works(stage: Stage) -> None:
    stage.loaded().ran(2)
    trace, before, vocabulary = stage.state.trace, stage.state.card, stage.state.vocabulary
    stage.session.open_model("/models/bad.gguf")
    assert stage.state.request.model == "tiny"
    assert stage.state.card is before
    refuse(stage)
    assert stage.state.error == "No such file. tiny is still open."
    assert (stage.state.request.model, stage.state.trace) == ("tiny", trace)
    assert stage.engine.last(m.Load) == m.Load(
        run=stage.engine.last(m.Load).run, model="tiny", keep=True
    )
    stage.session.step()  # waits for the model to be there again
    stage.answer_load()
    assert stage.state.card is before
    assert stage.state.vocabulary is vocabulary
    assert stage.engine.last(m.Advance).chosen == (10, 11)
    assert stage.state.request.model == "tiny"


def test_the_new_one_takes_the_place_once_it_is_open(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("other", dtype="bfloat16")
    stage.session.set_prompt("typed meanwhile")
    stage.answer_load(name="other")
    assert (stage.state.request.model, stage.state.request.dtype) == ("other", "bfloat16")
    assert stage.state.request.prompt == "typed meanwhile"
    assert stage.state.card is not None
    assert stage.state.card.name == "other"


def test_a_cancelled_load_leaves_the_one_that_works_and_says_so(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("other")
    stage.session.cancel()
    stage.answer_load()
    assert stage.state.status.text == f"{CANCELLED['load']} tiny is still open."
    assert stage.state.request.model == "tiny"
    stage.session.step()
    assert stage.engine.last(m.Advance).request.model == "tiny"


def test_a_model_that_will_not_open_again_is_open_no_longer(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("other")
    refuse(stage)
    refuse(stage, "It was deleted.")
    assert stage.state.card is None
    assert stage.state.error == "It was deleted."
    assert stage.state.status.activity == "idle"
    assert stage.engine.count(m.Load) == 3  # and it is not asked for again and again


def test_one_after_the_other_the_first_is_fallen_back_on(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("b")
    stage.session.open_model("c")
    refuse(stage)
    assert stage.engine.last(m.Load).model == "tiny"
    stage.answer_load()
    assert stage.state.request.model == "tiny"


def test_code_of_its_own_is_asked_about_while_the_other_stays(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("own")
    load = stage.engine.last(m.Load)
    stage.say(m.Failed(run=load.run, sentence="It runs code.", own_code=("model.py",)))
    assert stage.state.code_question is not None
    assert stage.state.request.model == "tiny"
    stage.session.answer_code(True)
    assert stage.engine.last(m.Load).model == "own"
    assert stage.engine.last(m.Load).allow_code


def test_an_engine_lost_on_the_new_model_opens_the_one_that_worked(stage: Stage) -> None:
    stage.loaded()
    stage.session.open_model("huge")
    stage.say(m.Lost(sentence="gone"))
    stage.session.restart_engine()
    stage.drain()
    assert stage.engine.last(m.Load).model == "tiny"
    assert stage.state.request.model == "tiny"


def test_reopening_after_a_restart_can_be_cancelled(stage: Stage) -> None:
    stage.loaded()
    stage.say(m.Lost(sentence="gone"))
    stage.session.restart_engine()
    stage.drain()
    stage.session.cancel()
    assert stage.engine.count(m.Load) == 1
    assert stage.state.status.activity == "idle"
    stage.session.step()
    assert stage.engine.count(m.Load) == 2


@pytest.mark.parametrize("how", ["cancel", "pause", "another setting", "failed", "lost"])
def test_a_run_of_which_no_step_came_leaves_the_earlier_one(stage: Stage, how: str) -> None:
    stage.loaded().ran(3).session.select(step=1, layer=1)
    stage.session.set_prompt("a long one")
    earlier, looked_at = stage.state.trace, stage.state.selection
    stage.session.run()
    run = stage.prompted()
    assert stage.state.trace is not earlier
    match how:
        case "cancel":
            stage.session.cancel()
        case "pause":
            stage.session.pause()
        case "another setting":
            stage.session.set_cache(False)
        case "failed":
            stage.say(m.Failed(run=run, sentence="Not enough memory."))
        case "lost":
            stage.say(m.Lost(sentence="gone"))
    assert stage.state.trace is earlier
    assert stage.state.selection == looked_at
    if how not in ("failed", "lost"):
        assert stage.state.status.text == UNREAD_EARLIER


def test_a_first_run_that_is_cancelled_says_so(stage: Stage) -> None:
    stage.loaded().session.run()
    stage.prompted()
    stage.session.cancel()
    assert stage.state.trace is None
    assert stage.state.status.text == UNREAD
    assert stage.state.undo_kind == "prompt"


def test_whatever_is_cancelled_is_told(stage: Stage) -> None:
    stage.loaded().ran(2)
    for act, words in (
        (lambda: stage.session.run_self_check(), CANCELLED["check"]),
        (lambda: stage.session.measure(PrefixExperiment), PrefixExperiment.CANCELLED),
        (lambda: stage.session.measure(CacheExperiment), CacheExperiment.CANCELLED),
        (
            lambda: stage.session.measure(SearchSequences, length=4, width=4, passes=10),
            SearchSequences.CANCELLED,
        ),
        (lambda: stage.session.measure(ScorePrompt, quiet=True), ScorePrompt.CANCELLED),
        (lambda: stage.session.run(), CANCELLED["advance"]),
    ):
        act()
        stage.session.cancel()
        assert stage.state.status.activity == "idle"
        assert stage.state.status.text == words
