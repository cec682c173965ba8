"""Qt's events, until something has come about."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import QEventLoop
from PySide6.QtWidgets import QApplication


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Process events until the condition holds; it must within the time."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "the condition never came true"
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, 20)
