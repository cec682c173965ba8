"""A process that reads requests from stdin and answers with frames on stdout.

Both engines are such a process; what answers the requests is handed in.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, Protocol

from explorer.engine.errors import EngineError
from explorer.engine.machine import parent_watch
from explorer.engine.machine.client_watch import ClientWatch
from explorer.trace.wire import framing, messages
from explorer.trace.wire.framing import RawFrame
from explorer.trace.wire.messages import AnyRequest, Event

_log = logging.getLogger(__name__)
LEAVE_SECONDS = 2.0  # after the client has gone


class Answers(Protocol):
    """What the requests are handed to."""

    def accept(self, request: AnyRequest) -> None:
        """Take a request from any thread."""

    def run(self) -> None:
        """Answer until Quit, in the thread that calls this."""


def serve(
    versions: dict[str, str],
    made: Callable[[Callable[[Event], None], Callable[[RawFrame], None]], Answers],
    before: Callable[[], None] = lambda: None,
    features: tuple[str, ...] = (),
) -> NoReturn:
    """Serve one client until it says Quit or goes away.

    `made` gets the ways to say an event and to pass a frame on; `before` is called once requests
    are read, and before any is answered.  `features`: what the greeting says of the answers.
    """
    parent_watch.end_with()
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
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
    features = (messages.HEARS_CLIENT, *features)
    say(messages.Hello(versions=versions, host=platform.node(), features=features))
    threading.Thread(target=_beat, args=(say,), name="heartbeat", daemon=True).start()
    answers = made(say, partial(write, framing.write_raw))
    threading.Thread(target=_read, args=(frames_in, answers), name="requests", daemon=True).start()
    before()
    answers.run()
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


def _read(frames: Any, answers: Answers) -> None:
    client = ClientWatch()
    try:
        while (request := framing.read_request(frames)) is not None:
            client.heard(request)
            if not isinstance(request, messages.ClientAlive):
                answers.accept(request)
    except framing.WireError as error:
        _log.error("%s", error)
    except Exception:
        _log.exception("the request stream broke")
    answers.accept(messages.Quit())
    # A pass ends within one layer's time; anything slower (a load) is not waited for.
    timer = threading.Timer(LEAVE_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()
