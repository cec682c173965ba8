"""The llama engine's process: reads requests, writes frames."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from explorer.engine.errors import EngineError
from explorer.engine.machine import memory_limit, parent_watch
from explorer.llama_engine.binding.library import PACKAGE, installed_version, library
from explorer.llama_engine.dispatcher import LlamaDispatcher
from explorer.trace.wire import framing, messages
from explorer.trace.wire.messages import Event

_log = logging.getLogger(__name__)
LEAVE_SECONDS = 2.0


def main() -> NoReturn:
    """Serve one client over stdin and stdout until it says Quit or goes away."""
    parent_watch.end_with()
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    os.environ["GGML_NO_BACKTRACE"] = "1"  # a failed assertion would start a debugger
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    frames_in, frames_out = sys.stdin.buffer, _keep_stdout()
    lock = threading.Lock()

    def say(event: Event) -> None:
        with lock:
            try:
                framing.write_event(frames_out, event)
            except framing.WireError as error:
                raise EngineError(
                    f"The answer is too large to send ({error}). Shorten the prompt, or "
                    "record only every fourth layer."
                ) from error
            except (BrokenPipeError, ValueError, OSError):
                os._exit(0)  # the client is gone, and nothing here is worth keeping

    say(messages.Hello(versions={PACKAGE: installed_version()}))
    threading.Thread(target=_beat, args=(say,), name="heartbeat", daemon=True).start()
    dispatcher = LlamaDispatcher(say, memory_limit.set_here)
    threading.Thread(
        target=_read, args=(frames_in, dispatcher), name="requests", daemon=True
    ).start()
    _preload()
    dispatcher.run()
    with lock:
        frames_out.flush()
    # Leave at once: the thread that waits on stdin would abort an orderly shutdown.
    os._exit(0)


def _preload() -> None:
    """Open llama.cpp while nothing is asked yet; where that fails, the first Load says so."""
    try:
        library()
    except EngineError as error:
        _log.warning("%s %s", error.sentence, error.details)


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


def _read(frames: Any, dispatcher: LlamaDispatcher) -> None:
    try:
        while (request := framing.read_request(frames)) is not None:
            dispatcher.accept(request)
    except framing.WireError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("the request stream broke")
    dispatcher.accept(messages.Quit())
    # A pass ends within one node's time; anything slower (a load) is not waited for.
    timer = threading.Timer(LEAVE_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
