"""From any thread into Qt's: what the engine says arrives where widgets may be touched."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import QObject, Qt, QTimer, Signal

_TURN = 0.008  # seconds


class Bridge(QObject):
    """`post` runs a callable in the thread that made the bridge, in the order posted.

    Calls that come together are run together only while that is quick: painting and the user's
    mouse get their turn between the longer ones.
    """

    _posted = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = True
        self._waiting: deque[Callable[[], None]] = deque()
        self._until = 0.0
        # Not `singleShot`: at 0 ms that is one more posted event, and those are run in one go.
        self._next_turn = QTimer(self)
        self._next_turn.setSingleShot(True)
        self._next_turn.timeout.connect(self._take_turn)
        self._posted.connect(self._run, Qt.ConnectionType.QueuedConnection)

    def post(self, call: Callable[[], None]) -> None:
        """Run `call` soon in the owner's thread; nothing happens after `close`."""
        if self._open:
            self._posted.emit(call)

    @property
    def busy(self) -> bool:
        """True while a turn is still to be taken."""
        return self._next_turn.isActive()

    def close(self) -> None:
        """Drop what is still on its way."""
        self._open = False
        self._waiting.clear()

    def _run(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        if not self._next_turn.isActive():
            self._take_turn()
        elif len(self._waiting) == 1 and monotonic() < self._until:
            self._work()

    def _take_turn(self) -> None:
        if not self._waiting:
            return
        self._until = monotonic() + _TURN
        self._next_turn.start(0)  # now, for a call may fail, or run a loop of its own
        self._work()

    def _work(self) -> None:
        while self._waiting and self._open:
            self._waiting.popleft()()
            if monotonic() >= self._until:
                self._next_turn.start(0)  # behind every timer that came due meanwhile
                break
