"""Windows and dialogs that fit the screens that are there."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication, QIcon, QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLayout, QVBoxLayout, QWidget

from explorer.ui.access.accessible import label_lists
from explorer.ui.kit.scrolled import Scrolled, Wrapping
from explorer.ui.look.theme import unit

_LEAST = (200, 60)  # pixels at a zoom of 1, of what scrolls above the buttons
_FRAME, _EDGE = 40, 4  # pixels that a title bar and an edge may take


class Dialog(QDialog):
    """Never larger than the screen: what it says scrolls, its buttons are always seen."""

    def lay_out(self, content: QLayout, buttons: QLayout | QWidget) -> None:
        """Put the buttons under the content."""
        page = Wrapping()
        page.setLayout(content)
        content.setContentsMargins(0, 0, 0, 0)
        label_lists(page)
        if isinstance(buttons, QDialogButtonBox):
            for button in buttons.buttons():
                button.setIcon(QIcon())  # the style's own are in no colour of the theme
        column = QVBoxLayout(self)
        column.addWidget(Scrolled(page, _LEAST), 1)
        if isinstance(buttons, QLayout):
            column.addLayout(buttons)
        else:
            column.addWidget(buttons)

    def size_for(self, size: tuple[int, int]) -> None:
        """Take a size in pixels at a zoom of 1, at the zoom that there is, unless it is shown."""
        if not self.isVisible():
            self.ensurePolished()
            self.resize(*(round(side * unit(self)) for side in size))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            area = self.screen().availableGeometry().adjusted(_EDGE, _FRAME, -_EDGE, -_EDGE)
            self.resize(self.size().boundedTo(area.size()))
            self.move(on_screen(self.frameGeometry()).topLeft())


def on_screen(wanted: QRect) -> QRect:
    """The geometry moved and shrunk until a screen that is there now shows all of it."""
    screens = QGuiApplication.screens()
    if not screens:
        return wanted
    areas = [screen.availableGeometry() for screen in screens]

    def shared(area: QRect) -> int:
        common = area.intersected(wanted)
        return common.width() * common.height()

    best = max(areas, key=shared)
    if best.contains(wanted):
        return wanted
    if not shared(best):
        best = QGuiApplication.primaryScreen().availableGeometry()
    width, height = min(wanted.width(), best.width()), min(wanted.height(), best.height())
    x = min(max(wanted.x(), best.left()), best.right() + 1 - width)
    y = min(max(wanted.y(), best.top()), best.bottom() + 1 - height)
    return QRect(x, y, width, height)
