"""A child that speaks the frames of the engine without a model; what it does is its argument."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from explorer.trace import messages as m
from explorer.trace import wire

out = os.fdopen(os.dup(1), "wb")
behaviour = sys.argv[1]


def echo() -> None:
    """Answers Tokenize with its text, dies on Load, stops reading on FindModels."""
    wire.write_event(out, m.Hello(versions={"pid": str(os.getpid())}))
    while (request := wire.read_request(sys.stdin.buffer)) is not None:
        match request:
            case m.Quit():
                return
            case m.Tokenize():
                wire.write_event(out, m.Tokens(run=request.run, text=request.text, tokens=()))
            case m.Load():
                os._exit(7)
            case m.FindModels():
                wire.write_event(out, m.Progress(run=request.run, text="deaf now"))
                threading.Event().wait()


match behaviour:
    case "echo":
        echo()
    case "stubborn":  # greets, and never ends by itself
        wire.write_event(out, m.Hello())
        while True:
            time.sleep(60)
    case "silent":
        sys.stdin.buffer.read()
    case "garbage":
        out.write(b"Welcome to gpu-box!\nLast login: never\n" * 4)
        out.flush()
        sys.stdin.buffer.read()
    case "half":  # a frame that breaks off
        wire.write_event(out, m.Hello())
        out.write(b"\x40\x00\x00\x00abc")
        out.flush()
        os._exit(0)
    case "other protocol":
        out.write(Path(sys.argv[2]).read_bytes())
        out.flush()
        sys.stdin.buffer.read()
    case "no greeting":
        wire.write_event(out, m.Progress(text="hm"))
        sys.stdin.buffer.read()
    case "noisy":
        for i in range(3000):
            print(f"line {i} of what libraries say", file=sys.stderr)
        echo()
    case "nested":  # starts a child of its own that outlives a polite end
        nested = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        wire.write_event(out, m.Hello(versions={"nested": str(nested.pid)}))
        while True:
            time.sleep(60)
