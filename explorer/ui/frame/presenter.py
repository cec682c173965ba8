"""Presenter mode, and the column of settings that makes room for the panels."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, QSize, Qt, QTimer
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.frame.presented_window import PresentedWindow

_SETTLE_MS = 200  # until a window manager has given up the full screen


class Presenter(QObject):
    """Full screen, with larger text and without what a class does not need.

    The column of settings is a strip then, which opens it; panels above one another are tabs; the
    status line is there only while there is something to wait for.
    """

    def __init__(self, window: PresentedWindow, actions: OfferedActions, settings: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._actions = actions
        self._settings = settings
        self.strip = self._build_strip()
        self._was_maximized, self._size_before, self._place_before = False, QSize(), QPoint()
        self._had_settings = True

    def _build_strip(self) -> QToolButton:
        """What is left of the settings while they are hidden."""
        strip = QToolButton()
        strip.setText("»")
        strip.setToolTip(self._actions.by_id["settings"].toolTip())
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
            # Qt forgets of a window that was too large for a moment that it is a full screen.
            self._window.setWindowState(
                self._window.windowState() | Qt.WindowState.WindowFullScreen
            )

    def toggle(self) -> None:
        """Begin, or leave and put everything back."""
        if self._window.look.presenting:
            self._leave()
        else:
            self._begin()
        self.follow()

    def _begin(self) -> None:
        window = self._window
        self._had_settings = self.settings_shown
        self._was_maximized, self._size_before = window.isMaximized(), window.size()
        self._place_before = window.pos()
        window.docks.present(True)
        self._show_parts(True)
        window.look.present(True, window.screen().size())
        window.showFullScreen()

    def _leave(self) -> None:
        window = self._window
        # Small again before there is more to show: the window is not to outgrow the screen.
        window.look.present(False, window.screen().size())
        self._show_parts(False)
        window.docks.present(False)
        self._leave_full_screen()
        window.look.fit()  # a zoom chosen meanwhile may be too large for all of it

    def _show_parts(self, presenting: bool) -> None:
        window = self._window
        window.menuBar().setVisible(not presenting)
        self._actions.set_presenting(presenting)
        window.topbar.set_presenting(presenting)
        window.topbar.show_padding(not presenting)
        self.show_settings(not presenting and self._had_settings)

    def _leave_full_screen(self) -> None:
        if self._was_maximized:
            self._window.showMaximized()
            return
        # Not the widget alone: it may have lost count, and would not tell the window manager.
        self._window.windowHandle().showNormal()
        self._window.showNormal()
        # Some window managers leave it as large as the screen, once they come to it, and its title
        # above the screen.
        QTimer.singleShot(_SETTLE_MS, self, self._back_to_size)

    def _back_to_size(self) -> None:
        if not self._window.isFullScreen() and not self._window.isMaximized():
            self._window.resize(self._size_before)
            self._window.move(self._place_before)

    def follow(self) -> None:
        """Show the status line to a class while there is something to wait for."""
        status = self._window.status
        status.setVisible(not self._window.look.presenting or status.waiting)

    def least_size(self) -> QSize:
        """What everything that is seen needs now; layouts remember what they needed before."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        parts, menus = self._window.parts, self._window.menuBar()
        layout = parts.layout()
        assert layout is not None
        layout.invalidate()
        above = 0 if menus.isHidden() else menus.sizeHint().height()
        return parts.minimumSizeHint() + QSize(0, above)
