"""Tries an engine of the user's once, beside the one that runs: what is there, if it answers?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from explorer.session.connection import other_versions
from explorer.session.connection.engine_link import Post
from explorer.session.connection.remote import EngineProcess
from explorer.trace.found_models import Library
from explorer.trace.wire import messages as m


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of it; `problem` says why nothing did."""

    problem: str = ""
    host: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    differs: str = ""  # from the versions here, as a sentence
    library: Library | None = None


class EngineTest:
    """Ends by itself with the answer, or by `stop`; a session of its own is not needed."""

    def __init__(self, command: tuple[str, ...], post: Post, done: Callable[[Tried], None]) -> None:
        """`done` is called once, in the owner's thread."""
        self._post, self._done = post, done
        self._hello: m.Hello | None = None
        self._over = False
        self._engine = EngineProcess(command)
        self._engine.start(lambda event: post(lambda: self._received(event)))
        self._engine.send(m.FindModels(run=1))

    def stop(self) -> None:
        """End it; nothing is told any more."""
        self._over = True
        self._engine.close()

    def _received(self, event: m.Event) -> None:
        if self._over:
            return
        if isinstance(event, m.Hello):
            self._hello = event
        elif isinstance(event, m.Lost | m.Failed):
            self._end(Tried(problem=event.sentence))
        elif isinstance(event, m.Facts) and self._hello is not None:
            try:
                library = msgspec.convert(event.facts, Library)
            except msgspec.ValidationError as error:
                self._end(Tried(problem=f"The engine's list of models could not be read: {error}."))
                return
            versions = self._hello.versions
            differs = other_versions.difference(versions)
            self._end(Tried("", self._hello.host, versions, differs, library))

    def _end(self, found: Tried) -> None:
        self.stop()
        self._done(found)
