"""A random model of a billion parameters in four bits: opened, stepped, its atlas drawn.

Runs only with `--run-big`: it writes 0.7 GB and takes minutes.  `-s` shows the figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from explorer.figures.attention import atlas
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.trace.wire import messages
from explorer.wording import short_bytes
from tests.llama_engine import big_gguf
from tests.llama_engine.test_serve import Child, one

TEXT = "the cat sat on the mat and the dog sat "  # 10 tokens
STEPS = 16
CANCEL_SECONDS = 2.0  # half a second where nothing else runs
MEMORY = 1.2  # of the file, the cache and what was captured


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = big_gguf.write(tmp_path_factory.mktemp("big") / "random-1b.gguf")
    yield path
    path.unlink()


def peak_bytes(child: Child) -> int:
    """The most memory that the process has held, pages of the mapped file included (Linux)."""
    lines = Path(f"/proc/{child.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def record_bytes(trace: Trace) -> int:
    arrays = [
        a for s in trace.steps for r in s.layers for a in (r.queries, r.keys) if a is not None
    ]
    return sum(array.nbytes for array in arrays)


@pytest.mark.big
@pytest.mark.timeout(1800)
def test_a_billion_parameters_are_watched(file: Path) -> None:
    began = time.perf_counter()
    child = Child()
    free = psutil.Process(child.process.pid).memory_info().rss
    events = child.ask(messages.Load(run=1, model=str(file), threads=1))
    card = one(events, messages.Loaded).card
    print(f"\nprocess started and model opened: {time.perf_counter() - began:.2f} s")
    assert card.offers("capture")

    request = RunRequest(prompt=TEXT * 12)
    child.send(messages.Advance(run=2, request=request, chosen=(), steps=STEPS))
    trace = Trace(request=request, card=card, prompt=())
    while not isinstance(event := child.read(2), messages.ENDS):
        if isinstance(event, messages.Prompted):
            trace = Trace(request=request, card=card, prompt=event.tokens)
        elif isinstance(event, messages.Stepped):
            trace = trace.appended(event.step, event.token)
    assert len(trace.steps) == STEPS
    prefill, *decode = trace.steps
    each = sum(step.engine_ms for step in decode) / len(decode)
    print(f"prefill of {len(trace.prompt)} tokens: {prefill.engine_ms / 1e3:.2f} s")
    print(f"decode, everything recorded: {each:.0f} ms a token")

    began = time.perf_counter()
    *_, drawn = atlas.build(trace, STEPS - 1)
    print(f"atlas of {card.layers} layers: {time.perf_counter() - began:.2f} s")
    assert drawn.complete
    assert all(heads == big_gguf.HEADS for heads in drawn.heads)
    assert not any(drawn.reasons)

    held = peak_bytes(child)
    meant = file.stat().st_size + trace.steps[-1].cache_bytes + record_bytes(trace)
    print(f"memory at its peak {short_bytes(held)}, at its start {short_bytes(free)}")
    print(f"file, cache and records {short_bytes(meant)}, ratio {(held - free) / meant:.2f}")
    assert held - free <= MEMORY * meant

    child.send(messages.Advance(run=3, request=RunRequest(prompt=TEXT * 200), steps=1))
    while not isinstance(child.read(3), messages.Progress):
        pass
    began = time.perf_counter()
    child.send(messages.Cancel(run=3))
    assert child.until_end(3)[-1] == messages.Finished(run=3, reason="cancelled")
    waited = time.perf_counter() - began
    print(f"cancelled while reading 2,000 tokens: {waited:.2f} s")
    assert waited <= CANCEL_SECONDS
    child.close()
