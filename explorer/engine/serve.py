"""The engine's process: reads requests, writes frames."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from explorer.engine.dispatcher import Dispatcher
from explorer.engine.errors import EngineError
from explorer.engine.machine import memory_limit, parent_watch
from explorer.trace.wire import framing, messages
from explorer.trace.wire.messages import Event

_log = logging.getLogger(__name__)
_VERSIONED = ("torch", "transformers", "tokenizers", "tiktoken", "safetensors", "numpy")


def versions() -> dict[str, str]:
    """Versions of the libraries that decide numbers, read without importing them."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in (*_VERSIONED, "decoder-explorer"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def main() -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away."""
    parent_watch.end_with()
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    # Set before torch is imported: idle worker threads must not spin while sharing cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["HF_HUB_OFFLINE"] = "1"
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    frames_in, frames_out = sys.stdin.buffer, _keep_stdout()
    lock = threading.Lock()

    def write(how: Callable[[Any, Any], None], what: object) -> None:
        with lock:
            try:
                how(frames_out, what)
            except framing.WireError as error:
                raise EngineError(
                    f"The answer is too large to send ({error}). Shorten the prompt, or "
                    "record only every fourth layer."
                ) from error
            except (BrokenPipeError, ValueError, OSError):
                os._exit(0)  # the client is gone, and nothing here is worth keeping

    say = partial(write, framing.write_event)

    say(messages.Hello(versions=versions()))
    threading.Thread(target=_beat, args=(say,), name="heartbeat", daemon=True).start()
    dispatcher = Dispatcher(say, memory_limit.set_here, partial(write, framing.write_raw))
    threading.Thread(
        target=_read, args=(frames_in, dispatcher), name="requests", daemon=True
    ).start()
    dispatcher.run()
    with lock:
        frames_out.flush()
    # Leave at once: the thread that waits on stdin would abort an orderly shutdown.
    os._exit(0)


def _beat(say: Callable[[Event], None]) -> NoReturn:
    """Say every few seconds that the engine is there, whatever it is busy with."""
    while True:
        say(messages.Alive())
        time.sleep(messages.ALIVE_SECONDS)


def _keep_stdout() -> Any:
    """The real stdout for frames; whatever prints goes to stderr, so no print breaks the stream."""
    kept = os.fdopen(os.dup(1), "wb", buffering=1 << 20)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return kept


def _read(frames: Any, dispatcher: Dispatcher) -> None:
    try:
        while (request := framing.read_request(frames)) is not None:
            dispatcher.accept(request)
    except framing.WireError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("the request stream broke")
    dispatcher.accept(messages.Quit())
    # A pass ends within one layer's time; anything slower (a load) is not waited for.
    timer = threading.Timer(2.0, os._exit, (0,))
    timer.daemon = True
    timer.start()
