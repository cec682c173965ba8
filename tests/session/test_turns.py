"""A conversation as the prompt: what is asked of the engine, acts on turns, and the answer."""

from __future__ import annotations

import msgspec
import pytest

from explorer.figures.text import turns
from explorer.trace.chat import ChatTurn, Message
from explorer.trace.request import MOST_SEED, Sampling
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, ids, stepped

ASKED, SAID, MORE = Message("user", "one"), Message("assistant", "two"), Message("user", "three")


def talking(*messages: Message) -> Stage:
    stage = Stage().loaded("one")
    stage.session.set_chat(True)
    stage.session.set_messages(messages or (ASKED, SAID, MORE))
    return stage


def test_one_message_of_the_user_is_a_typed_chat_prompt() -> None:
    stage = talking(ASKED)
    assert (stage.state.request.prompt, stage.state.request.chat) == ("one", True)
    assert stage.state.request.typed
    assert turns.messages_of(stage.state.request) == (ASKED,)
    stage.session.set_chat(False)
    assert turns.messages_of(stage.state.request) == ()


def test_a_conversation_is_asked_about_and_run_and_undone_act_by_act() -> None:
    stage = talking()
    request = stage.state.request
    assert (request.messages, request.prompt, request.chat) == ((ASKED, SAID, MORE), "three", True)
    asked = stage.engine.last(m.Tokenize)
    while asked.request.messages != request.messages:  # the questions of before are answered first
        stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=()))
        asked = stage.engine.last(m.Tokenize)
    turn = ChatTurn(role="user", first_slot=0, last_slot=2, message=0, text=(1, 2))
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=PROMPT, turns=(turn,)))
    assert (stage.state.prompt_tokens, stage.state.prompt_turns) == (PROMPT, (turn,))
    stage.session.step()
    run = stage.engine.last(m.Advance)
    assert run.request.messages == (ASKED, SAID, MORE)
    stage.say(m.Prompted(run=run.run, tokens=PROMPT, turns=(turn,)))
    assert stage.state.trace is not None
    assert stage.state.trace.turns == (turn,)
    stage.session.undo()
    assert stage.state.undo_kind == "conversation"
    stage.session.undo()
    assert stage.state.request.typed


def test_typing_in_a_turn_is_one_act() -> None:
    stage = talking()
    for text in ("four", "four f"):
        messages = turns.replaced(stage.state.request.messages, 1, content=text)
        stage.session.set_messages(messages, typing=True)
    assert stage.state.request.messages[1] == Message("assistant", "four f")
    stage.session.undo()
    assert stage.state.request.messages == (ASKED, SAID, MORE)


def test_half_a_character_in_any_turn_is_told_before_a_run() -> None:
    stage = talking(ASKED, Message("assistant", "\ud83d"), MORE)
    assert "lone surrogate" in stage.state.prompt_problem
    stage.session.step()
    assert "lone surrogate" in stage.state.error
    assert stage.engine.count(m.Advance) == 0


def answered(*messages: Message) -> Stage:
    """With a run that generated " yes" and an end token."""
    stage = talking(*messages)
    stage.session.step(2)
    run = stage.prompted()
    first, end = stepped(run, 0), stepped(run, 1)
    stage.say(
        m.Stepped(run=run, step=first.step, token=Token(10, b" yes", "generated")),
        m.Stepped(run=run, step=end.step, token=Token(11, b"<end>", "generated", special=True)),
    )
    stage.finish("end")
    return stage


def test_the_answer_becomes_a_turn_or_finishes_the_one_that_was_begun() -> None:
    stage = answered()
    asked, trace = stage.state.request, stage.state.trace
    assert turns.answer_of(asked, trace) == " yes"
    assert turns.with_answer(asked, trace)[3:] == (Message("assistant", "yes"),)
    begun = answered(ASKED, SAID).state
    finished = (ASKED, Message("assistant", "two yes"))
    assert turns.with_answer(begun.request, begun.trace) == finished
    other = begun.request  # what is on screen is the answer to something else
    assert turns.answer_of(other, trace) is None
    assert turns.with_answer(other, trace) == (ASKED, SAID)


def test_acts_on_turns() -> None:
    talk = (ASKED, SAID, MORE)
    assert turns.added(talk, 0) == (ASKED, Message("assistant", ""), SAID, MORE)
    assert turns.added(talk, 1) == (ASKED, SAID, Message("user", ""), MORE)
    assert turns.removed(talk, 1) == (ASKED, MORE)
    assert turns.removed((ASKED,), 0) == (ASKED,)
    assert turns.moved(talk, 2, -1) == (ASKED, MORE, SAID)
    assert turns.moved(talk, 0, -1) == talk
    assert turns.replaced(talk, 1, role="tool")[1] == Message("tool", "two")


def test_another_answer_is_a_branch_from_the_first_token_with_another_seed() -> None:
    stage = answered()
    before = ids(stage.state)
    stage.session.answer_again()
    assert stage.engine.count(m.Advance) == 1  # greedy would say the same again
    stage.session.set_sampling(Sampling(greedy=False, seed=4))
    stage.session.answer_again()
    asked = stage.engine.last(m.Advance)
    assert (asked.chosen, asked.sampling.seed) == ((), 5)
    assert not asked.reuse  # its own prompt is in the cache: no row of its map would be read
    stage.prompted()
    stage.say(stepped(asked.run, 0, sampling=asked.sampling))
    stage.finish("end")
    assert ids(stage.state) == [15]
    assert before in [list(branch.trace.chosen_ids) for branch in stage.state.tree]
    stage.session.undo()
    assert ids(stage.state) == before


@pytest.mark.parametrize(("seed", "after"), [(2**31, 2**31 + 1), (MOST_SEED, 0)])
def test_the_seed_of_another_answer_is_the_next_of_all_seeds(seed: int, after: int) -> None:
    stage = answered()
    stage.session.set_sampling(Sampling(greedy=False, seed=seed))
    stage.session.answer_again()
    assert stage.engine.last(m.Advance).sampling.seed == after


def test_a_conversation_goes_on_from_the_cache_unless_that_is_switched_off() -> None:
    stage = talking()
    stage.session.step()
    assert stage.engine.last(m.Advance).reuse
    stage.prompted()
    stage.steps(1)
    stage.finish()
    stage.session.set_reuse(False)
    stage.session.set_messages((ASKED, SAID))
    stage.session.step()
    assert not stage.engine.last(m.Advance).reuse
    typed = Stage().loaded("one")
    typed.session.step()
    assert not typed.engine.last(m.Advance).reuse  # each row of its map is wanted


def test_an_answer_that_ends_within_a_character_has_no_replacement_character() -> None:
    stage = talking(ASKED)
    stage.session.step()
    run = stage.engine.last(m.Advance)
    stage.say(m.Prompted(run=run.run, tokens=PROMPT))
    first, half = Token(10, "é".encode(), "generated"), Token(11, "日".encode()[:2], "generated")
    for index, token in enumerate((first, half)):
        stage.say(msgspec.structs.replace(stepped(run.run, index), token=token))
    assert turns.answer_of(stage.state.request, stage.state.trace) == "é"
