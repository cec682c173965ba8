"""An engine in a child process, and every way in which it can go."""

from __future__ import annotations

import contextlib
import io
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from explorer.session.connection import remote
from explorer.session.connection.lost_words import ENDED
from explorer.session.connection.remote import UNREADABLE, EngineProcess
from explorer.trace.request import RunRequest
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.processes import ends

FAKE = Path(__file__).parents[1] / "fake_engine.py"
E = TypeVar("E")


class Line:
    """An EngineProcess and what it said."""

    def __init__(self, *behaviour: str, hello: float = 30.0, silence: float = 30.0) -> None:
        self.events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
        self.engine = EngineProcess([sys.executable, str(FAKE), *behaviour], hello, silence)
        self.engine.start(self.events.put)

    def next(self, kind: type[E]) -> E:
        event = self.events.get(timeout=30)
        assert isinstance(event, kind), event
        return event


@contextlib.contextmanager
def impatient() -> Iterator[None]:
    """A child that does not end by itself is waited for only a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote, "CLOSE_SECONDS", 0.05)
        yield


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Line]]:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))
    before = set(threading.enumerate())
    lines: list[Line] = []

    def start(*behaviour: str, hello: float = 30.0, silence: float = 30.0) -> Line:
        lines.append(Line(*behaviour, hello=hello, silence=silence))
        return lines[-1]

    yield start
    for one in lines:
        one.engine.close()
    assert set(threading.enumerate()) == before, "a thread was left over"
    if sys.platform != "win32":
        with pytest.raises(ChildProcessError):  # no zombie, no child left
            os.waitpid(-1, os.WNOHANG)


def test_answers_come_in_order_and_a_lot_can_be_asked(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.next(m.Hello)
    for i in range(500):
        one.engine.send(m.Tokenize(run=i, request=RunRequest(prompt=f"text {i}")))
    assert [one.next(m.Tokens).text for i in range(500)] == [f"text {i}" for i in range(500)]
    assert one.engine.alive


def test_asked_before_the_greeting(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.engine.send(m.Tokenize(run=1, request=RunRequest(prompt="early")))
    one.next(m.Hello)
    assert one.next(m.Tokens).text == "early"


def test_sending_never_blocks_though_the_child_stops_reading(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.next(m.Hello)
    one.engine.send(m.FindModels(run=1))
    one.next(m.Progress)
    began = time.monotonic()
    for _ in range(50):
        one.engine.send(m.Tokenize(request=RunRequest(prompt="x" * 200_000)))
    assert time.monotonic() - began < 1.0
    began = time.monotonic()
    one.engine.close()
    assert time.monotonic() - began < 3.0


def test_a_child_that_dies_is_lost_once_with_a_sentence(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.next(m.Hello)
    one.engine.send(m.Load(run=1, model="x"))
    lost = one.next(m.Lost)
    assert lost.sentence == f"{ENDED} (exit code 7)."
    assert not one.engine.alive
    one.engine.send(m.Load(run=2, model="x"))
    one.engine.close()
    assert one.events.empty()


def test_a_child_that_ends_in_peace_had_no_truncated_file(
    line: Callable[..., Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(signal, "SIGBUS", raising=False)  # as on Windows
    one = line("leaves")
    one.next(m.Hello)
    assert one.next(m.Lost).sentence == f"{ENDED}."


@pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="there is no such signal")
def test_a_file_truncated_under_the_child_is_named(line: Callable[..., Line]) -> None:
    one = line("stubborn")
    one.next(m.Hello)
    assert one.engine.pid is not None
    os.kill(one.engine.pid, signal.SIGBUS)
    assert "a model file was truncated" in one.next(m.Lost).sentence


def test_killed_from_outside(line: Callable[..., Line]) -> None:
    one = line("stubborn")
    one.next(m.Hello)
    assert one.engine.pid is not None
    os.kill(one.engine.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    assert f"{ENDED} (" in one.next(m.Lost).sentence


@pytest.mark.parametrize("behaviour", ["garbage", "no greeting"])
def test_what_is_no_engine_is_lost_and_killed(line: Callable[..., Line], behaviour: str) -> None:
    with impatient():
        lost = line(behaviour).next(m.Lost)
    assert "could not be read" in lost.sentence
    assert "ran out of memory" not in lost.sentence


def ended_by(*command: str) -> str:
    """Why an engine of this command is lost."""
    events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
    engine = EngineProcess(command)
    engine.start(events.put)
    event = events.get(timeout=30)
    engine.close()
    assert isinstance(event, m.Lost)
    return event.sentence


def test_the_exit_code_of_what_is_no_engine_is_not_behind_the_advice() -> None:
    prints = "import sys; print('Welcome'); sys.exit(3)"
    words = ended_by(sys.executable, "-c", prints)
    assert words.startswith(f'{UNREADABLE} (exit code 3): it printed "Welcome"')
    assert words.endswith("such as ~/.bashrc.")


def test_a_program_that_is_not_there_is_named_with_what_to_do() -> None:
    words = ended_by("no-such-program-here", "engine")
    assert "(no-such-program-here: " in words
    assert words.endswith("or give the full path.")


def test_what_to_do_is_a_sentence_of_its_own() -> None:
    words = ended_by(sys.executable, "-c", "import sys; sys.exit(3)")  # RESTART comes behind it
    assert words.endswith("” in a terminal.")


def test_another_protocol_is_named(line: Callable[..., Line], tmp_path: Path) -> None:
    frame = io.BytesIO()
    framing.write_event(frame, m.Hello())
    newer = tmp_path / "frame"
    newer.write_bytes(frame.getvalue().replace(b"\xa1v\x01", b"\xa1v\x63"))
    with impatient():
        lost = line("other protocol", str(newer)).next(m.Lost)
    assert "protocol 99" in lost.sentence


def test_what_a_command_prints_first_is_shown(line: Callable[..., Line]) -> None:
    with impatient():
        sentence = line("garbage").next(m.Lost).sentence
    assert 'it printed "Welcome to gpu-box!" before its greeting' in sentence
    assert "Last login" not in sentence


def test_a_command_that_fails_at_once_says_why(line: Callable[..., Line]) -> None:
    sentence = line("fails").next(m.Lost).sentence
    assert "(exit code 255): ssh: Could not resolve hostname gpu-box." in sentence


@pytest.mark.parametrize(
    ("shape", "kind", "words"),
    [
        ("2147483648", "Stepped", "would take 8,589,934,592 bytes"),
        ("4611686018427387904,4", "Stepped", "bytes, more than"),
        ("-1", "Stepped", "not allowed"),
        ("1000000", "Progress", "with arrays"),
    ],
)
def test_what_a_frame_announces_is_bounded_before_memory_is_taken(
    line: Callable[..., Line], shape: str, kind: str, words: str
) -> None:
    one = line("huge", shape, kind)
    one.next(m.Hello)
    with impatient():
        sentence = one.next(m.Lost).sentence
    assert words in sentence
    assert len(sentence) < 250


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_announcement_alone_takes_no_memory(line: Callable[..., Line]) -> None:
    def held() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    before = held()
    one = line("huge", "1000000000", "Stepped")  # 4 GB, of which nothing ever comes
    one.next(m.Hello)
    one.engine.close()
    assert held() - before < 200 << 20


def test_a_frame_that_breaks_off(line: Callable[..., Line]) -> None:
    one = line("half")
    one.next(m.Hello)
    assert ENDED in one.next(m.Lost).sentence


def test_no_greeting_in_time(line: Callable[..., Line]) -> None:
    one = line("silent", hello=0.3)
    assert "did not answer" in one.next(m.Lost).sentence
    assert not one.engine.alive


@pytest.mark.parametrize("behaviour", ["stalls", "half of a frame"])
def test_one_that_greets_and_then_says_nothing(line: Callable[..., Line], behaviour: str) -> None:
    one = line(behaviour, silence=0.4)
    one.next(m.Hello)
    one.engine.send(m.Load(run=1, model="x"))
    while isinstance(event := one.events.get(timeout=30), m.Progress):
        assert "Nothing from the engine" in event.text
    assert isinstance(event, m.Lost)
    assert event.sentence.startswith("Nothing has come from the engine")
    assert not one.engine.alive
    assert one.events.empty()


@pytest.mark.parametrize("behaviour", ["slow", "trickles"])
def test_what_takes_long_is_not_cut_off(line: Callable[..., Line], behaviour: str) -> None:
    one = line(behaviour, silence=0.8)
    one.next(m.Hello)
    one.engine.send(m.Load(run=1, model="x"))
    assert one.next(m.Finished).run == 1


def test_an_engine_that_is_asked_nothing_may_be_silent(line: Callable[..., Line]) -> None:
    one = line("late", silence=0.4)
    one.next(m.Hello)
    assert one.next(m.Progress).text == "still here"
    assert one.engine.alive


def test_a_command_that_is_not_there() -> None:
    said: list[m.Event] = []
    engine = EngineProcess(["/nowhere/engine"])
    engine.start(said.append)
    assert [type(event) for event in said] == [m.Lost]
    assert "/nowhere/engine" in str(said)
    assert not engine.alive
    engine.send(m.FindModels())
    engine.close()


def test_close_ends_a_stubborn_child_within_a_second(line: Callable[..., Line]) -> None:
    one = line("stubborn")
    one.next(m.Hello)
    began = time.monotonic()
    one.engine.close()
    assert time.monotonic() - began < 1.5  # 0.8 s of patience, then by force
    assert not one.engine.alive
    assert one.events.empty()


def test_close_ends_what_the_child_started(line: Callable[..., Line]) -> None:
    one = line("nested")
    nested = int(one.next(m.Hello).versions["nested"])
    one.engine.close()
    assert ends(nested), "the child's own child is still alive"


def test_stderr_goes_to_the_log_and_nothing_is_printed(
    line: Callable[..., Line], data_folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = line("noisy")
    one.next(m.Hello)
    one.engine.close()
    text = (data_folder / "log.txt").read_text()
    assert "line 0 of" in text
    assert "line 2999 of" in text
    assert capfd.readouterr() == ("", "")


def test_a_text_that_cannot_travel_is_answered_not_swallowed(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.next(m.Hello)
    one.engine.send(m.Tokenize(run=5, request=RunRequest(prompt="a\ud83d")))
    failed = one.next(m.Failed)
    assert (failed.run, "half of a character" in failed.sentence) == (5, True)
    one.engine.send(m.Tokenize(run=6, request=RunRequest(prompt="fine")))
    assert one.next(m.Tokens).run == 6


def test_a_number_that_cannot_travel_is_answered_not_swallowed(line: Callable[..., Line]) -> None:
    one = line("echo")
    one.next(m.Hello)
    one.engine.send(m.Advance(run=5, request=RunRequest(model="m", prompt="p"), steps=2**64))
    failed = one.next(m.Failed)
    assert (failed.run, failed.bad_input, "smaller" in failed.sentence) == (5, True, True)
    one.engine.send(m.Tokenize(run=6, request=RunRequest(prompt="fine")))
    assert one.next(m.Tokens).run == 6


def test_an_answer_too_large_for_the_memory_is_told(
    line: Callable[..., Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(stream: object) -> m.Event:
        raise MemoryError

    monkeypatch.setattr(framing, "read_event", no_room)
    assert f"{UNREADABLE}: MemoryError." in line("echo").next(m.Lost).sentence


def test_close_may_be_called_from_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))
    engine = EngineProcess([sys.executable, str(FAKE), "echo"])
    done = threading.Event()

    def on_event(event: m.Event) -> None:
        engine.close()
        done.set()

    engine.start(on_event)
    assert done.wait(30)
    engine.close()


def test_the_child_ends_when_the_parent_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))
    code = (
        "import sys, threading\n"
        "from explorer.session.connection.remote import EngineProcess\n"
        "engine = EngineProcess([sys.executable, sys.argv[1], 'echo'])\n"
        "engine.start(lambda event: print(event.versions['pid'], flush=True))\n"
        "threading.Event().wait()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(FAKE)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert ends(child), "the child outlived its parent"
