"""The prompt box: where tokens are written, in Qt's units; exact text in and out."""

from __future__ import annotations

import time

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from explorer.trace.chat import ChatParts
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import messages as m
from explorer.ui.inputs.prompt import TokenEdit, spans
from explorer.ui.look.theme import THEMES
from tests.ui.stage import WindowStage
from tests.ui.waiting import settle, show


def tokens(*parts: bytes) -> tuple[Token, ...]:
    return tuple(Token(i, part) for i, part in enumerate(parts))


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_plain_words() -> None:
    assert spans("The capital", tokens(b"The", b" capital")) == [(0, 3), (3, 11)]


def test_emoji_count_two_units_and_shift_nothing() -> None:
    text = "👩‍🚀 ok"
    family, rest = "👩‍🚀".encode(), b" ok"
    assert spans(text, tokens(family, rest)) == [(0, units("👩‍🚀")), (5, 8)]


def test_a_character_split_over_tokens_is_one_span() -> None:
    data = "é漢x".encode()
    parts = tokens(data[:1], data[1:3], data[3:5], data[5:])
    found = spans("é漢x", parts)
    assert found[0] == (0, 1)
    assert found[-1] == (2, 3)
    assert [end for _, end in found] == sorted({end for _, end in found})


def test_a_long_text_of_split_characters_takes_no_longer_than_its_length() -> None:
    text = "😀漢" * 20_000
    began = time.process_time()
    found = spans(text, tokens(*(bytes([byte]) for byte in text.encode())))
    assert time.process_time() - began < 8  # a search of the rest for each took minutes
    assert (len(found), found[-1]) == (40_000, (units(text) - 1, units(text)))


def test_tokens_the_tokenizer_put_there_are_passed_over() -> None:
    parts = (Token(1, b"<s>", special=True), *tokens(b"Hi", b" you"))
    assert spans("Hi you", parts) == [(0, 2), (2, 6)]


def test_a_special_token_that_was_typed_is_coloured() -> None:
    parts = (Token(1, b"a"), Token(2, b"<s>", special=True))
    assert spans("a<s>", parts) == [(0, 1), (1, 4)]


def test_a_space_before_the_first_word_that_nobody_typed() -> None:
    assert spans("Hi you", tokens(b" Hi", b" you")) == [(0, 2), (2, 6)]


def test_a_stale_answer_colours_only_what_still_fits() -> None:
    old = tokens(b"The", b" capital", b" of")
    assert spans("The cat", old) == [(0, 3)]
    assert spans("", old) == []
    assert spans("The capital", old) == [(0, 3), (3, 11)]


def test_the_prompt_can_be_typed_before_there_is_an_engine(stage: WindowStage) -> None:
    stage.window.prompt.edit.setPlainText("early")
    assert stage.state.request.prompt == "early"
    assert stage.engines == []


@pytest.mark.parametrize("text", ["a\u00a0b", "x\n\n\n7", "👩‍🚀 漢字", "tab\there", "\u0013"])
def test_the_text_reaches_the_session_exactly(stage: WindowStage, text: str) -> None:
    stage.window.prompt.edit.setPlainText(text)
    assert stage.state.request.prompt == text


def test_a_prompt_set_elsewhere_is_shown_and_not_sent_back(stage: WindowStage) -> None:
    stage.session.set_prompt("from a file")
    assert stage.window.prompt.edit.text() == "from a file"
    stage.session.undo()
    assert stage.window.prompt.edit.text() == stage.state.request.prompt


def test_a_remark_on_a_prompt_that_is_read_does_not_look_like_an_error(stage: WindowStage) -> None:
    stage.loaded("x y")
    asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text="x y", tokens=tokens(b"x", b" y"), problem="No tabs."))
    box = stage.window.prompt
    assert box.count_text == "2 of 64 tokens"
    assert (box.problem_text, box.remark_text) == ("", "No tabs.")
    stage.session.set_prompt("x")
    asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text="x", tokens=(), problem="It is refused."))
    assert (box.problem_text, box.remark_text) == ("It is refused.", "")


def test_what_is_put_in_front_of_the_text_is_said_but_for_a_chat(stage: WindowStage) -> None:
    policy = "<s> is added in front of the text."
    stage.session.open_model("other")
    stage.answer_load(name="other", bos_policy=policy, has_chat_template=True)
    box = stage.window.prompt
    assert box.count_text.endswith(f". {policy}")
    stage.session.set_chat(True)  # a template writes its own start
    assert policy not in box.count_text


