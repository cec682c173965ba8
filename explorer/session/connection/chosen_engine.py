"""Which engine is started next: this program's own, or one by a command of the user's."""

from __future__ import annotations

from explorer.session.connection.remote import EngineProcess


class ChosenEngine:
    """Called for each engine that a session starts; `command` may change in between."""

    def __init__(self, command: tuple[str, ...] = ()) -> None:
        """`command`: its words; none for this program's own engine."""
        self.command = command

    def __call__(self) -> EngineProcess:
        return EngineProcess(self.command or None)
