"""Live tokens of the prompt: always those of the newest text."""

from __future__ import annotations

from explorer.trace.chat import ChatParts
from explorer.trace.step import Token
from explorer.trace.wire import messages as m
from tests.session.scripted import Stage


def answer(stage: Stage, asked: m.Tokenize, problem: str = "") -> None:
    tokens = tuple(Token(ord(c), c.encode()) for c in asked.request.prompt)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=tokens, problem=problem))


def text(stage: Stage) -> bytes:
    return b"".join(token.raw for token in stage.state.prompt_tokens)


def test_nothing_is_asked_before_a_model_is_there(stage: Stage) -> None:
    stage.session.start_engine()
    stage.drain()
    stage.session.set_prompt("typed early")
    assert stage.engine.count(m.Tokenize) == 0
    stage.session.open_model("tiny")
    stage.answer_load()
    assert stage.engine.last(m.Tokenize).request.prompt == "typed early"


def test_each_edit_is_tokenised(stage: Stage) -> None:
    stage.loaded("a")
    answer(stage, stage.engine.last(m.Tokenize), "no bytes for U+0013")
    assert text(stage) == b"a"
    assert stage.state.prompt_problem == "no bytes for U+0013"
    stage.session.set_prompt("ab")
    answer(stage, stage.engine.last(m.Tokenize))
    assert text(stage) == b"ab"
    assert stage.state.prompt_problem == ""


def test_answers_for_an_older_text_are_dropped(stage: Stage) -> None:
    stage.loaded("a")
    old = stage.engine.last(m.Tokenize)
    stage.session.set_prompt("ab")
    stage.session.set_prompt("abc")
    answer(stage, old)
    assert text(stage) == b""
    new = stage.engine.last(m.Tokenize)
    assert new.request.prompt == "abc"
    assert stage.engine.count(m.Tokenize) == 2  # "ab" was never worth asking for
    answer(stage, new)
    assert text(stage) == b"abc"


def test_tokens_come_during_a_run(stage: Stage) -> None:
    stage.loaded("a")
    answer(stage, stage.engine.last(m.Tokenize))
    stage.session.run()
    stage.prompted()
    stage.session.set_prompt("b")
    answer(stage, stage.engine.last(m.Tokenize))
    assert text(stage) == b"b"
    assert stage.state.status.activity == "running"


def test_the_chat_switch_asks_again(stage: Stage) -> None:
    stage.loaded("a")
    answer(stage, stage.engine.last(m.Tokenize))
    stage.session.set_chat(True)
    assert stage.engine.last(m.Tokenize).request.chat


def test_a_failed_question_is_a_problem_of_the_prompt(stage: Stage) -> None:
    stage.loaded("a")
    stage.say(m.Failed(run=stage.engine.last(m.Tokenize).run, sentence="This is no text."))
    assert stage.state.prompt_problem == "This is no text."
    assert stage.state.error == ""
    stage.session.set_prompt("ab")
    answer(stage, stage.engine.last(m.Tokenize))
    assert text(stage) == b"ab"


def test_a_lone_surrogate_is_a_sentence_and_never_sent(stage: Stage) -> None:
    stage.loaded("a")
    answer(stage, stage.engine.last(m.Tokenize))
    sent = len(stage.engine.asked)
    stage.session.set_prompt("a\ud83d")
    assert "U+D83D" in stage.state.prompt_problem
    stage.session.step()
    assert "U+D83D" in stage.state.error
    assert len(stage.engine.asked) == sent
    stage.session.set_prompt("a")
    answer(stage, stage.engine.last(m.Tokenize))
    assert stage.state.prompt_problem == ""


def test_control_tokens_as_text_are_asked_for_and_undone(stage: Stage) -> None:
    stage.loaded("a<|end|>")
    answer(stage, stage.engine.last(m.Tokenize))
    stage.session.set_special_as_text(True)
    assert stage.engine.last(m.Tokenize).request.special_as_text
    stage.session.step()
    assert stage.engine.last(m.Advance).request.special_as_text
    stage.session.undo()
    assert not stage.state.request.special_as_text


def test_the_parts_of_a_chat_come_and_go_with_its_tokens(stage: Stage) -> None:
    stage.loaded("a")
    answer(stage, stage.engine.last(m.Tokenize))
    stage.session.set_chat(True)
    asked = stage.engine.last(m.Tokenize)
    parts = ChatParts(message=1, message_end=2, answer=3)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=(), parts=parts))
    assert stage.state.prompt_parts == parts
    stage.session.set_chat(False)
    answer(stage, stage.engine.last(m.Tokenize))
    assert stage.state.prompt_parts is None
