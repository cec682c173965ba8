"""Engines that die, speak nonsense or mean harm, at random but by seed.

A short part runs each time; `--run-slow` runs the long one.  What must hold throughout: every step
that was on screen is kept, a loss is told at once and in one sentence, and no child is left over.
"""

from __future__ import annotations

import io
import os
import queue
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from explorer.session.connection.remote import EngineProcess
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.card import Check
from explorer.trace.step import Token
from explorer.trace.vocabulary import Vocabulary
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.session.scripted import PROMPT, Stage, card, ids, stepped

FAKE = Path(__file__).with_name("fake_engine.py")
TOLD_SECONDS = 5.0  # a busy machine; alone it takes hundredths
HOSTILE = (
    ("garbage",), ("half",), ("no greeting",), ("fails",), ("huge", "2147483648", "Stepped"),
    ("huge", "9999999,9999999,9999999", "Stepped"), ("silent",),
)  # fmt: skip
long = pytest.mark.slow
posix = pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(FAKE.parents[2]))


class Attacked:
    """A session over children that are killed."""

    def __init__(self) -> None:
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.children: list[EngineProcess] = []
        self.session = Session(self._engine, self._posted.put)

    def _engine(self) -> EngineProcess:
        self.children.append(EngineProcess([sys.executable, str(FAKE), "runs"]))
        return self.children[-1]

    @property
    def state(self) -> State:
        return self.session.state

    def until(self, condition: Callable[[State], bool]) -> None:
        while not condition(self.state):
            self._posted.get(timeout=60)()

    def some_events(self, count: int) -> None:
        for _ in range(count):
            self._posted.get(timeout=60)()

    def kill(self) -> float:
        """Kill the child; seconds until that was told."""
        pid = self.children[-1].pid
        assert pid is not None
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.until(lambda s: s.status.activity == "lost")
        return time.monotonic() - began


def killed_at_random(seed: int, kills: int) -> None:
    draw = random.Random(seed)
    one = Attacked()
    one.session.start_engine()
    one.session.open_model("tiny")
    one.session.set_prompt("hello")
    try:
        for _ in range(kills):
            one.session.run()
            one.some_events(draw.choice((0, 1, 2, 3, 5, 8, 20)))
            before = one.state.trace
            assert one.kill() < TOLD_SECONDS
            after = one.state.trace
            kept = () if before is None else before.steps
            assert (() if after is None else after.steps)[: len(kept)] == kept
            assert one.state.request.prompt == "hello"
            assert len(one.state.error) < 250
            one.session.start_engine()
            if draw.random() < 0.5:  # a run that was lost goes on by itself
                one.until(lambda s: s.card is not None and s.status.activity in ("idle", "running"))
        one.session.pause()
        one.session.step()
        one.until(lambda s: s.trace is not None and s.status.activity == "idle")
        assert ids(one.state) == list(range(10, 10 + len(ids(one.state))))
        assert one.state.drift is None
    finally:
        one.session.close()
    gone([child.pid for child in one.children])


def gone(pids: list[int | None]) -> None:
    """Every child has ended and was waited for: not even a zombie is left."""
    for pid in pids:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@posix
def test_engines_killed_at_random_moments() -> None:
    killed_at_random(seed=12, kills=5)


@long
@posix
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_many_engines_killed_at_random_moments(seed: int) -> None:
    killed_at_random(seed, kills=15)


def said(stage: Stage) -> tuple[m.Event, ...]:
    """One event of each kind, with the run number that the session waits for."""
    run = stage.engine.last(m.Advance).run
    index = 0 if stage.state.trace is None else len(stage.state.trace.steps)
    return (
        m.Hello(), m.Progress(run=run, text="read", fraction=0.5), m.Loaded(run=run, card=card()),
        m.Tokens(run=run, text="a", tokens=(Token(1, b"a"),)), m.Prompted(run=run, tokens=PROMPT),
        stepped(run, index), stepped(run, index), stepped(run, index),
        m.Checked(run=run, check=Check(name="x", passed=True, measured=0.0, tolerance=1.0)),
        m.Facts(run=run, facts={"a": [1, 2.5, "x"]}), m.Finished(run=run, reason="steps"),
        m.Failed(run=run, sentence="No."),
        m.Spelled(run=run, vocabulary=Vocabulary.of([Token(i, b"t") for i in range(5)])),
    )  # fmt: skip


def mutant(event: m.Event, draw: random.Random) -> bytes:
    """A frame with some bytes changed, lost or doubled."""
    frame = io.BytesIO()
    framing.write_event(frame, event)
    raw = bytearray(frame.getvalue())
    for _ in range(draw.choice((1, 1, 2, 5))):
        at = draw.randrange(len(raw))
        match draw.randrange(4):
            case 0:
                raw[at] = draw.randrange(256)
            case 1:
                raw[at] ^= 1 << draw.randrange(8)
            case 2:
                del raw[at : at + draw.choice((1, 4, 100))]
            case 3:
                raw[at:at] = raw[at : at + draw.choice((1, 4, 100))]
        if not raw:
            break
    return bytes(raw)


def malformed(stage: Stage, seed: int, count: int) -> int:
    """Mutants read and shown; how many were still frames."""
    draw = random.Random(seed)
    stage.loaded().session.run()
    stage.prompted()
    stage.steps(3)
    sound = 0
    for _ in range(count):
        raw = mutant(draw.choice(said(stage)), draw)
        before = stage.state.trace
        try:
            event = framing.read_event(io.BytesIO(raw))
        except framing.WireError:
            continue
        if event is None:
            continue
        sound += 1
        stage.say(event)
        after = stage.state.trace
        assert before is not None
        assert after is not None
        same = after.steps[: len(before.steps)]
        assert all(
            np.array_equal(a.logits, b.logits) for a, b in zip(same, before.steps, strict=True)
        )
        if not stage.state.busy:
            stage.session.run()
    return sound


def test_frames_changed_at_random_are_refused_or_harmless(stage: Stage) -> None:
    assert 0 < malformed(stage, seed=1, count=600) < 600


@long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(20))
def test_many_frames_changed_at_random(stage: Stage, seed: int) -> None:
    malformed(stage, seed, count=3000)


@pytest.mark.parametrize("behaviour", HOSTILE, ids=" ".join)
def test_hostile_engines_are_lost_once_in_one_sentence(behaviour: tuple[str, ...]) -> None:
    events: queue.SimpleQueue[m.Event] = queue.SimpleQueue()
    hello = 0.3 if behaviour == ("silent",) else 60.0
    engine = EngineProcess([sys.executable, str(FAKE), *behaviour], hello)
    engine.start(events.put)
    while not isinstance(event := events.get(timeout=60), m.Lost):
        assert isinstance(event, m.Hello)
    assert len(event.sentence) < 300
    assert "\n" not in event.sentence
    assert "Traceback" not in event.sentence
    engine.close()
    assert events.empty()
    assert not engine.alive
    if sys.platform != "win32":
        gone([engine.pid])
