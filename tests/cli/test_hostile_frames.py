"""Whatever number an engine's frame holds, a command ends with a result or in one sentence."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from explorer.cli import client
from explorer.cli.arguments import Command
from explorer.session.connection.remote import EngineProcess
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.cli.conftest import Done
from tests.trace import frames

VALUES = (float("nan"), float("inf"), 1e308, 2**64 - 1, -1)
RECIPE = {
    "model": "m", "source": "from Q4_1 (dequantised)", "layers": 2, "parameters": 2_000_000,
    "kv_bytes_per_token": {"float32": 64}, "layer_kinds": ["full"], "warnings": ["Odd."],
}  # fmt: skip
FOUND = {
    "name": "m", "path": "/m", "architecture": "llama", "parameters": 5, "bytes": 10,
    "dtype": "F32", "fits": True,
}  # fmt: skip
ANSWERS: dict[type, tuple[type, ...]] = {
    m.Load: (m.Progress, m.Loaded),
    m.Tokenize: (m.Tokens,),
    m.Advance: (m.Progress, m.Planned, m.Prompted, m.Stepped, m.Finished),
    m.CheckTrace: (m.Checked, m.Finished),
    m.RunBatch: (m.Progress, m.Batched),
    m.Bench: (m.Progress, m.Facts),
}
COMMANDS = {
    "trace": (m.Load, m.Tokenize, m.Advance),
    "check": (m.Load, m.Tokenize, m.Advance, m.CheckTrace),
    "batch": (m.Load, m.RunBatch),
}


@pytest.fixture(autouse=True)
def parsers_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """For thousands of commands: a parser keeps nothing of what it read."""
    monkeypatch.setattr(Command, "parser", functools.cache(Command.parser))


class Scripted:
    """An engine whose answers are frames made beforehand; what can't be read of them loses it."""

    def __init__(self, odd: dict[type, bytes], facts: dict[str, Any]) -> None:
        self._odd = odd
        self._facts = facts
        self._say: Callable[[m.Event], None] = lambda _: None

    def start(self, on_event: Callable[[m.Event], None]) -> None:
        self._say = on_event

    def send(self, request: m.AnyRequest) -> None:
        made = _made(request.run)
        for kind in ANSWERS.get(type(request), (m.Facts,)):
            facts = m.Facts(run=request.run, facts=self._facts)
            raw = self._odd.get(kind) or (frames.frame(facts) if kind is m.Facts else made[kind])
            if kind in self._odd:
                raw = frames.changed(raw, ("run",), request.run)
                if kind not in (m.Stepped, m.Spelled):
                    raw = frames.changed(raw, ("body", "run"), request.run)
            try:
                found = framing.read_event(io.BytesIO(raw))
            except framing.WireError as error:
                self._say(m.Lost(sentence=f"Unreadable: {error}.", unreadable=True))
                return
            assert found is not None
            self._say(found)

    def close(self) -> None:
        """Nothing is held."""


@functools.cache
def _made(run: int) -> dict[type, bytes]:
    """One sound frame of every kind."""
    return {type(event): frames.frame(event) for event in frames.events(run)}


def words(name: str, tmp_path: Any) -> tuple[object, ...]:
    (tmp_path / "p.txt").write_text("one\ntwo words\n")
    more = {
        "trace": ("--prompt", "x", "--steps", 1),
        "batch": ("--prompts", tmp_path / "p.txt", "--padding", "left"),
    }
    return (name, "m", *more.get(name, ()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_of_every_frame_of_a_command(
    name: str, command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    kinds = {kind for request in COMMANDS[name] for kind in ANSWERS[request]}
    arguments, ends = words(name, tmp_path), set()
    for event in (event for event in frames.events() if type(event) in kinds):
        raw = frames.frame(event)
        for at in frames.numbers(raw):
            for value in VALUES:
                odd = {type(event): frames.changed(raw, at, value)}
                ends.add(ending(odd, {}, arguments, command, monkeypatch, at, value))
    assert {0, 2} <= ends <= {0, 1, 2}


@pytest.mark.parametrize(
    ("words", "facts"), [(("inspect", "m"), RECIPE), (("models",), {"models": [FOUND]})]
)
def test_every_number_of_every_answer_about_models(
    words: tuple[str, ...],
    facts: dict[str, Any],
    command: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = frames.frame(m.Facts(run=1, facts=facts))
    ends = set()
    for at in [(), *frames.numbers(raw)]:
        for value in VALUES:
            odd = {m.Facts: frames.changed(raw, at, value) if at else raw}
            ends.add(ending(odd, facts, words, command, monkeypatch, at, value))
    assert {0, 2} <= ends <= {0, 2}


@pytest.mark.parametrize("words", [("inspect", "m"), ("models",)])
@pytest.mark.parametrize("facts", [{}, {"models": 5}, {"models": [{}]}, {"source": 1}])
def test_an_answer_without_what_was_asked_for(
    words: tuple[str, ...],
    facts: dict[str, Any],
    command: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ending({}, facts, words, command, monkeypatch) == 2


def ending(
    odd: dict[type, bytes],
    facts: dict[str, Any],
    words: tuple[object, ...],
    command: Callable[..., Done],
    monkeypatch: pytest.MonkeyPatch,
    *what: object,
) -> int:
    """The exit code, as a table and as JSON; AssertionError unless all is in order."""
    monkeypatch.setattr(client, "EngineProcess", lambda _: Scripted(odd, facts))
    table, document = command(*words), command(*words, "--json")
    assert table.code == document.code != 3, (what, table.err, document.err)
    if document.code == 2:
        assert document.out == table.out == ""
        last = document.err.splitlines()[-1]
        assert last.endswith("."), last
        assert len(last) < 400, last
    else:
        json.loads(document.out)
    return document.code


@pytest.mark.parametrize("fraction", [1e308, float("nan")])
def test_a_progress_that_is_no_share_is_said_of_the_engines_answers(
    command: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, tmp_path: Any, fraction: float
) -> None:
    """The same through a process and its pipes."""
    raw = frames.frame(m.Progress(run=1, text="x", fraction=0.5))
    said = tmp_path / "said"
    said.write_bytes(frames.frame(m.Hello()) + frames.changed(raw, ("body", "fraction"), fraction))
    engine = ["sh", "-c", f"cat '{said}'; exec cat >/dev/null"]
    monkeypatch.setattr(client, "EngineProcess", lambda _: EngineProcess(engine))
    done = command("inspect", "m", "--json")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("The engine's answers could not be read: ")
