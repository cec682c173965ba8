"""Eight thousand tokens of a real model: in bounded memory, cancelled at once, every map there."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from explorer.session.connection.remote import EngineProcess
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m
from tests.session.scripted import card

pytestmark = [
    pytest.mark.slow,
    pytest.mark.smollm2,
    pytest.mark.timeout(600),
]
WORDS = "The quick brown fox jumps over the lazy dog while the rain in Spain stays mainly on it. "
BOUND = 2.2e9


class Talk:
    """One engine in a process of its own."""

    def __init__(self) -> None:
        self.events: queue.Queue[m.Event] = queue.Queue()
        self.engine = EngineProcess()
        self.engine.start(self.events.put)

    def until(self, *kinds: type[m.Event]) -> m.Event:
        while True:
            event = self.events.get(timeout=400)
            assert not isinstance(event, (m.Failed, m.Lost)), event
            if isinstance(event, kinds):
                return event

    def memory(self, peak: bool = False) -> int:
        """Bytes that both processes hold now, or held at most."""
        field = "VmHWM" if peak else "VmRSS"
        pids = (os.getpid(), self.engine.pid)
        return sum(_status(Path(f"/proc/{pid}/status"), field) for pid in pids)


def _status(path: Path, field: str) -> int:
    line = next(line for line in path.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


@pytest.fixture
def talk() -> Iterator[Talk]:
    made = Talk()
    made.engine.send(m.Load(run=1, model="smollm2"))
    made.until(m.Loaded)
    yield made
    made.engine.close()


def test_eight_thousand_tokens(talk: Talk) -> None:
    ask = talk.engine.send
    ask(m.Advance(run=2, request=RunRequest(prompt=WORDS)))
    loaded = talk.until(m.Prompted)
    assert isinstance(loaded, m.Prompted)
    talk.until(m.Finished)
    prompt = WORDS * (8000 // (len(loaded.tokens) - 1))
    request = RunRequest(prompt=prompt)
    before = talk.memory()

    ask(m.Advance(run=3, request=request, steps=2))
    while talk.until(m.Progress).fraction < 0.3:  # type: ignore[attr-defined]
        pass
    asked = time.perf_counter()
    ask(m.Cancel(run=3))
    assert talk.until(m.Finished).reason == "cancelled"  # type: ignore[attr-defined]
    waited = time.perf_counter() - asked
    assert waited < 1

    started = time.perf_counter()
    ask(m.Advance(run=4, request=request, steps=2))
    prompted = talk.until(m.Prompted)
    assert isinstance(prompted, m.Prompted)
    assert 7900 < len(prompted.tokens) <= 8192
    steps = [talk.until(m.Stepped) for _ in range(2)]
    spent = time.perf_counter() - started
    taken = talk.memory(peak=True) - before
    slots = len(prompted.tokens)
    print(f"{slots} tokens, {spent:.0f} s, {taken / 1e9:.2f} GB, cancel {waited:.2f} s")
    assert taken < BOUND

    trace = Trace(request=request, card=card(layers=30), prompt=prompted.tokens)
    for step in steps:
        assert isinstance(step, m.Stepped)
        trace = trace.appended(step.step, step.token)
    first = trace.steps[0]
    assert "chunks" in first.note
    assert first.layers[0].mask is not None
    assert first.layers[0].mask.kind == "causal"
    for layer, head in ((0, 0), (17, 5), (29, 8)):
        rows = trace.weights(0, layer, head, slice(slots - 256, slots))
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-4)
        assert (np.triu(rows, slots - 255) == 0).all()
        assert trace.weights(1, layer, head).shape == (1, slots + 1)
