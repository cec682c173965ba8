"""One QApplication for all tests of the window; a warning from Qt fails the test that caused it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QMessageLogContext, QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QWidget

from explorer.ui.threads.gc_timer import GcTimer
from tests.ui.stage import WindowStage

_HARMLESS = (
    "propagateSizeHints",
    "does not support raise()",
    "Could not load font",
    "could not connect to display",
)


@pytest.fixture(scope="session")
def qapp() -> QApplication:
    """The application; created once, never destroyed before the process ends."""
    app = QApplication.instance() or QApplication(["decoder-explorer"])
    assert isinstance(app, QApplication)
    app.setQuitOnLastWindowClosed(False)
    GcTimer(app)  # as in the program: a widget of an earlier test dies in this thread or not at all
    return app


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[WindowStage]:
    """The real window over a scripted engine; a file that starts further on has its own."""
    stage = WindowStage(qapp, tmp_path)
    yield stage
    stage.close()


@pytest.fixture(scope="module", autouse=True)
def windows_are_freed(request: pytest.FixtureRequest) -> Iterator[None]:
    """A closed window that something still holds makes every later collection slower."""
    failed = request.session.testsfailed
    yield
    gc.collect()
    held = len(WindowStage.made)
    WindowStage.made.clear()
    # pytest still holds the last ones, and a traceback those of a failed test.
    assert request.session.testsfailed > failed or held < 4, f"{held} closed windows are still held"
    if not held:
        gc.freeze()  # what libraries made since stays to the end


def _owner(widget: QWidget) -> QWidget:
    """The window that a menu or a dialog belongs to, or itself."""
    while (parent := widget.parentWidget()) is not None:
        widget = parent
    return widget


@pytest.fixture(autouse=True)
def no_widget_outlives_its_test() -> Iterator[None]:
    """What a test left on screen or in a menu would slow down, and could break, those after it.

    A window that several tests of a file look at was there before, or has the property `shared`;
    what it made for itself stays with it.
    """
    app = QApplication.instance()
    before = set(app.topLevelWidgets()) if isinstance(app, QApplication) else set()
    yield
    app = QApplication.instance()
    if isinstance(app, QApplication):
        for widget in app.topLevelWidgets():
            owner = _owner(widget)
            if owner not in before and not owner.property("shared"):
                widget.deleteLater()
        app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


@pytest.fixture(autouse=True)
def qt_messages() -> Iterator[list[str]]:
    """Collects what Qt has to complain about during a test."""
    messages: list[str] = []

    def keep(kind: QtMsgType, _context: QMessageLogContext, message: str) -> None:
        grave = kind in (QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg)
        if grave and not any(known in message for known in _HARMLESS):
            messages.append(message)

    previous = qInstallMessageHandler(keep)
    yield messages
    qInstallMessageHandler(previous)
    assert not messages, f"Qt complained: {messages}"