def test_tints_are_painted_behind_their_words(qapp: QApplication) -> None:
    theme = THEMES["light"]
    edit = TokenEdit(theme)
    edit.setPlainText("MMMM\nMMMM")
    edit.resize(300, 120)
    show(edit)
    plain = edit.viewport().grab().toImage()
    edit.set_tokens(tokens(b"MM", b"MM\n", b"MMMM"))
    settle()
    tinted = edit.viewport().grab().toImage()

    def changed(x: int, y: int) -> bool:
        return QColor(plain.pixel(x, y)) != QColor(tinted.pixel(x, y))

    size = plain.size()
    rows = {y for y in range(size.height()) for x in range(size.width()) if changed(x, y)}
    line = edit.fontMetrics().height()
    assert len(rows) >= 1.5 * line  # both lines
    edit.close()


def vocabulary(*names: str) -> Vocabulary:
    special = [Token(i, name.encode(), special=True) for i, name in enumerate(names)]
    return Vocabulary.of([*special, Token(len(names), b"the")])


def test_a_control_token_in_the_text_brings_up_a_choice(stage: WindowStage) -> None:
    stage.loaded("the cat")
    run = stage.engine.last(m.ListVocabulary).run
    stage.say(m.Spelled(run=run, vocabulary=vocabulary("<|end|>", "<id 7>", "")))
    control = stage.window.prompt.control
    assert not control.isVisible()
    stage.window.prompt.edit.insertPlainText("<|end|>")
    stage.paint()
    assert control.isVisible()
    assert control.which.text() == "<|end|>"
    control.choice.setCurrentIndex(1)
    control.choice.activated.emit(1)
    assert stage.state.request.special_as_text
    assert control.isVisible()  # the way back
    stage.session.undo()
    assert control.choice.currentIndex() == 0
    stage.session.set_chat(True)
    assert control.isVisible()  # in a message, too
    control.choice.activated.emit(1)
    assert stage.state.request.special_as_text


CHAT = (
    Token(1, b"<|im_start|>", special=True), Token(2, b"user\n"), Token(3, b"The"),
    Token(4, b" cat"), Token(5, b"<|im_end|>", special=True), Token(6, b"<|im_start|>"),
)  # fmt: skip
PARTS = ChatParts(message=2, message_end=4, answer=5)


def chatting(stage: WindowStage) -> WindowStage:
    stage.loaded("The cat")
    stage.session.set_chat(True)
    asked = stage.engine.last(m.Tokenize)
    if not asked.request.chat:  # the question about raw text is answered first
        stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=()))
        asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=CHAT, parts=PARTS))
    return stage


def test_in_a_chat_the_message_alone_is_coloured_and_the_strip_tells_the_parts(
    stage: WindowStage,
) -> None:
    window = chatting(stage).window
    assert window.prompt.edit._spans == [(0, 3), (3, 7)]
    strip = window.sequence.strip
    assert "added by the chat template" in strip.words(0)
    assert "from the message" in strip.words(2)
    assert "start of the answer" in strip.words(5)
    stage.session.set_chat(False)
    asked = stage.engine.last(m.Tokenize)
    stage.say(m.Tokens(run=asked.run, text=asked.request.prompt, tokens=CHAT[2:4]))
    assert "template" not in strip.words(0)


def test_template_tokens_and_the_boundary_are_painted(stage: WindowStage) -> None:
    strip = chatting(stage).window.sequence.strip
    image = strip.viewport().grab().toImage()
    seen = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(30)}
    theme = stage.look.theme
    assert {theme.selection, theme.warning, theme.prompt.fill} <= seen


def test_padding_before_a_chat_shifts_its_parts(stage: WindowStage) -> None:
    chatting(stage)
    stage.session.set_padding("left", 2)
    stage.session.step()
    run = stage.engine.last(m.Advance).run
    padding = (Token(0, b"<pad>", "padding", True),) * 2
    stage.say(m.Prompted(run=run, tokens=(*padding, *CHAT)))
    strip = stage.window.sequence.strip
    assert "template" not in strip.words(0)
    assert "added by the chat template" in strip.words(2)
    assert "from the message" in strip.words(4)
    assert "start of the answer" in strip.words(7)


def test_a_run_keeps_its_marks_when_the_prompt_is_read_otherwise(stage: WindowStage) -> None:
    chatting(stage)
    stage.session.step()
    stage.say(m.Prompted(run=stage.engine.last(m.Advance).run, tokens=CHAT))
    stage.steps(1)
    stage.finish()
    strip = stage.window.sequence.strip
    assert "added by the chat template" in strip.words(0)
    stage.session.set_special_as_text(True)
    stage.session.set_chat(False)
    stage.say(m.Tokens(run=stage.engine.last(m.Tokenize).run, text="hi", tokens=()))
    stage.paint()
    assert "added by the chat template" in strip.words(0)
    assert stage.window.notices.stale.isVisible()
