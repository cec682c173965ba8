"""How a theme reaches Qt: one palette, one style, one font and one style sheet for the program."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QStyleFactory

from explorer.ui.look.stylesheet import stylesheet
from explorer.ui.look.theme import MIN_SCALE, WALL_SCALE, Theme, palette, ui_font


def apply(app: QApplication, theme: Theme, scale: float = 1.0, dressed: bool = True) -> None:
    """Give the whole program one palette, one style and one font size; not `dressed`: no sheet."""
    scale = min(max(scale, MIN_SCALE), WALL_SCALE)
    if not app.styleSheet():  # under a stylesheet Qt hides the style's name
        app.setStyle(QStyleFactory.create("Fusion"))
    else:
        # Qt takes one sheet's place by another in five times the time of the two steps alone.
        app.setStyleSheet("")
    app.setPalette(palette(theme))
    app.setFont(ui_font(scale))
    if dressed:
        dress(app, theme, scale)


def dress(app: QApplication, theme: Theme, scale: float) -> None:
    """The style sheet alone; the rest must be there."""
    app.setStyleSheet(stylesheet(theme, min(max(scale, MIN_SCALE), WALL_SCALE)))
