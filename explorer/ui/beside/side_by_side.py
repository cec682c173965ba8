"""Two runs in one window: the window's own side, and beside it a second one when it is wanted."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QMouseEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QWidget,
)
from shiboken6 import isValid

from explorer.session.branches import Branch
from explorer.session.linked.linked_runs import LinkedRuns
from explorer.session.session import Session
from explorer.session.state import Company, State
from explorer.ui.beside import words
from explorer.ui.beside.acting_side import ActingSide
from explorer.ui.beside.difference_panel import DifferencePanel
from explorer.ui.beside.link_bar import LinkBar
from explorer.ui.beside.second_side import SecondSide
from explorer.ui.beside.side_header import SideHeader
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.notices import Notices
from explorer.ui.frame.offered_actions import OfferedActions
from explorer.ui.kit.boxes import column, line
from explorer.ui.kit.scrolled import OneOf
from explorer.ui.kit.wheel_guard import leave_focus
from explorer.ui.look.appearance import Appearance
from explorer.ui.look.theme import unit
from explorer.ui.settings.preferences import Preferences
from explorer.ui.settings.settings import Settings
from explorer.ui.threads.later import later

_NARROW = 600  # pixels of width of a side at a zoom of 1
_FOR_BOTH = 860  # pixels of height at a zoom of 1, for panels and their difference
_TOLD_MS = 120  # after a change, until the line over both sides says what it means


class SideBySide(QWidget):
    """The panels of the window; `settings` is the column that belongs to them."""

    turned = Signal()  # another side acts
    ended = Signal(object)  # the session of the second side, which is closed
    stateChanged = Signal(object, object)  # old, new of the second side, while that acts
    saved = Signal(str)  # the name of a file
    copied = Signal()
    openLog = Signal()
    restartEngine = Signal(object)  # the session of the second side
    compareInterventions = Signal()  # of the side that acts
    chooseModel = Signal()  # for the side that acts
    codeAsked = Signal(object, object)  # the session of the second side, its question

    def __init__(
        self,
        own: ActingSide,
        own_notices: Notices,
        actions: OfferedActions,
        look: Appearance,
        memory: Settings,
        preferences: Preferences,
        window: QWidget,
    ) -> None:
        super().__init__()
        self.own, self._look = own, look
        self._memory, self._preferences, self._window = memory, preferences, window
        self._acting = own
        self._swapped = self._simple = False  # swapped: the window's own side is on the right
        self.second: SecondSide | None = None
        self.links: LinkedRuns | None = None
        self.difference: DifferencePanel | None = None  # once somebody asks for it
        self.bar = LinkBar(actions)
        self.header = SideHeader()
        self.header.chosen.connect(lambda: self.act_on(own))
        self._pane = QWidget()  # the window's own
        column(self._pane, self.header, (own.pane, 1), gap=6)
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self._pane)
        self._rows = column(self, self.bar, (self._split, 1), gap=6)
        self.notices = QWidget()  # of both sides
        self._notices = line(self.notices, (own_notices, 1))
        self._hear_notices(own_notices, own)
        self.settings = QWidget()
        self._tabs = QWidget()
        self._tab_buttons = [QToolButton(), QToolButton()]
        for place, button in enumerate(self._tab_buttons):
            button.setCheckable(True)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _=False, place=place: self.act_on(self._at(place)))
        self._pages = OneOf()
        self._pages.addWidget(own.settings)
        line(self._tabs, *((button, 1) for button in self._tab_buttons), gap=4)
        column(self.settings, self._tabs, (self._pages, 1), gap=4)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_TOLD_MS)
        self._later.timeout.connect(self._tell)
        self._unsubscribe: Callable[[], None] = lambda: None
        self._mirror_panels(own.docks)
        own.docks.turned.connect(lambda: self._mirror_enlarged(own.docks))
        self._show_sides()

    # -- which side

    @property
    def acting(self) -> ActingSide:
        """The side that keys, menus and the toolbar are about."""
        return self._acting

    @property
    def sides(self) -> list[ActingSide]:
        """From the left."""
        if self.second is None:
            return [self.own]
        both = [self.own, self.second.side]
        return both[::-1] if self._swapped else both

    def _at(self, place: int) -> ActingSide:
        return self.sides[min(place, len(self.sides) - 1)]

    def act_on(self, side: ActingSide) -> None:
        """From now on keys, menus, the toolbar and the column of settings are about this side."""
        if side is not self._acting:
            self._acting = side
            self._pages.setCurrentWidget(side.settings)
            self._show_sides()
            self.turned.emit()
        else:
            self._show_sides()  # a button that was pressed again stays down

    def act_on_other(self) -> None:
        """Keys go to the other side."""
        self.act_on(next((side for side in self.sides if side is not self._acting), self.own))
        self._window.setFocus()

    def side_of(self, widget: QWidget | None) -> ActingSide | None:
        """The side that a widget of the window belongs to."""
        for side in self.sides:
            pane = self._pane if side is self.own else side.pane
            for whole in (pane, side.settings):
                if widget is not None and (widget is whole or whole.isAncestorOf(widget)):
                    return side
        return None

    def _act_where(self, widget: QWidget | None) -> None:
        side = self.side_of(widget)
        if side is not None and side is not self._acting:
            self.act_on(side)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """A click anywhere on a side, also where the mouse does not bring the focus along."""
        if event.type() == QEvent.Type.MouseButtonPress and isinstance(event, QMouseEvent):
            self._act_where(self._window.childAt(event.position().toPoint()))
        return False

    def _on_focus(self, _: QWidget | None, now: QWidget | None) -> None:
        if isValid(self):
            self._act_where(now)

    def _show_sides(self) -> None:
        """Names and marks of both sides."""
        two = self.second is not None
        for part in (self.bar, self.header, self._tabs):
            part.setVisible(two)
        names = self.tr("Left"), self.tr("Right")
        for place, button in enumerate(self._tab_buttons):
            button.setText(names[place])
            button.setChecked(self._at(place) is self._acting)
            button.setAccessibleName(self.tr("Prompt and settings: {0}").format(names[place]))
            button.setToolTip(button.accessibleName())
        self.header.show_place(not self._swapped, self._acting is self.own)
        if self.second is not None:
            self.second.header.show_place(self._swapped, self._acting is not self.own)

    # -- beginning and ending

    def toggle(self) -> None:
        """A second side beside the window's own, or none."""
        if self.second is None:
            self.begin()
        else:
            self.end()

    def begin(self, opens: bool = True) -> SecondSide:
        """The second side as a copy of the window's own, if there is none yet.

        Not `opens`: another model than that of the copy will be opened.
        """
        if self.second is not None:
            return self.second
        own = self.own.session
        session = own.another()
        self.links = LinkedRuns(own, session)
        self.second = second = SecondSide(
            session, self._look.theme, self._memory, self._preferences, self._window
        )
        second.header.chosen.connect(lambda: self.act_on(second.side))
        second.stateChanged.connect(self._on_second)
        second.docks.turned.connect(lambda: self._mirror_enlarged(second.docks))
        for source in (second.docks, second.files):
            source.saved.connect(self.saved)
            source.copied.connect(self.copied)
        second.notices.openLog.connect(self.openLog)
        second.notices.restartEngine.connect(lambda: self.restartEngine.emit(session))
        self._hear_notices(second.notices, second.side)
        self._mirror_panels(second.docks)
        self._unsubscribe = own.subscribe(self._on_own)
        self.own.docks.set_stacked(True)  # while they have the room that they come back to
        self._split.addWidget(second)
        self._pages.addWidget(second.settings)
        self._notices.addWidget(second.notices, 1)
        session.begin_as(own, opens=opens)
        second.docks.set_stacked(True)
        second.set_simple(self._simple)
        self._split.setSizes([1000, 1000])
        self._follow_width()
        self.header.show_state(None, own.state)
        self._say_company()
        self._show_sides()
        self._tell()
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus)
        if (handle := self._window.windowHandle()) is not None:
            handle.installEventFilter(self)
        return second

    def end(self) -> None:
        """Back to one side; a run of the second that is in no file is asked about."""
        self.before_end(self.end_at_once)

    def before_end(self, act: Callable[[], object]) -> None:
        """Do `act` once the user has saved or discarded what ending the second side would lose."""
        if self.second is None:
            act()
        else:
            self.second.files.unsaved.before(act, closing=True)

    def end_at_once(self) -> None:
        """The second side and its engine go, without a question."""
        second, links = self.second, self.links
        if second is None or links is None:
            return
        self.act_on(self.own)
        self.show_difference(False)
        if self.difference is not None:
            self.difference.deleteLater()
            self.difference = None
        self._unsubscribe()
        links.close()
        self.second = self.links = None
        self._swapped = False
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.disconnect(self._on_focus)
        if (handle := self._window.windowHandle()) is not None:
            handle.removeEventFilter(self)
        self._later.stop()
        self.ended.emit(second.session)
        second.hide()
        self.own.sequence.show_controls(not self._look.presenting)
        self._show_sides()
        # The panels have their room again before they take their places.
        for layout in (self._rows, self._pane.layout()):
            if layout is not None:
                layout.activate()
        self._split.refresh()
        second.end()
        self.own.docks.set_stacked(False)
        self._say_company()

    @property
    def unsaved(self) -> bool:
        """True if the second side holds a run that is in no file."""
        return self.second is not None and self.second.session.state.unsaved

    def leave(self) -> None:
        """The program must end now: an unsaved run is kept for the next start."""
        if self.second is not None:
            self.second.session.saving.leave()

    def set_simple(self, on: bool) -> None:
        """The simple layout on the second side, too."""
        self._simple = on
        if self.second is not None:
            self.second.set_simple(on)

    def redraw(self) -> None:
        """All of both sides again: figures have another unit."""
        for side in self.sides:
            state = side.session.state
            side.sequence.show_state(None, state)
            for dock in side.docks.docks:
                if dock.made:
                    dock.panel.show_state(None, state)
        if self.difference is not None:
            self.difference.redraw()

    def on_painted(self) -> None:
        """The window has just been painted."""
        if self.second is not None:
            self.second.on_painted()

    # -- what is done on the side that acts, and on the other if they are linked

    def step(self) -> None:
        self._do(LinkedRuns.step, Session.step)

    def run_or_pause(self) -> None:
        def alone(session: Session) -> None:
            if session.state.status.activity == "running":
                session.pause()
            else:
                session.run()

        self._do(LinkedRuns.run_or_pause, alone)

    def reset(self) -> None:
        self._do(LinkedRuns.reset, Session.reset)

    def cut(self) -> None:
        self._do(LinkedRuns.cut, Session.cut)

    def undo(self) -> None:
        self._do(LinkedRuns.undo, Session.undo)

    def redo(self) -> None:
        self._do(LinkedRuns.redo, Session.redo)

    def _do(
        self,
        both: Callable[[LinkedRuns, Session], object],
        alone: Callable[[Session], object],
    ) -> None:
        if self.links is None:
            alone(self._acting.session)
        else:
            both(self.links, self._acting.session)

    # -- both sides

    def swap(self) -> None:
        """What is on the left goes to the right."""
        if self.second is None or self.links is None:
            return
        self._swapped = not self._swapped
        self.links.swap()
        sizes = self._split.sizes()
        self._split.insertWidget(0, self.second if self._swapped else self._pane)
        self._split.setSizes(sizes[::-1])
        self._notices.insertWidget(0 if self._swapped else 1, self.second.notices, 1)
        self._show_sides()
        self._tell()

    def switch_link(self) -> None:
        """Linked, or each side by itself."""
        if self.links is not None:
            self.links.set_linked(not self.links.linked)
            self._say_company()
            self._tell()

    def go_to_first_difference(self) -> None:
        """Select it on both sides, or say that there is none."""
        if self.links is None or self.links.go_to_first_difference():
            return
        matching = self.links.matching
        if matching is None or matching.by_id:
            text = self.tr("The two sides have the same tokens so far. Press Step to go on.")
        else:
            text = self.tr("The two sides have the same text so far. Press Step to go on.")
        self._acting.session.report(text)

    def show_difference(self, on: bool | None = None) -> None:
        """What differs, in place of the panels of both sides, or under them if there is room.

        None: the other way than now.
        """
        shown = self.difference is not None and not self.difference.isHidden()
        on = not shown if on is None else on
        if on and self.difference is None and self.links is not None:
            self.difference = DifferencePanel(self.own.session, self._look.theme)
            self.difference.preferences = self._preferences
            self.difference.failed.connect(self.own.session.report)
            self.difference.saving.saved.connect(self.saved)
            self.difference.saving.copied.connect(self.copied)
            leave_focus(self.difference)
            self._rows.addWidget(self.difference, 1)
        if self.difference is not None:
            self.difference.setVisible(on)
        self._share_height()
        if on:
            self._tell()

    def _share_height(self) -> None:
        """The difference takes the place of both sides' panels where there is no room for both."""
        shown = self.difference is not None and not self.difference.isHidden()
        both = not shown or self.height() >= _FOR_BOTH * unit(self)
        for side in self.sides:
            if side.panels.isHidden() is both:
                side.panels.setVisible(both)
                later(side.docks, side.docks.share_stack)  # once they have room
        self._rows.setStretch(1, int(both))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._follow_width()
        if self.difference is not None:
            self._share_height()

    def _follow_width(self) -> None:
        """Half a small window has no room for the slider and the choice of colours."""
        if self.second is not None:
            narrow = self.width() < 2 * _NARROW * unit(self)
            for side in self.sides:
                side.sequence.show_controls(not narrow and not self._look.presenting)

    def _mirror_panels(self, docks: Docks) -> None:
        """A panel that a menu opens or closes on this side is so on the other."""
        for dock in docks.docks:
            dock.toggleViewAction().triggered.connect(
                lambda on, name=dock.place.id: self._mirror_panel(docks, name, on)
            )

    def _mirror_panel(self, shown: Docks, name: str, on: bool) -> None:
        if self.second is None or self.links is None or not self.links.linked:
            return
        other = self.second.docks if shown is self.own.docks else self.own.docks
        if on:
            other.bring_up(name)
        else:
            next(d for d in other.docks if d.place.id == name).hide()

    def _mirror_enlarged(self, shown: Docks) -> None:
        """A panel that has the place of all on one side has it on the other."""
        if self.second is None or self.links is None or not self.links.linked:
            return
        other = self.second.docks if shown is self.own.docks else self.own.docks
        wanted = None if shown.enlarged is None else shown.enlarged.place.id
        if wanted != (None if other.enlarged is None else other.enlarged.place.id):
            other.enlarge(next((d for d in other.docks if d.place.id == wanted), None))

    def _hear_notices(self, notices: Notices, side: ActingSide) -> None:
        """What a notice asks for is about its own side, whichever acts."""

        def ask(signal: SignalInstance) -> None:
            self.act_on(side)
            signal.emit()

        notices.compareInterventions.connect(lambda: ask(self.compareInterventions))
        notices.chooseModel.connect(lambda: ask(self.chooseModel))

    def _say_company(self) -> None:
        """Tell both sessions, for the menus and whoever draws them."""
        company: Company = ""
        if self.links is not None:
            company = "linked" if self.links.linked else "free"
        for side in self.sides:
            side.session.show_company(company)

    # -- state

    def _on_own(self, old: State, new: State) -> None:
        self.header.show_state(old, new)
        self._tell_later(old, new)

    def _on_second(self, old: State | None, new: State) -> None:
        if old is not None:
            self._tell_later(old, new)
        if self.second is None:
            return
        if new.code_question is not None and (old is None or old.code_question is None):
            self.codeAsked.emit(self.second.session, new.code_question)
        if self._acting is self.second.side:
            self.stateChanged.emit(old, new)

    def _tell_later(self, old: State, new: State) -> None:
        moved = old.trace is not new.trace or old.selection != new.selection
        moved = moved or old.status.step_waits != new.status.step_waits
        # The matching of a long text takes a while: while steps come, it waits.
        if moved or old.status.activity != new.status.activity:
            self._later.start()

    def _tell(self) -> None:
        links = self.links
        if links is None:
            return
        left, right = links.left.state, links.right.state
        if "running" in (left.status.activity, right.status.activity):
            self._later.start()
            return
        self.bar.words.setText(self._words(links))
        if self.difference is not None and not self.difference.isHidden():
            self.difference.show_links(links)

    def _words(self, links: LinkedRuns) -> str:
        if links.held is not None:
            return words.waiting(opens_left=links.held is links.right)
        left, right = links.left.state, links.right.state
        return words.together(left, right, links.matching, links.linked)

    def copy_of(self, branch: Branch) -> None:
        """One of the own branches on the second side, in place of what is there."""
        second = self.begin()
        own = self.own.session
        second.files.unsaved.before(lambda: second.session.begin_as(own, branch))
