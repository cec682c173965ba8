"""A conversation on a .gguf file as it is: its own template, its own tokens, its turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer.engine.errors import BadInput
from explorer.llama_engine.model.model import LlamaModel
from explorer.trace.chat import Message
from tests.engine.text.chat_templates import DEFAULT_SYSTEM, TOOLS
from tests.llama_engine import tiny_gguf

TALK = (Message("user", "the cat"), Message("assistant", "sat on"), Message("user", "a dög"))


@pytest.fixture(params=["gpt2", "llama"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaModel]:
    """With several templates; one tokenizer puts a space in front of every text."""
    more = {
        "tokenizer.chat_template.default_system": DEFAULT_SYSTEM,
        "tokenizer.chat_template.tool_use": TOOLS,
    }
    path = tiny_gguf.write(tmp_path / "a.gguf", tokenizer=request.param, start=False, more=more)
    opened = LlamaModel(path)
    yield opened
    opened.close()


def test_turns_of_the_template_that_is_named(model: LlamaModel) -> None:
    named = '{"chat_template": "default_system"}'
    encoded = model.tokenizer.encode_messages(TALK, named)
    raw = [token.raw for token in encoded.tokens]
    said = [b"".join(raw[one.first_slot : one.last_slot + 1]) for one in encoded.turns]
    said = [one.replace(b"> ", b">").strip() for one in said]  # SentencePiece adds one space
    assert [(one.role, one.added) for one in encoded.turns] == [
        ("system", True), ("user", False), ("assistant", False), ("user", False),
        ("assistant", True),
    ]  # fmt: skip
    assert said[0] == b"<|im_start|>system\nBe kind.<|im_end|>"
    assert said[1] == b"<|im_start|>user\nthe cat<|im_end|>"
    assert said[3] == "<|im_start|>user\na dög<|im_end|>".encode()
    assert [one.first_slot for one in encoded.turns[1:]] == [
        one.last_slot + 1 for one in encoded.turns[:-1]
    ]


def test_tools_choose_their_template_and_a_wrong_argument_is_told(model: LlamaModel) -> None:
    encoded = model.tokenizer.encode_messages(TALK, '{"tools": [{"name": "clock"}]}')
    assert encoded.turns[0].role == "template"
    with pytest.raises(BadInput, match="reads no argument 'x'"):
        model.tokenizer.encode_messages(TALK, '{"x": 1}')
