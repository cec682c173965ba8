"""The panels as docks: where they belong, moved about, remembered, and put back."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QByteArray, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QToolButton, QWidget

from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.panel import Panel
from explorer.ui.panels import PANELS, Place
from explorer.ui.theme import Theme

LAYOUT_VERSION = 1
_AT_ONCE = 2  # panels that show a step of a run at once; the others in a later turn of the loop
_LATER_MS = 12


class PanelDock(QDockWidget):
    """A panel whose header is the title bar; it catches up when it is shown again.

    The panel is made when somebody first asks for it or sees it.
    """

    def __init__(self, place: Place, make: Callable[[Place], Panel], parent: QWidget) -> None:
        super().__init__(place.words, parent)
        self.setObjectName(place.id)
        self.setAccessibleName(place.words)
        self.place = place
        self._make = make
        self._panel: Panel | None = None
        self._shown: State | None = None
        self._latest: State | None = None
        self._seen = not place.beside
        if self._seen:
            self._build()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_LATER_MS)
        self._later.timeout.connect(lambda: self._seen and self._catch_up())
        self.visibilityChanged.connect(self._on_visibility)

    @property
    def made(self) -> bool:
        """True if there is a panel in it yet."""
        return self._panel is not None

    @property
    def panel(self) -> Panel:
        """The panel; made now if it is not there yet."""
        return self._panel or self._build()

    def _build(self) -> Panel:
        self._panel = panel = self._make(self.place)
        self.setWidget(panel)
        float_ = self._button("❐", self.tr("Take out of the window, or put back"))
        float_.clicked.connect(lambda: self.setFloating(not self.isFloating()))
        close = self._button("✕", self.tr("Hide; the View menu brings it back"))
        close.clicked.connect(self.close)
        self.setTitleBarWidget(panel.header)
        return panel

    def _button(self, text: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setToolTip(tip)
        button.setAccessibleName(f"{self.windowTitle()}: {tip}")
        button.setProperty("look", "title-button")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        layout = self.panel.header.layout()
        assert layout is not None
        layout.addWidget(button)
        return button

    def show_state(self, new: State, later: bool = False) -> None:
        """Draw, now or in a moment, or only remember while nobody sees it."""
        self._latest = new
        if self._seen and not later:
            self._catch_up()
        elif self._seen and not self._later.isActive():
            self._later.start()

    @property
    def settled(self) -> bool:
        """True if nothing of the newest state is still to be drawn here."""
        return not self._seen or (self._latest is self._shown and not self.panel.busy)

    def _on_visibility(self, visible: bool) -> None:
        self._seen = visible
        if visible:
            self._catch_up()

    def _catch_up(self) -> None:
        self._later.stop()
        if self._latest is not None and self._latest is not self._shown:
            old, self._shown = self._shown, self._latest
            self.panel.show_state(old, self._latest)


class Docks(QMainWindow):
    """The area of the panels inside the window."""

    failed = Signal(str)

    def __init__(self, session: Session, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.docks: list[PanelDock] = []
        self._session, self._theme = session, theme
        for place in PANELS:
            self.docks.append(PanelDock(place, self._make, self))
        for dock in self._beside:
            dock.toggleViewAction().triggered.connect(dock.raise_)
            dock.visibilityChanged.connect(self._name_tab_bars)
        self._place()
        self._original = self.saveState(LAYOUT_VERSION)
        self._sized = False

    def _make(self, place: Place) -> Panel:
        panel = place.load()(self._session, self._theme)
        panel.failed.connect(self.failed)
        return panel

    @property
    def panels(self) -> list[Panel]:
        """All of them; those that nobody has seen yet are made for it."""
        return [dock.panel for dock in self.docks]

    def bring_up(self, name: str) -> Panel:
        """Show the panel of this ID, in front of those that share its place."""
        (dock,) = (dock for dock in self.docks if dock.place.id == name)
        dock.setVisible(True)
        dock.raise_()
        return dock.panel

    @property
    def settled(self) -> bool:
        """True if every panel that is seen shows the newest state."""
        return all(dock.settled for dock in self.docks)

    @property
    def _standing(self) -> list[PanelDock]:
        """Those that are seen from the start, in order."""
        return [dock for dock in self.docks if not dock.place.beside]

    @property
    def _beside(self) -> list[PanelDock]:
        """Those that open as a tab beside another."""
        return [dock for dock in self.docks if dock.place.beside]

    def show_state(self, old: State | None, new: State) -> None:
        running = new.status.activity == "running"
        # The end of a run comes with its last step.
        ended = old is not None and old.status.activity == "running" and old.trace is not new.trace
        # Which its self-check follows at once.
        checked = old is not None and new.status.activity == "checking" != old.status.activity
        for place, dock in enumerate(self.docks):
            # All of them drawn in one turn would hold the mouse up for as long.
            dock.show_state(new, later=(running or ended or checked) and place >= _AT_ONCE)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for dock in self.docks:
            if dock.made:
                dock.panel.set_theme(theme)

    def open(self, panel_id: str) -> None:
        """Show a panel, its tab on top."""
        dock = next(dock for dock in self.docks if dock.objectName() == panel_id)
        dock.show()
        dock.raise_()

    def layout_state(self) -> QByteArray:
        return self.saveState(LAYOUT_VERSION)

    def restore_layout(self, state: QByteArray) -> bool:
        """As it was left; False if it is from another version or damaged."""
        self._sized = not state.isEmpty() and self.restoreState(state, LAYOUT_VERSION)
        return self._sized

    def reset_layout(self) -> None:
        """As at the first start: docked, and sized for this window."""
        for dock in self.docks:
            dock.setFloating(False)
            dock.setVisible(not dock.place.beside)
        self.restoreState(self._original, LAYOUT_VERSION)
        self.fit()

    def fit(self) -> None:
        """Attention takes three fifths of the width, next token half of the other side's height."""
        first, *others = self._standing
        if not others:
            return
        width, height = max(self.width(), 600), max(self.height(), 400)
        side = min(max(round(width * 0.4), 380), 560)
        self.resizeDocks([first, others[0]], [width - side, side], Qt.Orientation.Horizontal)
        shares = (0.48, 0.26, 0.26)
        self.resizeDocks(
            others[: len(shares)],
            [round(height * share) for share in shares[: len(others)]],
            Qt.Orientation.Vertical,
        )
        self._sized = True

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        self._name_tab_bars()
        if not self._sized:
            self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Panels above one another keep their shares, so that a bar that comes and goes leaves
        them as they were."""
        columns: dict[int, list[PanelDock]] = {}
        for dock in self.docks:
            if dock.isVisible() and not dock.isFloating():
                columns.setdefault(dock.x(), []).append(dock)
        heights = {dock: dock.height() for dock in self.docks}
        super().resizeEvent(event)
        old, new = event.oldSize().height(), event.size().height()
        if not self._sized or old <= 0 or old == new:
            return
        for column in columns.values():
            if len(column) > 1:
                wanted = [max(1, round(heights[dock] * new / old)) for dock in column]
                self.resizeDocks(column, wanted, Qt.Orientation.Vertical)

    def _name_tab_bars(self) -> None:
        """Qt makes a tab bar by itself wherever panels share a place."""
        direct = Qt.FindChildOption.FindDirectChildrenOnly
        for bar in self.findChildren(QTabBar, options=direct):
            bar.setAccessibleName(self.tr("Panels that share this place"))

    def sizeHint(self) -> QSize:
        return QSize(960, 560)

    def _place(self) -> None:
        first, *others = self._standing
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, first)
        above: QDockWidget = first
        for i, dock in enumerate(others):
            if i == 0:
                self.splitDockWidget(first, dock, Qt.Orientation.Horizontal)
            else:
                self.splitDockWidget(above, dock, Qt.Orientation.Vertical)
            above = dock
        for dock in self._beside:
            anchor = next(d for d in self._standing if d.place.id == dock.place.beside)
            self.tabifyDockWidget(anchor, dock)
            dock.hide()
