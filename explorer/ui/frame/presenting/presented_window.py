"""The window that presenter mode changes."""

from __future__ import annotations

from PySide6.QtWidgets import QMainWindow, QWidget

from explorer.ui.frame.docks import Docks
from explorer.ui.frame.status import StatusBar
from explorer.ui.frame.token_area import TokenArea
from explorer.ui.frame.topbar import TopBar
from explorer.ui.look.appearance import Appearance


class PresentedWindow(QMainWindow):
    """A main window with the parts that presenter mode shows, hides and makes larger."""

    look: Appearance
    topbar: TopBar
    docks: Docks
    sequence: TokenArea
    status: StatusBar
    parts: QWidget  # all of them, in one layout
