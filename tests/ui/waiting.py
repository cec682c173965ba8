"""Qt's events, until something has come about: tests wait for conditions, never for luck."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from PySide6.QtCore import (
    QAbstractEventDispatcher,
    QCoreApplication,
    QEvent,
    QEventLoop,
    QSize,
    QTimer,
)
from PySide6.QtWidgets import QApplication, QWidget

_LOOK_AGAIN_MS = 5
_ROUNDS = 100  # a timer that fires at every turn would never let the loop come to rest


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Process events until the condition holds; it must within the time.

    Between events it rests, so that what is waited for has the processor.
    """
    end = monotonic() + seconds
    wake = QTimer()  # what a condition reads may change without an event
    wake.start(_LOOK_AGAIN_MS)
    while not condition():
        assert monotonic() < end, "the condition never came true"
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def settle() -> None:
    """Process events until none is left: a layout, what follows from it, and its painting.

    What is to be deleted later is deleted, as the program's own loop does at every turn.
    """
    dispatcher = QAbstractEventDispatcher.instance()
    for _ in range(_ROUNDS):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
        if not dispatcher.processEvents(QEventLoop.ProcessEventsFlag.AllEvents):
            return


def show(window: QWidget) -> None:
    """Show a window, until the screen has it in the size that was asked for."""
    window.show()
    wait_until(lambda: window.windowHandle().isExposed() and _granted(window))
    settle()


def activate(window: QWidget) -> None:
    """Until a shown window has the keyboard: without it no widget in it has the focus."""

    def active() -> bool:
        if not window.isActiveWindow():
            window.activateWindow()
        return window.isActiveWindow()

    wait_until(active)
    settle()


def resize(window: QWidget, width: int, height: int) -> None:
    """Resize a window that is on screen, until the window manager has granted it."""
    window.resize(max(width, window.minimumWidth()), max(height, window.minimumHeight()))
    wait_until(lambda: _granted(window))
    settle()


def _granted(window: QWidget) -> bool:
    """True if the screen's own word of the size, which comes later, is the widget's."""
    size: QSize = window.windowHandle().size()
    return size == window.size()
