"""Tool tips that are made when they are asked for, and the text of those that are set."""

from __future__ import annotations

from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QToolTip, QWidget

from explorer.figures.text.sentences import fitting

_PATH = 300  # letters: a tip is where a path is read whole


def show(event: QHelpEvent, text: str, widget: QWidget) -> None:
    """Show a tip where the mouse rests; an empty one hides what is there."""
    QToolTip.showText(event.globalPos(), tip(text), widget)


def tip(text: str) -> str:
    """A text that may hold anything as a tip that fits the screen; its lines stay."""
    return fitting(text, word=_PATH, keep="\n")
