"""The line over both sides: linked or not, what differs, swap, and how tokens are matched."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QToolButton, QWidget

from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.kit.boxes import line
from explorer.ui.kit.elided import ResultLabel

_BUTTONS = ("link-sides", "side-difference", "first-difference", "swap-sides")


class LinkBar(QWidget):
    """Its buttons are rows of the table of actions."""

    def __init__(self, actions: OfferedActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.words = ResultLabel()
        self.words.setAccessibleDescription(self.tr("How the two sides belong together"))
        row = line(self, gap=4, edges=(8, 2, 4, 2))
        for name in _BUTTONS:
            row.addWidget(_button(actions, name))
        row.addWidget(self.words, 1)
        close = _button(actions, "side-by-side")
        close.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        row.addWidget(close)


def _button(actions: OfferedActions, name: str) -> QToolButton:
    button = QToolButton()
    button.setDefaultAction(actions.by_id[name])
    button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    return button
