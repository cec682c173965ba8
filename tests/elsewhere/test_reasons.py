"""Through a real ssh server: why an engine there can't be had, or is lost, and what to do then."""

from __future__ import annotations

import io
import os
import queue
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from explorer.session.connection.lost_words import BROKE, ENDED
from explorer.session.connection.remote import EngineProcess
from explorer.trace.request import RunRequest
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.elsewhere.server import Link, Server
from tests.processes import ends

pytestmark = pytest.mark.ssh
E = TypeVar("E")


class Line:
    """An EngineProcess and what it said."""

    def __init__(self, command: list[str], silence: float) -> None:
        self.events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
        self.engine = EngineProcess(command, silence=silence)
        self.engine.start(self.events.put)

    def next(self, kind: type[E]) -> E:
        """Of the next event, which must be of this kind; what is only said to wait is passed by."""
        while True:
            event = self.events.get(timeout=30)
            if isinstance(event, kind) or not isinstance(event, m.Progress):
                assert isinstance(event, kind), event
                return event

    @property
    def reason(self) -> str:
        """Why it is lost."""
        sentence = self.next(m.Lost).sentence
        assert not self.engine.alive
        assert len(sentence) < 400
        return sentence

    def greeted(self) -> int:
        """The process id over there."""
        return int(self.next(m.Hello).versions["pid"])


@pytest.fixture
def line(there: Server) -> Iterator[Callable[..., Line]]:
    lines: list[Line] = []

    def start(host: str, *words: str, silence: float = 30.0) -> Line:
        lines.append(Line(there.command(host, *(words or ("fake-engine", "echo"))), silence))
        return lines[-1]

    yield start
    for one in lines:
        one.engine.close()


@pytest.fixture
def link(there: Server) -> Iterator[Link]:
    """A link to the server that can be stalled or dropped; ssh reaches it as far-box."""
    one = Link(there.port)
    there.host("far-box", port=one.port)
    yield one
    one.close()
    there.hosts.pop()


def test_an_engine_there_answers_and_ends_with_its_client(line: Callable[..., Line]) -> None:
    one = line("gpu-box")
    pid = one.greeted()
    one.engine.send(m.Tokenize(run=1, request=RunRequest(prompt="hello")))
    assert one.next(m.Tokens).text == "hello"
    one.engine.close()
    assert ends(pid)


def test_a_host_that_there_is_not(line: Callable[..., Line]) -> None:
    reason = line("no-such-host.invalid").reason
    assert "(exit code 255): ssh: Could not resolve hostname no-such-host.invalid" in reason
    assert reason.endswith("Check the name of the host.")


def test_a_key_that_is_refused(line: Callable[..., Line]) -> None:
    reason = line("refused").reason
    assert "Permission denied (publickey)" in reason
    assert "ssh-copy-id" in reason


def test_a_machine_whose_key_is_not_known(there: Server, line: Callable[..., Line]) -> None:
    known = there.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    try:
        reason = line("gpu-box").reason
    finally:
        known.write_text(text)
    assert "Host key verification failed. Connect to that machine once by ssh" in reason


def test_a_port_where_nobody_listens(there: Server, line: Callable[..., Line]) -> None:
    there.host("closed", port=1)
    reason = line("closed").reason
    there.hosts.pop()
    assert "Connection refused. Check that an ssh server runs on that machine" in reason


def test_a_program_that_is_not_installed_there(line: Callable[..., Line]) -> None:
    reason = line("gpu-box", "decoder-explorer-of-old", "engine").reason
    assert "(exit code 127)" in reason
    assert "decoder-explorer-of-old: " in reason
    assert "not found. Install Decoder Explorer there" in reason


def test_a_program_that_fails_there(line: Callable[..., Line]) -> None:
    reason = line("gpu-box", "ls", "/nowhere").reason
    assert reason.startswith(f"{ENDED} (exit code 2): ls: ")
    assert "To see more, run “ssh -F" in reason


def test_a_shell_that_greets(line: Callable[..., Line]) -> None:
    reason = line("greets").reason
    assert 'it printed "Welcome to gpu-box!" before its greeting' in reason
    assert "~/.bashrc" in reason


def test_another_version_of_the_frames(
    there: Server, line: Callable[..., Line], tmp_path: Path
) -> None:
    frame = io.BytesIO()
    framing.write_event(frame, m.Hello())
    newer = tmp_path / "frame"
    newer.write_bytes(frame.getvalue().replace(b"\xa1v\x01", b"\xa1v\x63"))
    reason = line("gpu-box", "cat", str(newer), "-").reason
    assert "it speaks protocol 99, and this program speaks protocol 1" in reason
    assert reason.endswith("Install the same version of Decoder Explorer on both machines.")


def test_a_link_that_stalls_is_given_up_at_both_ends(link: Link, line: Callable[..., Line]) -> None:
    one = line("far-box", "fake-engine", "hears", silence=2.0)
    pid = one.greeted()
    one.engine.send(m.Tokenize(run=1, request=RunRequest(prompt="hello")))
    one.next(m.Tokens)
    link.say("stall")
    one.engine.send(m.Tokenize(run=2, request=RunRequest(prompt="and now?")))
    waiting = one.events.get(timeout=30)
    assert isinstance(waiting, m.Progress)
    assert (waiting.run, waiting.text) == (2, "Nothing from the engine for 0 s. Waiting…")
    assert one.reason == (
        "Nothing has come from the engine for 2 s, so the connection was closed. Check the network."
    )
    assert ends(pid), "the engine there goes on for nobody"  # nothing told it


def test_a_link_that_is_idle_is_not_given_up(link: Link, line: Callable[..., Line]) -> None:
    one = line("far-box", "fake-engine", "hears", silence=0.4)
    pid = one.greeted()
    assert not ends(pid, 1.5)
    one.engine.send(m.Tokenize(run=1, request=RunRequest(prompt="hello")))
    assert one.next(m.Tokens).text == "hello"


def test_a_link_that_drops(link: Link, line: Callable[..., Line]) -> None:
    one = line("far-box")
    pid = one.greeted()
    link.say("drop")
    reason = one.reason
    assert reason.startswith(f"{BROKE}: ")
    assert "far-box" in reason or "127.0.0.1" in reason, reason
    assert ends(pid)


def test_an_engine_that_is_killed_there(line: Callable[..., Line]) -> None:
    one = line("gpu-box")
    os.kill(one.greeted(), signal.SIGKILL)
    assert "the engine was killed there (possibly because it ran out of memory)" in one.reason
