"""The turns of a chat in the prompt box, and their roles in the strip of tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.trace.chat import ChatTurn, Message
from explorer.trace.request import Sampling
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from explorer.ui.inputs.turn_list import TurnList
from tests.session.scripted import made_step, stepped
from tests.ui.stage import WindowStage

ASKED, SAID, MORE = Message("user", "The cat"), Message("assistant", "sat"), Message("user", "Why?")
TOKENS = tuple(
    Token(i, raw, special=raw.startswith(b"<"))
    for i, raw in enumerate(
        (b"<s>", b"Be kind", b"<u>", b"The", b" cat", b"</u>", b"<a>", b"sat", b"</a>", b"<u>",
         b"Why", b"?", b"</u>", b"<a>")
    )
)  # fmt: skip
TURNS = (
    ChatTurn(role="system", first_slot=0, last_slot=1),
    ChatTurn(role="user", first_slot=2, last_slot=5, message=0, text=(3, 5)),
    ChatTurn(role="assistant", first_slot=6, last_slot=8, message=1, text=(7, 8)),
    ChatTurn(role="user", first_slot=9, last_slot=12, message=2, text=(10, 12)),
    ChatTurn(role="assistant", first_slot=13, last_slot=13),
)


@pytest.fixture
def talk(stage: WindowStage) -> WindowStage:
    """A chat of three turns, its tokens known."""
    stage.loaded("The cat")
    stage.session.set_chat(True)
    stage.session.set_messages((ASKED, SAID, MORE))
    tokenized(stage)
    return stage


def tokenized(stage: WindowStage) -> None:
    asked = stage.engine.last(m.Tokenize)
    while asked.request.messages != stage.state.request.messages or not asked.request.chat:
        stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=()))
        asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=TOKENS, turns=TURNS))


def turns_of(stage: WindowStage) -> TurnList:
    return stage.window.prompt.turns


def rows(stage: WindowStage) -> list[str]:
    turns = turns_of(stage).list
    return [turns.item(row).text() for row in range(turns.count())]


def test_raw_text_has_no_turns_and_a_chat_has_one_at_least(stage: WindowStage) -> None:
    stage.loaded("The cat")
    assert not turns_of(stage).isVisible()
    stage.session.set_chat(True)
    stage.paint()
    assert turns_of(stage).isVisible()
    assert rows(stage) == ["User: The cat"]
    assert not turns_of(stage).delete.isEnabled()


def test_the_chosen_turn_is_the_one_that_is_edited(talk: WindowStage) -> None:
    prompt = talk.window.prompt
    assert rows(talk) == ["User: The cat", "Assistant: sat", "User: Why?"]
    assert prompt.edit.text() == "Why?"
    assert [token.raw for token in prompt.edit.tokens] == [b"Why", b"?"]
    turns_of(talk).list.setCurrentRow(0)
    assert prompt.edit.text() == "The cat"
    assert [token.raw for token in prompt.edit.tokens] == [b"The", b" cat"]
    prompt.edit.setPlainText("The dog")
    assert talk.state.request.messages == (Message("user", "The dog"), SAID, MORE)
    assert turns_of(talk).place == 0
    talk.session.undo()
    assert talk.state.request.messages == (ASKED, SAID, MORE)
    assert prompt.edit.text() == "The cat"


def test_turns_are_added_moved_deleted_and_change_their_role(talk: WindowStage) -> None:
    turns = turns_of(talk)
    turns.list.setCurrentRow(1)
    turns.add.click()
    assert talk.state.request.messages == (ASKED, SAID, Message("user", ""), MORE)
    assert talk.window.prompt.edit.text() == ""
    turns.later.click()
    assert talk.state.request.messages == (ASKED, SAID, MORE, Message("user", ""))
    assert (turns.place, turns.later.isEnabled()) == (3, False)
    turns.delete.click()
    turns.earlier.click()
    assert talk.state.request.messages == (ASKED, MORE, SAID)
    assert turns.place == 1
    turns.role.setCurrentIndex(turns.role.findData("system"))
    turns.role.activated.emit(turns.role.currentIndex())
    assert talk.state.request.messages == (ASKED, Message("system", "Why?"), SAID)
    for row in (2, 1):
        turns.list.setCurrentRow(row)
        turns.delete.click()
    assert talk.state.request.typed  # one message of the user is a typed prompt


def test_a_role_of_a_file_is_kept(talk: WindowStage) -> None:
    talk.session.set_messages((Message("critic", "Hm"), ASKED))
    turns_of(talk).list.setCurrentRow(0)
    assert rows(talk)[0] == "critic: Hm"
    assert turns_of(talk).role.currentData() == "critic"


def test_a_refusal_of_the_template_stands_under_the_prompt(talk: WindowStage) -> None:
    talk.session.set_messages((SAID, ASKED))
    asked = talk.engine.last(m.Tokenize)
    talk.say(m.Tokens(run=asked.run, text="", tokens=(), problem="Roles must alternate."))
    assert talk.window.prompt.problem_text == "Roles must alternate."


def test_reply_and_edit_take_the_answer_over(talk: WindowStage) -> None:
    turns = turns_of(talk)
    assert not turns.answers.isVisible()
    talk.session.step(2)
    run = talk.engine.last(m.Advance).run
    talk.say(m.Prompted(run=run, tokens=TOKENS, turns=TURNS))
    for index, token in enumerate(
        (Token(10, b"Ja", "generated"), Token(11, b"</a>", "generated", True))
    ):
        talk.say(m.Stepped(run=run, step=stepped(run, index).step, token=token))
    talk.finish("end")
    talk.paint()
    assert turns.answers.isVisible()
    assert not turns.again.isEnabled()  # greedy
    talk.session.set_sampling(Sampling(greedy=False))
    assert turns.again.isEnabled()
    turns.keep.click()
    assert talk.state.request.messages[3:] == (Message("assistant", "Ja"),)
    talk.session.undo()
    turns.reply.click()
    assert talk.state.request.messages[3:] == (Message("assistant", "Ja"), Message("user", ""))
    assert turns.place == 4
    assert talk.window.prompt.edit.text() == ""
    assert not turns.answers.isVisible()  # it belongs to the run of before


def test_what_was_in_the_cache_is_told_and_marked(talk: WindowStage) -> None:
    talk.session.step()
    run = talk.engine.last(m.Advance).run
    talk.say(m.Prompted(run=run, tokens=TOKENS, turns=TURNS))
    first = replace(made_step(0, prompt=len(TOKENS)), first_slot=9)
    talk.say(m.Stepped(run=run, step=first, token=Token(10, b"Ja", "generated")))
    talk.finish()
    talk.paint()
    strip = talk.window.sequence.strip
    assert "were in the cache" in strip.words(8)
    assert "were in the cache" not in strip.words(9)
    left = strip.box_rect(9).left()
    image = strip.viewport().grab().toImage()
    row = round(strip.box_rect(9).top())
    seen = {image.pixelColor(round(left) - dx, row).name() for dx in range(4)}
    assert talk.look.theme.formula in seen


def test_the_strip_tells_whose_turn_a_token_is_of_and_where_the_answer_begins(
    talk: WindowStage,
) -> None:
    strip = talk.window.sequence.strip
    assert "added by the chat template" in strip.words(1)
    assert "turn of: system" in strip.words(1)
    assert "from the message" in strip.words(4)
    assert "turn of: user" in strip.words(4)
    assert "added by the chat template" in strip.words(5)
    assert "turn of: assistant" in strip.words(7)
    assert "start of the answer" in strip.words(13)
    image = strip.viewport().grab().toImage()
    seen = {
        image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())
    }
    theme = talk.look.theme
    fills = {ink.fill for ink in (theme.system, theme.user, theme.assistant)}
    assert {*fills, theme.warning} <= seen
    legend = talk.window.sequence.legend.words
    assert {"system", "user", "assistant", "chat template"} <= set(legend)
    assert "prompt" not in legend
