"""The session's line to whichever engine is running now.

Events come from any thread; they are handed on in the owner's thread, and those of an engine that
has been replaced are dropped on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from explorer.session.ports import Engine
from explorer.trace.messages import AnyRequest, Event, Lost

Post = Callable[[Callable[[], None]], None]


class Link:
    """Starts, replaces and ends engines; numbers every request."""

    def __init__(
        self, factory: Callable[[], Engine], post: Post, receive: Callable[[Event], None]
    ) -> None:
        self._factory = factory
        self._post = post
        self._receive = receive
        self._engine: Engine | None = None
        self._run = 0
        self.arrived_at = 0.0  # perf_counter at which the event in hand reached this process

    @property
    def alive(self) -> bool:
        return self._engine is not None and self._engine.alive

    def start(self) -> None:
        """A new engine, in place of any old one."""
        self.close()
        try:
            engine = self._factory()
        except OSError as error:
            self._receive(Lost(sentence=f"The engine could not be started: {error}"))
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
        if self._engine is not None:
            self._engine.send(request)

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _arrived(self, engine: Engine, event: Event, at: float) -> None:
        if engine is self._engine:
            self.arrived_at = at
            self._receive(event)
