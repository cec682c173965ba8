"""Who takes the colours of a theme, and how they reach them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from explorer.ui.look.theme import Theme


@runtime_checkable
class Themed(Protocol):
    """A widget that paints in a theme's colours, or is laid out by its sizes."""

    def set_theme(self, theme: Theme) -> None:
        """Take them, and pass them on to what is inside."""


def pass_on(widget: QWidget, theme: Theme) -> None:
    """Give a theme to everything inside `widget` that takes one."""
    for child in widget.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
        if isinstance(child, Themed):
            child.set_theme(theme)
        else:
            pass_on(child, theme)
