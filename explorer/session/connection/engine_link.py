"""The session's line to whichever engine is running now.

Events come from any thread; they are handed on in the owner's thread, and those of an engine that
has been replaced are dropped on the way.  An engine that does not obey a cancel is unresponsive: a
model's tokenizer, template or code never returns there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from explorer.session.connection.ports import Engine
from explorer.trace.wire.messages import ENDS, KEEPS_RECORDS, AnyRequest, Cancel, Event, Hello, Lost

Post = Callable[[Callable[[], None]], None]
PATIENCE_SECONDS = 8.0  # the opening of one file takes less
FIRST_PATIENCE_SECONDS = 60.0  # while the engine has said nothing: it still imports its libraries


class EngineLink:
    """Starts, replaces and ends engines; numbers every request."""

    def __init__(
        self,
        factory: Callable[[], Engine],
        post: Post,
        receive: Callable[[Event], None],
        unresponsive: Callable[[], None] = lambda: None,
    ) -> None:
        """`unresponsive` is called in the owner's thread when the engine obeys no cancel."""
        self._factory = factory
        self._post = post
        self._receive = receive
        self._engine: Engine | None = None
        self._run = 0
        self._unresponsive = unresponsive
        self._spoke = False  # it has answered something, so it is past its imports
        self._cancelled: dict[int, float] = {}  # runs that have not ended yet, and until when
        self._timer: threading.Timer | None = None
        self.patience = PATIENCE_SECONDS  # of this link; tests have more
        self.layer_seconds = (
            0.0  # at most, in one layer of the open model: no cancel is heard there
        )
        self.keeps_records = False  # on another machine, until they are looked at
        self.arrived_at = 0.0  # perf_counter at which the event in hand reached this process

    @property
    def alive(self) -> bool:
        return self._engine is not None and self._engine.alive

    @property
    def elsewhere(self) -> bool:
        """True if the engine may run on another machine."""
        return self._engine is not None and self._engine.elsewhere

    def start(self) -> None:
        """A new engine, in place of any old one."""
        self.close()
        try:
            engine = self._factory()
        except OSError as error:
            self._receive(Lost(sentence=f"The engine could not be started: {error}."))
            return
        self._engine = engine

        def on_event(event: Event) -> None:
            at = time.perf_counter()
            self._post(lambda: self._arrived(engine, event, at))

        engine.start(on_event)

    def ask(self, request: AnyRequest) -> int:
        """Send with a new run number, and return it."""
        self._run += 1
        self.send(msgspec.structs.replace(request, run=self._run))
        return self._run

    def send(self, request: AnyRequest) -> None:
        """Send as it is: what concerns a run that is under way."""
        if self._engine is None:
            return
        self._engine.send(request)
        if isinstance(request, Cancel):
            patience = self.patience if self._spoke else FIRST_PATIENCE_SECONDS
            until = time.monotonic() + patience + self.layer_seconds
            self._cancelled.setdefault(request.run, until)
            self._watch()

    def _watch(self) -> None:
        """Look again when the first of the cancelled runs is due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._cancelled:
            due = max(0.0, min(self._cancelled.values()) - time.monotonic())
            self._timer = threading.Timer(due, self._post, (self._look,))
            self._timer.daemon = True
            self._timer.start()

    def _look(self) -> None:
        if any(until <= time.monotonic() for until in self._cancelled.values()):
            self._cancelled.clear()
            self._unresponsive()
        self._watch()

    def _expect_nothing(self) -> None:
        """No cancelled run is waited for."""
        self._cancelled.clear()
        self._watch()

    def close(self) -> None:
        self._expect_nothing()
        self._spoke = False
        self.layer_seconds = 0.0
        self.keeps_records = False
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _arrived(self, engine: Engine, event: Event, at: float) -> None:
        if engine is self._engine:
            self.arrived_at = at
            if isinstance(event, Hello):
                self.keeps_records = engine.elsewhere and KEEPS_RECORDS in event.features
            self._spoke = self._spoke or not isinstance(event, Hello | Lost)
            if isinstance(event, ENDS) and self._cancelled.pop(event.run, None) is not None:
                self._watch()
            self._receive(event)
            if isinstance(event, Lost) and engine is self._engine:  # nothing of it ends any more
                self._expect_nothing()
