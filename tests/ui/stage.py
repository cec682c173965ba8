"""The real window over a scripted engine: what is posted runs when the test says so."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from unittest.mock import patch
from weakref import WeakSet

from PySide6.QtCore import QEvent, QSize
from PySide6.QtWidgets import QApplication

from explorer.ui.access.focus_ring import FocusRings
from explorer.ui.access.shortcut_guard import ShortcutGuard
from explorer.ui.look import system_appearance
from explorer.ui.look.appearance import Appearance
from explorer.ui.settings.settings import Settings
from explorer.ui.window import Window
from tests.session.scripted import Stage
from tests.ui.waiting import activate, resize, settle, show, wait_until


class WindowStage(Stage):
    """`Stage` with a window on its session; nothing is ever remembered outside `folder`."""

    made: ClassVar[WeakSet[WindowStage]] = WeakSet()

    def __init__(self, app: QApplication, folder: Path) -> None:
        super().__init__()
        self.made.add(self)
        self.app = app
        self.memory = Settings(folder / "settings.ini")
        with patch.object(system_appearance, "_session_bus", lambda: False):  # of whoever runs this
            self.look = Appearance(app, self.memory, room=QSize(3840, 2160), dressed=False)
        self._guard = ShortcutGuard(app)
        self._rings = FocusRings(app)
        self.window = Window(self.session, self.look, self.memory)
        self.look.dress()  # when all is there, as in the program: each widget is styled once
        show(self.window)
        activate(self.window)

    def paint(self) -> None:
        """Let Qt do all that waits: layout, panels drawn a moment later, and painting."""
        settle()
        if not self._up_to_date():
            wait_until(self._up_to_date)
            settle()

    def _up_to_date(self) -> bool:
        return all(dock.up_to_date for dock in self.window.docks.docks)

    def resize(self, width: int, height: int) -> None:
        """Give the window a size, until it has it and is painted."""
        resize(self.window, width, height)

    def until_settled(self) -> None:
        """Until every panel shows the newest step, workers' answers included, and is painted."""
        wait_until(lambda: not self.session.stopwatch.waiting)

    def say(self, *events: object) -> None:
        super().say(*events)  # type: ignore[arg-type]
        self.paint()

    def close(self) -> None:
        self.window.close_at_once()
        super().close()
        self._guard.deleteLater()
        self._rings.deleteLater()
        self.window.deleteLater()
        # Not by processEvents: windows that pile up make every later one slower.
        self.app.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.app.setStyleSheet("")  # what is built next is styled once, when all of it is there
