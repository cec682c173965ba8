"""What the session needs of an engine, wherever it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from explorer.trace.wire.messages import AnyRequest, Event


class Engine(Protocol):
    """Takes requests, answers with events; both are plain data (`trace.messages`)."""

    def start(self, on_event: Callable[[Event], None]) -> None:
        """Begin; `on_event` is called from any thread, in order.  A dead engine says Lost once."""

    def send(self, request: AnyRequest) -> None:
        """Hand over a request without waiting.  Never raises for a dead engine: it says Lost."""

    def close(self) -> None:
        """End it and free everything; no event comes after this returns."""

    @property
    def elsewhere(self) -> bool:
        """True if it runs by a command that was given: perhaps on another machine."""

    @property
    def alive(self) -> bool:
        """False once it is lost or closed."""
