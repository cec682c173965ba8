"""Which screen a class looks at, where there are two."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication, QScreen
from PySide6.QtWidgets import QWidget


def for_class(own: QScreen) -> QScreen | None:
    """A screen beside one's own that shows another part of the desktop; None if there is none."""
    others = (screen for screen in QGuiApplication.screens() if screen is not own)
    return next((s for s in others if not s.geometry().intersects(own.geometry())), None)


def move_to(window: QWidget, screen: QScreen) -> None:
    """Put a window on a screen; the window manager then knows which one it is to fill."""
    if window.isMaximized():
        window.showNormal()  # a window manager moves no window that fills its screen
    window.windowHandle().setScreen(screen)
    area = screen.availableGeometry()
    window.setGeometry(area.adjusted(area.width() // 8, area.height() // 8, -area.width() // 8, -1))
