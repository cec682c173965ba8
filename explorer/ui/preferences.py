"""Settings that are remembered: switched on or off by rows of the table of actions."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import QObject, Signal

from explorer.ui.memory import Memory

Preference = Literal["captions", "letter_keys", "nats"]


class Preferences(QObject):
    """All are on until they are switched off."""

    changed = Signal(str)

    def __init__(self, memory: Memory | None = None, parent: QObject | None = None) -> None:
        """Without a `memory` nothing outlasts the program."""
        super().__init__(parent)
        self._memory = memory
        self._off: set[str] = set()

    def on(self, name: Preference) -> bool:
        """True unless the user has switched it off."""
        if self._memory is None:
            return name not in self._off
        return self._memory.text(f"setting/{name}", "on") != "off"

    def toggle(self, name: Preference) -> None:
        """On if it is off, off if it is on."""
        off = self.on(name)
        (self._off.add if off else self._off.discard)(name)
        if self._memory is not None:
            self._memory.put(f"setting/{name}", "off" if off else "on")
        self.changed.emit(name)
