"""Qt's events until something has come about, for a window that nobody sits at."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QElapsedTimer, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

_LOOK_AGAIN_MS = 5


def run_until(app: QApplication, done: Callable[[], bool], patience_ms: int) -> None:
    """Process events until `done`, or for so long; between events the thread rests.

    With a time limit of its own, `processEvents` would not wait for an event but poll without rest.
    """
    clock = QElapsedTimer()
    clock.start()
    wake = QTimer()
    wake.start(_LOOK_AGAIN_MS)
    while not done() and clock.elapsed() < patience_ms:
        app.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
