"""The engine without a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

from explorer.engine.dispatcher import Dispatcher
from explorer.engine.serve import versions
from explorer.trace.wire import messages
from explorer.trace.wire.messages import AnyRequest, Event


class LocalEngine:
    """The same engine in this process, on a thread of its own."""

    elsewhere = False

    def __init__(self) -> None:
        self._dispatcher: Dispatcher | None = None
        self._thread: threading.Thread | None = None

    def start(self, on_event: Callable[[Event], None]) -> None:
        """Begin; the first event is Hello."""
        dispatcher = self._dispatcher = Dispatcher(on_event)
        on_event(messages.Hello(versions=versions()))
        self._thread = threading.Thread(target=dispatcher.run, name="engine", daemon=True)
        self._thread.start()

    def send(self, request: AnyRequest) -> None:
        """Hand over a request without waiting."""
        if self._dispatcher is not None:
            self._dispatcher.accept(request)

    def close(self) -> None:
        """Stop what runs and wait for the thread."""
        if self._dispatcher is not None and self._thread is not None:
            self._dispatcher.accept(messages.Quit())
            self._thread.join()
            self._dispatcher.join()
        self._dispatcher = self._thread = None

    @property
    def alive(self) -> bool:
        """True between start and close."""
        return self._thread is not None and self._thread.is_alive()
