"""The panels as docks: where they belong, moved about, remembered, and put back."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from PySide6.QtCore import QByteArray, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QMainWindow, QTabBar, QWidget

from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.frame.panel_dock import PanelDock
from explorer.ui.kit.wheel_guard import ignore_wheel
from explorer.ui.look import themed
from explorer.ui.look.theme import Theme, unit
from explorer.ui.panel.panel import Panel
from explorer.ui.panels import PANELS
from explorer.ui.settings.preferences import Preferences
from explorer.ui.threads.later import later

LAYOUT_VERSION = 1
SIMPLE = ("attention", "next-token")  # the panels of the simple layout
_UPPER = 0.62  # share of the upper of two stacked panels
_NARROW = 760  # pixels at a zoom of 1, below which stacked panels show the least
_AT_ONCE = 2  # panels that show a step of a run at once; the others in a later turn of the loop


class Docks(QMainWindow):
    """The area of the panels inside the window."""

    saved = Signal(str)  # the name of a file
    copied = Signal()
    turned = Signal()  # another panel has the place of all, or none

    def __init__(
        self, session: Session, theme: Theme, preferences: Preferences, parent: QWidget
    ) -> None:
        super().__init__(parent, Qt.WindowType.Widget)
        self.setDockNestingEnabled(True)
        self.docks: list[PanelDock] = []
        self._session, self._theme, self._preferences = session, theme, preferences
        self._enlarged: PanelDock | None = None
        self._used: PanelDock | None = None  # had the focus last, or was asked for since
        self._before = QByteArray()  # the layout that comes back after it
        self._open: list[PanelDock] = []  # those that were seen before it, in order
        self._spread = QByteArray()  # the layout that comes back after presenter mode
        self._was_enlarged: PanelDock | None = None  # before presenter mode
        self._spread_size = QSize()
        self._simple = False
        self._full = QByteArray()  # the layout that comes back after the simple one
        self._full_sized = False
        self._stacked = self._narrow = False
        self._unstacked = QByteArray()  # the layout that comes back after the stacked one
        self._shares: list[list[tuple[PanelDock, QSize]]] = []
        self._due: tuple[QSize, QByteArray] | None = None  # a layout, once the window has its size
        for place in PANELS:
            dock = PanelDock(place, self._make, self)
            dock.enlargeRequested.connect(lambda dock=dock: self.enlarge(dock))
            dock.pressed.connect(lambda dock=dock: self._use(dock))
            dock.toggleViewAction().triggered.connect(lambda on, dock=dock: self._show(dock, on))
            self.docks.append(dock)
        for dock in self._beside:
            dock.visibilityChanged.connect(self._name_tab_bars)
        self._place()
        self._original = self.saveState(LAYOUT_VERSION)
        self._sized = False
        self._floated: list[PanelDock] = []  # taken out of the window, and shown after it
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus)

    def _make(self, dock: PanelDock) -> Panel:
        panel = dock.place.load()(self._session, self._theme, dock)
        panel.failed.connect(self._session.report)
        panel.preferences = self._preferences
        panel.wanted.connect(self.bring_up)
        panel.saving.saved.connect(self.saved)
        panel.saving.copied.connect(self.copied)
        return panel

    @property
    def panels(self) -> list[Panel]:
        """All of them; those that nobody has seen yet are made for it."""
        return [dock.panel for dock in self.docks]

    def bring_up(self, name: str) -> Panel:
        """Show the panel of this ID, in front of those that share its place."""
        (dock,) = (dock for dock in self.docks if dock.place.id == name)
        if self._enlarged not in (None, dock):
            self.enlarge(dock)
        dock.setVisible(True)
        dock.raise_()
        self._use(dock)
        return dock.panel

    def _show(self, dock: PanelDock, on: bool) -> None:
        """As its row in the menu says; a panel beside the enlarged one ends that."""
        if self._enlarged is not None:
            self.enlarge(None)
            dock.setVisible(on)
        dock.raise_()
        self._use(dock)

    def set_simple(self, on: bool) -> None:
        """Two panels with the least in them; off: the layout of before."""
        if on == self._simple:
            return
        stacked = self._stacked
        self.set_stacked(False)
        self._set_simple(on)
        self.set_stacked(stacked)

    def _set_simple(self, on: bool) -> None:
        self.enlarge(None)
        if on:
            self._full, self._full_sized = self.saveState(LAYOUT_VERSION), self._sized
        self._simple = on
        for dock in self.docks:
            dock.set_simple(on or self._narrow)
        if on:
            self._arrange()
        else:
            self.restoreState(self._full, LAYOUT_VERSION)
            if not self._full_sized:
                self.fit()

    def set_stacked(self, on: bool) -> None:
        """The panels of the simple layout above one another, for half a window; off: as before."""
        if on == self._stacked:
            return
        self.enlarge(None)
        if on:
            self._unstacked = self.saveState(LAYOUT_VERSION)
        self._stacked = on
        if on:
            self._stack()
        else:
            self.restoreState(self._unstacked, LAYOUT_VERSION)
        self._follow_room()

    def _stack(self) -> None:
        for dock in self.docks:
            dock.setFloating(False)
            self.removeDockWidget(dock)  # Qt loses one that is split off where it stands
        above, below = (dock for dock in self.docks if dock.place.id in SIMPLE)
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, above)
        self.splitDockWidget(above, below, Qt.Orientation.Vertical)
        for dock in self.docks:
            if dock not in (above, below):
                self.tabifyDockWidget(above, dock)
            dock.setVisible(dock in (above, below))
        self.share_stack()

    def share_stack(self) -> None:
        """The shares of stacked panels at this height."""
        if not self._stacked or self._enlarged is not None:
            return
        docks = [dock for dock in self.docks if dock.place.id in SIMPLE]
        height = max(self.height(), 200)
        heights = [round(height * _UPPER), round(height * (1 - _UPPER))]
        self.resizeDocks(docks, heights, Qt.Orientation.Vertical)

    def _follow_room(self) -> None:
        """Panels that share half a window show the least."""
        narrow = self._stacked and self.width() < _NARROW * unit(self)
        if narrow != self._narrow:
            self._narrow = narrow
            for dock in self.docks:
                dock.set_simple(narrow or self._simple)

    # -- one panel in place of all, and all of them for a class

    @property
    def enlarged(self) -> PanelDock | None:
        """The panel that has the place of all, if one has."""
        return self._enlarged

    def at_hand(self) -> PanelDock:
        """The panel with the focus, else the one used last, else the first that is seen.

        Where the mouse rests does not matter.  A panel behind another's tab gives way to that one,
        and without the focus one with nothing to show to one that shows something.
        """
        focused = self._dock_of(QApplication.focusWidget())
        if focused is not None:
            return focused
        used = self._used
        beside = [] if used is None else [used, *self.tabifiedDockWidgets(used)]
        near = [dock for dock in self.docks if dock in beside]
        seen = [dock for dock in [*near, *self.docks] if dock.in_front]
        full = (dock for dock in seen if not dock.panel.empty)
        return next(full, seen[0] if seen else self.docks[0])

    def _dock_of(self, widget: QWidget | None) -> PanelDock | None:
        """The panel that a widget is in, if it is in one."""
        return next((d for d in self.docks if widget is not None and d.isAncestorOf(widget)), None)

    def _on_focus(self, _: QWidget | None, now: QWidget | None) -> None:
        self._use(self._dock_of(now) or self._used)

    def _use(self, dock: PanelDock | None) -> None:
        self._used = dock

    def enlarge(self, dock: PanelDock | None) -> None:
        """Give one panel the place of all; the same again, or None: all as they were."""
        was, self._enlarged = self._enlarged, None
        self.setUpdatesEnabled(False)
        if was is not None:
            was.show_enlarged(False)
        if dock is not None and dock is not was:
            if was is None:
                self._before = self.saveState(LAYOUT_VERSION)
                self._open = [dock for dock in self.docks if not dock.isHidden()]
            self._give_place(dock)
        elif was is not None:
            self.restoreState(self._before, LAYOUT_VERSION)
        self.setUpdatesEnabled(True)
        self.turned.emit()

    def _give_place(self, dock: PanelDock) -> None:
        """All of it to one panel; the others are hidden, but those in windows of their own."""
        dock.setFloating(False)
        for other in self.docks:
            if other is not dock and not other.isFloating():
                other.hide()
        dock.show()
        dock.show_enlarged(True, presenting=self._presenting)
        self._enlarged = dock

    @property
    def in_turn(self) -> list[PanelDock]:
        """The panels that `turn` goes through: those that are open, or were beside this one."""
        if self._enlarged is None:
            return [dock for dock in self.docks if not dock.isHidden()]
        return [dock for dock in self.docks if dock in self._open or dock is self._enlarged]

    def turn(self, by: int) -> None:
        """Go to the next panel (+1) or to the one before (-1), round and round."""
        docks = self.in_turn
        here = self._enlarged or self.at_hand()
        if not docks:
            return
        place = docks.index(here) + by if here in docks else 0
        dock = docks[place % len(docks)]
        if dock is not self._enlarged:
            self.bring_up(dock.place.id)
        # The arrow keys go on turning: they are not for what has the focus behind.
        self.window().setFocus()

    @property
    def _presenting(self) -> bool:
        return not self._spread.isEmpty()

    def present(self, on: bool) -> None:
        """One panel has the place of all; off: all as they were.

        When that one is restored, panels above one another are tabs, so that each is large.
        """
        shown = self._enlarged or self.at_hand()
        if on:
            self._was_enlarged = self._enlarged
        self.enlarge(None)
        if on:
            columns = list(self._columns().values())
            self._spread = self.saveState(LAYOUT_VERSION)
            self._spread_size = self.size()
            self._shares = [[(dock, dock.size()) for dock in column] for column in columns]
            for column in columns:
                for above, dock in pairwise(column):
                    self.tabifyDockWidget(above, dock)
                column[0].raise_()
        elif self._presenting:
            self.restoreState(self._spread, LAYOUT_VERSION)
            self._due = self._spread_size, self._spread
            self._spread = QByteArray()
            self._share_out()
        self.enlarge(shown if on else self._was_enlarged)

    def _share_out(self) -> None:
        """The shares of before, at whatever size the window has until it is back to its own."""
        firsts = [column[0] for column in self._shares]
        self.resizeDocks(
            [dock for dock, _ in firsts],
            [size.width() for _, size in firsts],
            Qt.Orientation.Horizontal,
        )
        for column in self._shares:
            total = sum(size.height() for _, size in column)
            heights = [round(size.height() * self.height() / total) for _, size in column]
            self.resizeDocks([dock for dock, _ in column], heights, Qt.Orientation.Vertical)

    def _share_width(self) -> None:
        """For a class: text that has grown needs its width more than the maps do."""
        firsts = [column[0] for column in self._columns().values()]
        if len(firsts) == 2:
            half = round(self.width() / 2)
            self.resizeDocks(firsts, [half, half], Qt.Orientation.Horizontal)

    def _columns(self) -> dict[int, list[PanelDock]]:
        """Panels that are seen above one another, from the top, by where they begin."""
        columns: dict[int, list[PanelDock]] = {}
        for dock in sorted(self.docks, key=lambda dock: dock.y()):
            if dock.in_front and not dock.isFloating():
                columns.setdefault(dock.x(), []).append(dock)
        return columns

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

    def copy(self) -> None:
        """Picture and figures of the view with the focus, of the panel at hand."""
        panel = self.at_hand().panel
        found = None if panel.empty else panel.view_of(QApplication.focusWidget())
        if found is not None:
            panel.copy(*found)

    def export(self) -> None:
        """Offer to copy, save or print the panel at hand."""
        panel = self.at_hand().panel
        if not panel.empty:
            panel.show_menu()

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
        themed.pass_on(self, theme)

    def see(self, shown: Collection[str], in_front: Collection[str], enlarged: str) -> None:
        """Show these panels by their IDs, and one in place of all; none known: as they are."""
        self.enlarge(None)
        known = [dock for dock in self.docks if dock.place.id in shown]
        for dock in self.docks if known else ():
            dock.setVisible(dock in known)
        for dock in self.docks:
            if dock.place.id in in_front and not dock.isHidden():
                dock.raise_()
        self.enlarge(next((dock for dock in self.docks if dock.place.id == enlarged), None))

    def layout_state(self) -> QByteArray:
        """The panels in their places, also while one is enlarged or all are presented."""
        if self._simple:
            return self._full
        if self._stacked:
            return self._unstacked
        if self._presenting:
            return self._spread
        return self.saveState(LAYOUT_VERSION) if self._enlarged is None else self._before

    def restore_layout(self, state: QByteArray) -> bool:
        """As it was left; False if it is from another version or damaged."""
        self._sized = not state.isEmpty() and self.restoreState(state, LAYOUT_VERSION)
        if not self.isVisible():
            # One that is on screen before its window stays behind it, whatever is clicked.
            self._floated = [d for d in self.docks if d.isFloating() and not d.isHidden()]
            for dock in self._floated:
                dock.hide()
        return self._sized

    def reset_layout(self) -> None:
        """As at the first start: docked, and sized for this window."""
        self.enlarge(None)
        self._spread = QByteArray()
        self._arrange()

    def _arrange(self) -> None:
        for dock in self.docks:
            dock.setFloating(False)
            dock.setVisible(not dock.place.beside)
        self.restoreState(self._original, LAYOUT_VERSION)
        if self._stacked:
            self._unstacked = self._original
            self._stack()
            return
        for dock in self.docks:
            if self._simple and dock.place.id not in SIMPLE:
                dock.hide()
        self.fit()

    def fit(self) -> None:
        """Attention takes three fifths of the width; next token two fifths of the other column."""
        first, *others = self._standing
        if not others:
            return
        width, height = max(self.width(), 600), max(self.height(), 400)
        side = min(max(round(width * 0.4), 380), 560)
        self.resizeDocks([first, others[0]], [width - side, side], Qt.Orientation.Horizontal)
        shares = (0.42, 0.29, 0.29)
        self.resizeDocks(
            others[: len(shares)],
            [round(height * share) for share in shares[: len(others)]],
            Qt.Orientation.Vertical,
        )
        self._sized = True

    def _show_floated(self) -> None:
        while self._floated:
            self._floated.pop().show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        later(self, self._show_floated)  # the window itself comes after this
        self._name_tab_bars()
        if not self._sized:
            self.fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Panels above one another keep their shares, so that a bar that comes and goes leaves
        them as they were."""
        columns = self._columns()
        heights = {dock: dock.height() for dock in self.docks}
        super().resizeEvent(event)
        self._follow_room()
        if self._due is not None and self._due[0] == event.size() and self._enlarged is None:
            self.restoreState(self._due[1], LAYOUT_VERSION)
            self._due = None
            return
        if self._presenting and self._enlarged is None:
            self._share_width()
            return
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
            bar.setAccessibleName(self.tr("Tabs of panels in the same place"))
            ignore_wheel(bar)

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
