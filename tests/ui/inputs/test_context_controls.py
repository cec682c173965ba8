"""The context policy among the settings, its meter, and what is marked as forgotten."""

from __future__ import annotations

import pytest

from explorer.trace.card import Capability
from explorer.trace.chat import ChatTurn, Message
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy, PolicyName
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from explorer.ui.panel.intervention_words import policy_words
from tests.ui.stage import WindowStage


def choose(stage: WindowStage, name: str) -> None:
    box = stage.window.context.policy
    box.setCurrentIndex(box.findData(name))
    box.activated.emit(box.currentIndex())
    stage.paint()


@pytest.mark.parametrize("name", ["refuse", "drop-turns", "window", "sinks"])
def test_a_policy_is_told_with_its_number(name: PolicyName) -> None:
    sinks = 4 if name == "sinks" else 0
    said = policy_words(ContextPolicy(name=name, tokens=1504, sinks=sinks))
    assert ("1,500" if sinks else "1,504") in said


def test_a_policy_is_chosen_with_its_numbers_and_undone(stage: WindowStage) -> None:
    stage.loaded("The cat")
    controls = stage.window.context
    assert stage.state.request.context == USUAL
    assert not controls.tokens.isVisible()
    assert not controls.sinks.isVisible()
    choose(stage, "sinks")
    assert stage.state.request.context == ContextPolicy(name="sinks", tokens=128, sinks=4)
    assert controls.sinks.isVisible()
    controls.tokens.setValue(2)  # there is always room for the newest token
    assert stage.state.request.context.tokens == 5
    controls.sinks.setValue(9)
    assert stage.state.request.context.sinks == 4
    choose(stage, "window")
    assert stage.state.request.context == ContextPolicy(name="window", tokens=5)
    choose(stage, "drop-turns")
    assert stage.state.request.context == ContextPolicy(name="drop-turns")
    assert controls.tokens.text() == "the model's"
    choose(stage, "limit")
    assert stage.state.request.context == ContextPolicy(tokens=512)
    assert controls.tokens.isVisible()
    while stage.state.undo_kind == "context":
        stage.session.undo()
    assert stage.state.request.context == USUAL


def test_a_run_under_another_policy_says_so(stage: WindowStage) -> None:
    stage.loaded().ran(2)
    stage.session.set_context(ContextPolicy(name="window", tokens=3))
    assert "another context policy" in stage.window.notices.stale.text


@pytest.mark.parametrize("limit", [0, 12])
def test_the_meter_shows_the_run_and_warns_near_the_limit(stage: WindowStage, limit: int) -> None:
    stage.session.set_context(ContextPolicy(tokens=limit))
    stage.loaded().ran(2)
    meter, whole = stage.window.status.context, limit or 64
    assert meter.text == f"4 of {whole}"
    assert not meter.warns
    assert meter.accessibleName().startswith(f"Context: 4 of {whole} tokens. ")
    if limit:
        stage.ran(7)
        assert meter.warns
        assert "11 of 12 tokens, nearly full" in meter.accessibleName()
        stage.ran(1)
        assert "12 of 12 tokens, full" in meter.accessibleName()


def test_what_is_forgotten_is_marked_on_the_strip(stage: WindowStage) -> None:
    stage.session.set_context(ContextPolicy(name="sinks", tokens=3, sinks=1))
    stage.loaded().ran(4)  # 3 tokens of the prompt, 3 of the answer read
    strip, legend = stage.window.sequence.strip, stage.window.sequence.legend
    gone = [slot for slot in range(7) if "forgotten" in strip.words(slot)]
    assert gone == [1, 2, 3]
    assert "forgotten" in legend.words
    assert stage.window.status.context.text == "6 of 64 · 3 in reach"
    stage.session.select(step=0)
    stage.paint()
    assert [slot for slot in range(7) if "forgotten" in strip.words(slot)] == []
    assert "forgotten" not in legend.words


def test_turns_that_do_not_fit_are_marked_in_the_list(stage: WindowStage) -> None:
    stage.loaded("The cat")
    stage.session.set_chat(True)
    talk = tuple(Message(role, "x") for role in ("user", "assistant", "user"))
    stage.session.set_messages(talk)
    stage.session.set_context(ContextPolicy(name="drop-turns", tokens=4))
    while (asked := stage.engine.last(m.Tokenize)).request != stage.state.request:
        stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=()))
    turn = ChatTurn(role="user", first_slot=0, last_slot=1, message=2)
    tokens = (Token(1, b"<u>"), Token(2, b"x"))
    note = "2 messages were left out: the oldest, to fit in 4 tokens."
    stage.say(m.Tokens(run=asked.run, text="x", tokens=tokens, turns=(turn,), note=note))
    turns = stage.window.prompt.turns.list
    rows = [turns.item(row).text() for row in range(turns.count())]
    assert rows == ["(left out) User: x", "(left out) Assistant: x", "User: x"]
    prompt = stage.window.prompt
    assert (prompt.note_text, prompt.problem_text) == (note, "")


def test_raw_text_and_back_keeps_the_conversation(stage: WindowStage) -> None:
    stage.loaded("The cat")
    stage.session.set_chat(True)
    talk = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    stage.session.set_messages(talk)
    stage.session.set_chat(False)
    assert stage.state.request.prompt == "c"
    stage.session.set_prompt("d")
    stage.session.set_chat(True)
    assert stage.state.request.messages == (*talk[:2], Message("user", "d"))


def test_distances_are_counted_in_the_cache_where_the_model_allows_it(stage: WindowStage) -> None:
    stage.loaded("The cat")
    choose(stage, "sinks")
    box = stage.window.context.distances
    assert not box.isEnabled()
    assert "Not offered for this model" in box.toolTip()
    able = Capability(name="sink_distances", offered=True, words="it can")
    stage.session.open_model("second")
    stage.answer_load(name="second", capabilities=(able,))
    stage.paint()
    assert box.isEnabled()
    box.click()
    assert stage.state.request.context.distances == "cache"
    assert stage.state.request.context.limit(64) == 0
    stage.ran(2)
    assert stage.window.status.context.text == "4 · 4 in reach"
    assert "distances counted in the cache" in stage.window.status.context.accessibleName()
