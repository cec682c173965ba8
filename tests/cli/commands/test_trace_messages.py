"""`trace --messages`: a conversation in place of a prompt, on both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from explorer.cli import client
from tests.cli.conftest import Done
from tests.engine import folders
from tests.engine.local_engine import LocalEngine
from tests.engine.text.chat_templates import ALTERNATING, DEFAULT_SYSTEM

Command = Callable[..., Done]
TALK = [
    {"role": "user", "content": "the cat"},
    {"role": "assistant", "content": "sat"},
    {"role": "user", "content": "on"},
]


@pytest.fixture(autouse=True)
def local_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "EngineProcess", lambda command: LocalEngine())


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama whose chat template adds a system message of its own."""
    folder = folders.write_folder(tmp_path_factory.mktemp("tiny"), folders.model())
    (folder / "chat_template.jinja").write_text(DEFAULT_SYSTEM)
    return folder


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK))
    return path


def spoken(document: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """Role, added and text of each turn."""
    raw = [bytes.fromhex(token["bytes_hex"]) for token in document["tokens"]]
    return [
        (
            turn["role"],
            turn["added"],
            b"".join(raw[turn["first_slot"] : turn["last_slot"] + 1]).decode("utf-8", "replace"),
        )
        for turn in document["turns"]
    ]


def test_turns_and_what_the_template_adds(
    command: Command, tiny: Path, talk: Path, tmp_path: Path
) -> None:
    out = tmp_path / "talk.dxt"
    words = ("--messages", talk, "--steps", 3, "--json", "--padding", "left", "--pad", 2)
    done = command("trace", tiny, *words, "--out", out)
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    said = spoken(document)
    assert said[:4] == [
        ("system", True, "<|im_start|>system\nBe kind.<|im_end|>\n"),
        ("user", False, "<|im_start|>user\nthe cat<|im_end|>\n"),
        ("assistant", False, "<|im_start|>assistant\nsat<|im_end|>\n"),
        ("user", False, "<|im_start|>user\non<|im_end|>\n"),
    ]
    answer = document["turns"][-1]
    assert answer["role"] == "assistant"
    assert answer["last_slot"] == len(document["tokens"]) - 1, "what is generated is the answer"
    assert said[4][2].startswith("<|im_start|>assistant\n")
    saved = json.loads(command("show", out, "--json").out)
    assert saved["turns"] == document["turns"]
    table = command("show", out).out
    assert "system (added by the template): <|im_start|>" in table


def test_raw_text_has_no_turns_and_a_chat_prompt_its_own(command: Command, tiny: Path) -> None:
    words = "trace", tiny, "--prompt", "the cat", "--steps", 1, "--json"
    assert json.loads(command(*words).out)["turns"] == []
    found = json.loads(command(*words, "--chat").out)["turns"]
    assert [turn["role"] for turn in found if not turn["added"]] == ["user"]


def test_the_template_can_be_told_more(command: Command, tiny: Path) -> None:
    words = ("--prompt", "x", "--steps", 1, "--template-args")
    done = command("trace", tiny, *words, '{"tools": []}', "--chat")
    assert done.code == 2
    assert "reads no argument 'tools'. It reads none." in done.err
    assert "Use it with --messages or --chat" in command("trace", tiny, *words, "{}").err


def test_a_template_that_refuses_is_exit_2_in_its_own_words(
    command: Command, tiny: Path, talk: Path, tmp_path: Path
) -> None:
    folder = folders.write_folder(tmp_path / "refuses", folders.model())
    (folder / "chat_template.jinja").write_text(ALTERNATING)
    talk.write_text(json.dumps([{"role": "system", "content": "x"}, *TALK]))
    done = command("trace", folder, "--messages", talk, "--steps", 1)
    assert done.code == 2
    assert "refuses these messages: Roles must alternate user/assistant" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is not valid JSON"),
        ("{}", "holds no messages"),
        ("[]", "holds no messages"),
        ('["hi"]', "Message 1 of"),
        ('[{"role": "user"}]', "needs a role and a content"),
        ('[{"role": "user", "content": 3}]', "The content of message 1"),
        ('[{"role": "", "content": "x"}]', "has no usable role"),
        ('[{"role": "user", "content": "x", "name": "y"}]', "has 'name', which can't be given"),
        ('[{"role": "user", "content": "\\ud800"}]', "half of a character"),
    ],
)
def test_a_file_that_is_no_conversation_is_one_sentence(
    command: Command, tiny: Path, talk: Path, text: str, words: str
) -> None:
    talk.write_text(text)
    done = command("trace", tiny, "--messages", talk, "--steps", 1)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
