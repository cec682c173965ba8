"""Settings that are remembered: switched on or off by rows of the table of actions."""

from __future__ import annotations

from typing import Literal, get_args

from PySide6.QtCore import QObject, Signal

from explorer.ui.settings.settings import Settings

Preference = Literal["captions", "full", "letter_keys", "nats"]


class Preferences(QObject):
    """All are on until they are switched off."""

    changed = Signal(str)

    def __init__(self, memory: Settings | None = None, parent: QObject | None = None) -> None:
        """Without a `memory` nothing outlasts the program."""
        super().__init__(parent)
        self._memory = memory
        self._off: set[str] = set()
        if memory is not None:  # read once: what is on is asked at each change of state
            names = get_args(Preference)
            self._off = {name for name in names if memory.text(_key(name), "on") == "off"}

    def on(self, name: Preference) -> bool:
        """True unless the user has switched it off."""
        return name not in self._off

    def begin_simply(self) -> None:
        """The simple layout for whoever has no settings yet; once, at the first start."""
        if self._memory is not None and self._memory.fresh and self.on("full"):
            self.toggle("full")

    def toggle(self, name: Preference) -> None:
        """On if it is off, off if it is on."""
        off = self.on(name)
        (self._off.add if off else self._off.discard)(name)
        if self._memory is not None:
            self._memory.put(_key(name), "off" if off else "on")
        self.changed.emit(name)


def _key(name: str) -> str:
    """Where a setting is kept."""
    return f"setting/{name}"
