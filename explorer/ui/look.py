"""Theme and size of everything, changed at run time and remembered."""

from __future__ import annotations

from PySide6.QtCore import QObject, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from explorer.ui import theme as themes
from explorer.ui.memory import Memory
from explorer.ui.theme import MAX_SCALE, MIN_SCALE, THEMES, Theme

ZOOM_STEP = 1.1
PRESENTER_ZOOM = 1.3
LEAST_SIZE = (900, 600)  # pixels that the window needs at a zoom of 1; a test holds it to that


class Look(QObject):
    """Applies theme and zoom to the application; `changed` tells what paints itself."""

    changed = Signal()

    def __init__(
        self,
        app: QApplication,
        memory: Memory,
        parent: QObject | None = None,
        room: QSize | None = None,
    ) -> None:
        """`room` is the size of the screen; None = ask for it."""
        super().__init__(parent)
        self._room = room
        self._app = app
        self._memory = memory
        self.theme: Theme = THEMES.get(memory.text("theme"), _system_theme())
        self.scale = min(max(memory.number("zoom", 1.0), MIN_SCALE), MAX_SCALE)
        self.presenting = False
        self._apply()

    @property
    def whole_scale(self) -> float:
        """The zoom on screen: presenter mode included, and never so large that parts fall off."""
        wanted = self.scale * (PRESENTER_ZOOM if self.presenting else 1.0)
        return min(wanted, self._largest(), MAX_SCALE)

    def set_theme(self, name: str) -> None:
        self.theme = THEMES[name]
        self._memory.put("theme", name)
        self._apply()

    def zoom(self, direction: int) -> None:
        """One notch larger (+1) or smaller (-1); 0 = normal size."""
        wanted = self.scale * ZOOM_STEP**direction if direction else 1.0
        self.scale = min(max(round(wanted, 3), MIN_SCALE), self._largest(), MAX_SCALE)
        self._memory.put("zoom", self.scale)
        self._apply()

    def present(self, on: bool, room: QSize) -> None:
        """Larger, on a screen of this size; not remembered."""
        self.presenting = on
        self._room = room
        self._apply()

    def _largest(self) -> float:
        """The zoom at which the whole window just fits the screen."""
        room = self._room
        if room is None:
            screen = QGuiApplication.primaryScreen()
            if screen is None:
                return MAX_SCALE
            room = screen.availableSize()
        return max(1.0, min(room.width() / LEAST_SIZE[0], room.height() / LEAST_SIZE[1]))

    def _apply(self) -> None:
        themes.apply(self._app, self.theme, self.whole_scale)
        self.changed.emit()


def _system_theme() -> Theme:
    dark = QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return THEMES["dark" if dark else "light"]
