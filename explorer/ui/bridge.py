"""From any thread into Qt's: what the engine says arrives where widgets may be touched."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal


class Bridge(QObject):
    """`post` runs a callable in the thread that made the bridge, in the order posted."""

    _posted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = True
        self._posted.connect(self._run, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], None]) -> None:
        """Run `call` soon in the owner's thread; nothing happens after `close`."""
        if self._open:
            self._posted.emit(call)

    def close(self) -> None:
        """Drop what is still on its way."""
        self._open = False

    def _run(self, call: Callable[[], None]) -> None:
        if self._open:
            call()
