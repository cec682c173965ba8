"""One panel as a dock: its header is the title bar, and it draws only while it is seen."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QDockWidget, QToolButton, QWidget

from explorer.session.state import State
from explorer.ui.access.accessible import label_lists
from explorer.ui.kit.wheel_guard import leave_focus
from explorer.ui.panel.panel import Panel
from explorer.ui.panels import PanelEntry

_LATER_MS = 12


class PanelDock(QDockWidget):
    """A panel whose header is the title bar; it catches up when it is shown again.

    The panel is made when somebody first asks for it or sees it.
    """

    enlargeRequested = Signal()
    pressed = Signal()  # the mouse, on its header

    def __init__(
        self, place: PanelEntry, make: Callable[[PanelDock], Panel], parent: QWidget
    ) -> None:
        super().__init__(place.words, parent)
        self.setObjectName(place.id)
        self.setAccessibleName(place.words)
        self.place = place
        self._make = make
        self._panel: Panel | None = None
        self._shown: State | None = None
        self._latest: State | None = None
        self._in_place_only: tuple[QToolButton, ...] = ()
        self._simple = False
        self._seen = not place.beside
        if self._seen:
            self._build()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_LATER_MS)
        self._later.timeout.connect(self._catch_up_if_seen)
        self.visibilityChanged.connect(self._on_visibility)

    @property
    def made(self) -> bool:
        """True if there is a panel in it yet."""
        return self._panel is not None

    @property
    def in_front(self) -> bool:
        """True if it is seen: Qt calls a panel behind another's tab visible, too."""
        return self._seen and self.isVisible()

    @property
    def panel(self) -> Panel:
        """The panel; made now if it is not there yet."""
        return self._panel or self._build()

    def _build(self) -> Panel:
        self._panel = panel = self._make(self)
        self.setWidget(panel)
        leave_focus(panel)
        label_lists(panel)
        self._enlarge = self._button("⤢", "")
        self._enlarge.clicked.connect(self.enlargeRequested)
        self.show_enlarged(False)
        panel.header.installEventFilter(self)
        float_ = self._button("❐", self.tr("Move to a window of its own, or dock again"))
        float_.clicked.connect(lambda: self.setFloating(not self.isFloating()))
        close = self._button("✕", self.tr("Hide (the View menu shows it again)"))
        close.clicked.connect(self.close)
        self._in_place_only = (float_, close)
        self.setTitleBarWidget(panel.header)
        if self._simple:
            self.set_simple(True)
        return panel

    def set_simple(self, on: bool) -> None:
        """With the least in it, and no way to lose it; or with everything."""
        self._simple = on
        if self.made:
            self.panel.set_simple(on)
            self.show_enlarged(False)

    def show_enlarged(self, on: bool, presenting: bool = False) -> None:
        """What the header offers while this panel has the place of all, perhaps for a class."""
        if not (on or self.made):
            return
        if not self.made:
            self._build()
        tip = self.tr("Restore") if on else self.tr("Maximise")
        self._enlarge.setText("⤡" if on else "⤢")
        self._enlarge.setToolTip(tip)
        self._enlarge.setAccessibleName(f"{self.windowTitle()}: {tip}")
        self._enlarge.setVisible(not presenting)
        for button in self._in_place_only:
            button.setVisible(not on and not self._simple)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.MouseButtonPress:
            self.pressed.emit()
        if event.type() == QEvent.Type.MouseButtonDblClick:
            self.enlargeRequested.emit()
            return True  # a dock would take itself out of the window
        return super().eventFilter(watched, event)

    def _button(self, text: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(f"{self.windowTitle()}: {tip}")
        button.setProperty("look", "title-button")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.panel.header_row.addWidget(button)
        return button

    def show_state(self, new: State, later: bool = False) -> None:
        """Draw, now or in a moment, or only remember while nobody sees it."""
        self._latest = new
        if self._seen and not later:
            self._catch_up()
        elif self._seen and not self._later.isActive():
            self._later.start()

    @property
    def up_to_date(self) -> bool:
        """True if the panel was handed the newest state, or nobody sees it."""
        return not self._seen or self._latest is self._shown

    @property
    def settled(self) -> bool:
        """True if nothing of the newest state is still to be drawn here."""
        return self.up_to_date and (not self._seen or not self.panel.busy)

    def _on_visibility(self, visible: bool) -> None:
        self._seen = visible
        if visible:
            self._catch_up()

    def _catch_up_if_seen(self) -> None:
        if self._seen:
            self._catch_up()

    def _catch_up(self) -> None:
        self._later.stop()
        if self._latest is not None and self._latest is not self._shown:
            old, self._shown = self._shown, self._latest
            self.panel.show_state(old, self._latest)
            self.panel.show_activity(self._latest)
