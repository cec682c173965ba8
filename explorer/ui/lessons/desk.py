"""The window as it was before a lesson: closing the lesson brings it back."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from explorer.ui.frame.docks import Docks
from explorer.ui.frame.presenting.presenter import Presenter
from explorer.ui.look.appearance import Appearance
from explorer.ui.look.theme import unit

_WIDE = 1500  # pixels at a zoom of 1: with less, the column of settings gives way to the card


class Desk:
    """Remembers panels, settings, theme and zoom when it is made."""

    def __init__(
        self, docks: Docks, look: Appearance, presenter: Presenter, window: QWidget
    ) -> None:
        self._docks, self._look, self._presenter, self._window = docks, look, presenter, window
        enlarged = docks.enlarged
        self._enlarged = "" if enlarged is None else enlarged.place.id
        self._layout = docks.layout_state()
        self._theme, self._scale = look.choice, look.scale
        self._presenting = look.presenting
        self._settings = presenter.settings_shown

    def make_room(self) -> None:
        """In a narrow window the settings are a strip, so that the maps keep their room."""
        if self._window.width() < _WIDE * unit(self._window):
            self._presenter.show_settings(False)

    def restore(self) -> None:
        """Put everything back; in presenter mode the panels stay."""
        if self._look.choice != self._theme:
            self._look.show_theme(self._theme)
        if self._look.presenting == self._presenting and self._look.scale != self._scale:
            self._look.show_zoom(self._scale)
        if self._look.presenting:
            return
        self._presenter.show_settings(self._settings or self._presenting)
        self._docks.enlarge(None)
        self._docks.restore_layout(self._layout)
        dock = next((d for d in self._docks.docks if d.place.id == self._enlarged), None)
        self._docks.enlarge(dock)
