"""A child that speaks the engine's frames without llama.cpp; the name of the file says how it acts.

Words of the name: `refused`, `crashes` (as it opens), `dies` (as it runs), `stuck` (obeys no
cancel), `endless` (steps until it is cancelled).
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from pathlib import Path

from explorer.trace.wire import framing
from explorer.trace.wire import messages as m
from tests.session import scripted

out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
writing = threading.Lock()
cancelled: set[int] = set()
resampled: dict[int, m.Resample] = {}
asked: queue.SimpleQueue[m.AnyRequest] = queue.SimpleQueue()
name = ""


def say(event: m.Event) -> None:
    with writing:
        framing.write_event(out, event)


def load(request: m.Load) -> None:
    global name
    name = Path(request.model).stem
    say(m.Progress(run=request.run, text=f"Opening {name}"))
    if "refused" in name:
        say(m.Failed(run=request.run, sentence="llama.cpp has no such architecture."))
        return
    if "crashes" in name:
        signal.raise_signal(signal.SIGSEGV)
    versions = {"pid": str(os.getpid()), "model": request.model, "form": request.form}
    card = scripted.card(
        "as the file says",
        dtype="Q4_1",
        versions=versions,
        cache_type_k=request.cache_type_k,
        gpu_layers=request.gpu_layers,
    )
    say(m.Loaded(run=request.run, card=card))


def advance(request: m.Advance) -> None:
    if "dies" in name:
        signal.raise_signal(signal.SIGSEGV)
    say(m.Prompted(run=request.run, tokens=scripted.PROMPT))
    if "stuck" in name:
        threading.Event().wait()
    first = len(request.chosen)
    last = sys.maxsize if "endless" in name else first + request.steps
    index, reason = first, "steps"
    while index < last:
        if request.run in cancelled:
            reason = "cancelled"
            break
        say(scripted.stepped(request.run, index % 20))
        index += 1
    say(m.Finished(run=request.run, reason=reason))


def work() -> None:
    while True:
        request = asked.get()
        match request:
            case m.Load():
                load(request)
            case m.Advance():
                advance(request)
            case m.Recapture():
                say(scripted.stepped(request.run, len(request.chosen)))
                say(m.Finished(run=request.run, reason="steps"))
            case m.MeasureTraffic():
                say(m.Facts(run=request.run, facts={"from": "child"}))
            case _:
                say(m.Finished(run=request.run, reason=type(request).__name__))


say(m.Hello())
say(m.Alive())
threading.Thread(target=work, daemon=True).start()
while (request := framing.read_request(sys.stdin.buffer)) is not None:
    match request:
        case m.Quit():
            break
        case m.Cancel():
            cancelled.add(request.run)
        case m.Tokenize():
            say(m.Tokens(run=request.run, text=request.request.prompt, tokens=()))
        case _:
            asked.put(request)
os._exit(0)
