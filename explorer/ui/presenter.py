"""Presenter mode, and the column of settings that makes room for the panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSize, Qt, QTimer
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

if TYPE_CHECKING:
    from explorer.ui.window import Window

_SETTLE_MS = 200  # until a window manager has given up the full screen


class Presenter(QObject):
    """Full screen, with larger text and without what a class does not need.

    The column of settings is a strip then, which opens it; panels above one another are tabs; the
    status line is there only while there is something to wait for.
    """

    def __init__(self, window: Window, settings: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self.strip = self._build_strip()
        self._was_maximized, self._size_before = False, QSize()
        self._had_settings = True

    def _build_strip(self) -> QToolButton:
        """What is left of the settings while they are hidden."""
        strip = QToolButton()
        strip.setText("»")
        strip.setToolTip(self._window.actions_table.by_id["settings"].toolTip())
        strip.setAccessibleName(self.tr("Show prompt and settings"))
        strip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        strip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        strip.clicked.connect(lambda: self.show_settings(True))
        strip.hide()
        return strip

    @property
    def settings_shown(self) -> bool:
        """False while the settings are only a strip."""
        return not self._settings.isHidden()

    def show_settings(self, on: bool) -> None:
        """The column of settings, or a strip in its place."""
        if on == self.settings_shown:
            return
        self._settings.setVisible(on)
        self.strip.setVisible(not on)
        if self._window.look.presenting:
            self._window.topbar.show_padding(on)
            self._window.look.fit()

    def toggle(self) -> None:
        """Begin, or leave and put everything back."""
        window, on = self._window, not self._window.look.presenting
        if on:
            self._had_settings = self.settings_shown
            self._was_maximized, self._size_before = window.isMaximized(), window.size()
            window.docks.present(True)
        window.menuBar().setVisible(not on)
        window.actions_table.set_presenting(on)
        window.topbar.set_presenting(on)
        window.topbar.show_padding(not on)
        self.show_settings(not on and self._had_settings)
        window.look.present(on, window.screen().size())
        if on:
            window.showFullScreen()
        else:
            window.docks.present(False)
            self._leave_full_screen()
        self.follow()

    def _leave_full_screen(self) -> None:
        if self._was_maximized:
            self._window.showMaximized()
            return
        self._window.showNormal()
        # Some window managers leave it as large as the screen, once they come to it.
        QTimer.singleShot(_SETTLE_MS, self, self._back_to_size)

    def _back_to_size(self) -> None:
        if not self._window.isFullScreen() and not self._window.isMaximized():
            self._window.resize(self._size_before)

    def follow(self) -> None:
        """Show the status line to a class while there is something to wait for."""
        status = self._window.status
        status.setVisible(not self._window.look.presenting or status.waiting)

    def least_size(self) -> QSize:
        """What everything that is seen needs now; layouts remember what they needed before."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        for layout in (self._window.centralWidget().layout(), self._window.layout()):
            layout.invalidate()
        return self._window.minimumSizeHint()
