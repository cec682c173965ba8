"""Presenter mode, and the column of settings that makes room for the panels."""

from __future__ import annotations

from PySide6.QtCore import (
    QByteArray,
    QCoreApplication,
    QEvent,
    QObject,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QScreen
from PySide6.QtWidgets import QSizePolicy, QSplitter, QToolButton, QWidget
from shiboken6 import isValid

from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.frame.presenting import screens
from explorer.ui.frame.presenting.notes import NotesWindow
from explorer.ui.frame.presenting.presented_window import PresentedWindow
from explorer.ui.threads.later import later

_NOTES = QSize(560, 560)
_SETTLE_MS, _LOOKS = 200, 6  # until a window manager has given up the full screen


class Presenter(QObject):
    """Full screen and one panel at a time, in text that the back row reads.

    The column of settings is a strip then, which opens it; the status line is there only while
    there is something to wait for.  Leaving puts everything back as it was.
    """

    notesChanged = Signal()  # there are notes on another screen, or no longer

    def __init__(self, window: PresentedWindow, actions: OfferedActions, settings: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._actions = actions
        self._settings = settings
        self.strip = self._build_strip()
        self._was_maximized, self._place_before = False, QRect()
        self._had_settings = True
        self.notes: NotesWindow | None = None  # while a class looks at another screen
        self._focus: QWidget | None = None  # had the keys before
        self._splits: list[tuple[QSplitter, QByteArray]] = []  # as they were before
        window.installEventFilter(self)
        window.docks.turned.connect(self._tell_place)

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
            self._window.sequence.show_controls(on)
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
        own = window.screen()
        other = screens.for_class(own)
        self._focus = window.focusWidget()
        self._splits = [(split, split.saveState()) for split in window.findChildren(QSplitter)]
        self._had_settings = self.settings_shown
        self._was_maximized, self._place_before = window.isMaximized(), window.geometry()
        window.docks.present(True)
        self._show_parts(True)
        window.look.present(True, (other or own).size())
        if other is not None:
            screens.move_to(window, other)
        window.showFullScreen()
        if other is not None:
            self._show_notes(own)
        window.setFocus()  # the arrow keys turn to the other panels

    def _show_notes(self, screen: QScreen) -> None:
        """On the screen that the class does not see."""
        window = self._window
        self.notes = NotesWindow(self._actions, window.actions(), window)
        area = screen.availableGeometry()
        self.notes.setGeometry(area.adjusted(area.width() // 8, area.height() // 8, 0, 0))
        self.notesChanged.emit()
        self.notes.resize(self.notes.sizeHint().expandedTo(_NOTES).boundedTo(area.size()))
        self.notes.show()
        self._tell_place()

    def _close_notes(self) -> None:
        if self.notes is not None:
            self.notes.close()
            self.notes.deleteLater()
            self.notes = None
            self.notesChanged.emit()

    def _leave(self) -> None:
        window = self._window
        self._close_notes()
        # Small again before there is more to show: the window is not to outgrow the screen.
        window.look.present(False, window.screen().size())
        self._show_parts(False)
        window.docks.present(False)
        self._leave_full_screen()
        window.look.fit()  # a zoom chosen meanwhile may be too large for all of it
        self._split_as_before()
        if self._focus is not None and isValid(self._focus):
            self._focus.setFocus()

    def _split_as_before(self) -> None:
        for split, state in self._splits:
            if isValid(split):
                split.restoreState(state)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Once the window has its size again, each part of it has its own."""
        back = event.type() == QEvent.Type.Resize and not self._window.look.presenting
        if back and self._splits and self._window.size() == self._place_before.size():
            later(self, self._settle_splits)
        return super().eventFilter(watched, event)

    def _settle_splits(self) -> None:
        if not self._window.look.presenting:
            self._split_as_before()
            self._splits = []

    def _tell_place(self) -> None:
        """Which panel a class sees."""
        docks = self._window.docks
        shown, turn = docks.enlarged, docks.in_turn
        place = turn.index(shown) + 1 if shown in turn else 0
        self._window.topbar.show_place(place, len(turn))
        if self.notes is not None:
            after = turn[place % len(turn)] if len(turn) > 1 and place else None
            self.notes.say(
                self.tr("all panels") if shown is None else shown.place.words,
                "" if after is None else after.place.words,
                self._window.sequence.timeline.label.text(),
            )

    def _show_parts(self, presenting: bool) -> None:
        window = self._window
        window.menuBar().setVisible(not presenting)
        self._actions.set_presenting(presenting)
        window.topbar.set_presenting(presenting)
        window.topbar.show_padding(not presenting)
        window.sequence.show_controls(not presenting)
        self.show_settings(not presenting and self._had_settings)

    def _leave_full_screen(self) -> None:
        if self._was_maximized:
            self._window.setGeometry(self._place_before)  # to the screen that it was on
            self._window.showMaximized()
            return
        # Not the widget alone: it may have lost count, and would not tell the window manager.
        self._window.windowHandle().showNormal()
        self._window.showNormal()
        # Some window managers leave it as large as the screen, once they come to it, and its title
        # above the screen.
        later(self, self._back_to_size, _SETTLE_MS)

    def _back_to_size(self, looks: int = _LOOKS) -> None:
        """Some are so late that they undo it: it is looked at for a second."""
        if self._window.isFullScreen() or self._window.isMaximized():
            return
        if self._window.geometry() != self._place_before:
            # Without its frame, which the window manager may not have drawn again yet.
            self._window.setGeometry(self._place_before)
        if looks > 1:
            later(self, lambda: self._back_to_size(looks - 1), _SETTLE_MS)

    def follow(self) -> None:
        """Show the status line to a class while it waits, or where the context matters."""
        if self.notes is not None:
            self._tell_place()
        status = self._window.status
        presenting, waits = self._window.look.presenting, status.waiting
        status.setVisible(not presenting or waits or status.context.matters)
        status.show_meter_alone(presenting and not waits)

    def least_size(self) -> QSize:
        """What everything that is seen needs now; layouts remember what they needed before."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        parts, menus = self._window.parts, self._window.menuBar()
        layout = parts.layout()
        assert layout is not None
        layout.invalidate()
        above = 0 if menus.isHidden() else menus.sizeHint().height()
        return parts.minimumSizeHint() + QSize(0, above)
