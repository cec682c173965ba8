"""A child that speaks the frames of the engine without a model; what it does is its argument."""

from __future__ import annotations

import io
import os
import queue
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec

from explorer.engine.machine.client_watch import ClientWatch
from explorer.trace.wire import framing
from explorer.trace.wire import messages as m

out = os.fdopen(os.dup(1), "wb")
behaviour = sys.argv[1]


def echo(*features: str) -> None:
    """Answers Tokenize with its text, dies on Load, stops reading on FindModels."""
    framing.write_event(out, m.Hello(versions={"pid": str(os.getpid())}, features=features))
    watch = ClientWatch()
    while (request := framing.read_request(sys.stdin.buffer)) is not None:
        watch.heard(request)
        match request:
            case m.Quit():
                return
            case m.Tokenize():
                framing.write_event(
                    out, m.Tokens(run=request.run, text=request.request.prompt, tokens=())
                )
            case m.Load():
                os._exit(7)
            case m.FindModels():
                framing.write_event(out, m.Progress(run=request.run, text="unresponsive now"))
                threading.Event().wait()


def runs() -> None:
    """Steps until it is cancelled; what it computes depends on nothing but the step's number.

    A second argument: it dies after so many steps.
    """
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 30
    from tests.session import scripted

    scripted.VOCABULARY = 1 << 14  # each step chooses an id of its own, on a fast machine many
    cancelled: set[int] = set()
    asked: queue.SimpleQueue[m.AnyRequest] = queue.SimpleQueue()

    def say(event: m.Event) -> None:
        framing.write_event(out, event)

    def work() -> None:
        while True:
            request = asked.get()
            if isinstance(request, m.Load):
                say(m.Loaded(run=request.run, card=scripted.card()))
            elif isinstance(request, m.Advance):
                say(m.Prompted(run=request.run, tokens=scripted.PROMPT))
                first = len(request.chosen)
                for index in range(first, first + request.steps):
                    if request.run in cancelled:
                        break
                    say(scripted.stepped(request.run, index))
                    if index + 1 == most:
                        os._exit(9)
            elif isinstance(request, m.Recapture):
                say(scripted.stepped(request.run, len(request.chosen)))
            say(m.Finished(run=request.run, reason="steps"))

    say(m.Hello())
    threading.Thread(target=work, daemon=True).start()
    while (request := framing.read_request(sys.stdin.buffer)) is not None:
        if isinstance(request, m.Quit):
            return
        if isinstance(request, m.Cancel):
            cancelled.add(request.run)
        else:
            asked.put(request)


match behaviour:
    case "echo":
        echo()
    case "models":  # has one model, on a machine of its own
        framing.write_event(out, m.Hello(versions={"torch": "1.0"}, host="far-machine"))
        machine = {"processor": "Abacus", "cores": 64, "memory_bytes": 1 << 39, "gpus": ["G1"]}
        facts = {"models": [{"name": "big-one", "path": "/there/big-one"}], "machine": machine}
        while (request := framing.read_request(sys.stdin.buffer)) is not None:
            framing.write_event(out, m.Facts(run=request.run, facts=facts))
    case "hears":  # ends once it hears nothing more of its client
        echo(m.HEARS_CLIENT)
    case "stubborn":  # greets, and never ends by itself
        framing.write_event(out, m.Hello())
        while True:
            time.sleep(60)
    case "silent":
        sys.stdin.buffer.read()
    case "garbage":
        out.write(b"Welcome to gpu-box!\nLast login: never\n" * 4)
        out.flush()
        sys.stdin.buffer.read()
    case "half":  # a frame that breaks off
        framing.write_event(out, m.Hello())
        out.write(b"\x40\x00\x00\x00abc")
        out.flush()
        os._exit(0)
    case "other protocol":
        out.write(Path(sys.argv[2]).read_bytes())
        out.flush()
        sys.stdin.buffer.read()
    case "huge":  # an array that no machine should make room for
        framing.write_event(out, m.Hello())
        shape = tuple(map(int, sys.argv[2].split(",")))
        array = framing.ArrayHeader("logits", "<f4", shape)
        header = framing.FrameHeader(v=m.PROTOCOL, run=1, kind=sys.argv[3], arrays=(array,))
        raw = msgspec.msgpack.encode(header)
        out.write(struct.pack("<I", len(raw)) + raw)
        out.flush()
        sys.stdin.buffer.read()
    case "runs":  # opens anything, and steps as `scripted` does
        runs()
    case "fails":  # as ssh does where there is no such host
        print("ssh: Could not resolve hostname gpu-box", file=sys.stderr)
        sys.exit(255)
    case "leaves":  # greets, and ends as if all were well
        framing.write_event(out, m.Hello())
    case "unresponsive":  # greets, works, and obeys no cancel
        framing.write_event(out, m.Hello())
        while (request := framing.read_request(sys.stdin.buffer)) is not None:
            framing.write_event(out, m.Progress(run=request.run, text="busy"))
    case "stalls":  # greets, and never answers
        framing.write_event(out, m.Hello())
        threading.Event().wait()
    case "half of a frame":
        framing.write_event(out, m.Hello())
        out.write(b"\x40\x00\x00\x00abc")
        out.flush()
        threading.Event().wait()
    case "slow":  # answers after a long time, of which it tells nothing but that it is there
        framing.write_event(out, m.Hello())
        while (request := framing.read_request(sys.stdin.buffer)) is not None:
            for _ in range(15):
                time.sleep(0.1)
                framing.write_event(out, m.Alive())
            framing.write_event(out, m.Finished(run=request.run, reason="steps"))
    case "trickles":  # its answer comes in pieces, as over a slow line
        framing.write_event(out, m.Hello())
        run = framing.read_request(sys.stdin.buffer).run
        frame = io.BytesIO()
        framing.write_event(frame, m.Finished(run=run, reason="steps" * 10))
        for byte in frame.getvalue():
            time.sleep(0.02)
            out.write(bytes([byte]))
            out.flush()
        sys.stdin.buffer.read()
    case "late":  # says nothing for a long time, though nothing was asked
        framing.write_event(out, m.Hello())
        time.sleep(1.5)
        framing.write_event(out, m.Progress(text="still here"))
        sys.stdin.buffer.read()
    case "no greeting":
        framing.write_event(out, m.Progress(text="hm"))
        sys.stdin.buffer.read()
    case "noisy":
        for i in range(3000):
            print(f"line {i} of what libraries say", file=sys.stderr)
        echo()
    case "nested":  # starts a child of its own that outlives a polite end
        nested = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        framing.write_event(out, m.Hello(versions={"nested": str(nested.pid)}))
        while True:
            time.sleep(60)
