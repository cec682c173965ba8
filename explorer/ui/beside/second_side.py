"""The second side: a session of its own with its tokens, panels, notices and settings."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer.session.changes import only_points
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.access.accessible import label_lists
from explorer.ui.beside.acting_side import ActingSide
from explorer.ui.beside.side_header import SideHeader
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.notices import Notices
from explorer.ui.frame.paint_watch import PaintWatch
from explorer.ui.frame.settings_column import SettingsColumn
from explorer.ui.frame.token_area import TokenArea
from explorer.ui.inputs.context_controls import ContextControls
from explorer.ui.inputs.interventions import InterventionsBox
from explorer.ui.inputs.prompt import PromptBox
from explorer.ui.inputs.sampling_controls import SamplingControls
from explorer.ui.inputs.stop_rules import StopControls
from explorer.ui.inputs.try_this import TryThis
from explorer.ui.kit.boxes import column
from explorer.ui.kit.scrolled import Scrolled
from explorer.ui.kit.wheel_guard import leave_focus
from explorer.ui.look.theme import Theme
from explorer.ui.settings.preferences import Preferences
from explorer.ui.settings.settings import Settings

PANE = (200, 180)  # pixels at a zoom of 1; with less room a side scrolls


class SecondSide(QWidget):
    """Its pane; `settings` is its column, which the window shows while this side acts.

    Its `notices` go beside the window's own.
    """

    stateChanged = Signal(object, object)  # old, new; all but the mouse that points

    def __init__(
        self,
        session: Session,
        theme: Theme,
        memory: Settings,
        preferences: Preferences,
        window: QWidget,
    ) -> None:
        super().__init__()
        self.session = session
        self._preferences = preferences
        self.header = SideHeader()
        self.notices = Notices(session)
        self.sequence = TokenArea(session, theme)
        self.docks = Docks(session, theme, preferences, self)
        self.files = SessionFiles(session, memory, window, kept=False)
        self.prompt = PromptBox(session, theme)
        self.sampling = SamplingControls(session)
        self.interventions = InterventionsBox(session)
        self._context = ContextControls(session)
        self.stops = StopControls(session)
        self._tries = TryThis(session)
        self._tries.download.chosen.connect(self.files.open)
        self.column = SettingsColumn()
        self.column.fill(
            self.prompt, self._tries, self.interventions, self.sampling, self._context, self.stops
        )
        self.settings = Scrolled(self.column, (None, 120))
        panels = Scrolled(self.docks, PANE, parent=self)
        column(self, self.header, self.sequence, (panels, 1), gap=6)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._watch = PaintWatch(session, self.docks)
        for part in (self, self.settings):
            leave_focus(part)
            label_lists(part)
        self.side = ActingSide(
            session, self.docks, self.files, self.sequence, self.prompt, self.sampling,
            self, panels, self.settings,
        )  # fmt: skip
        self.prompt.edit.left.connect(window.setFocus)
        self._unsubscribe = session.subscribe(self._on_state)
        self._on_state(None, session.state)

    def set_simple(self, on: bool) -> None:
        """The simple layout, or all of it."""
        for part in (self.prompt, self.sampling, self.sequence, self.docks):
            part.set_simple(on)
        self._context.setVisible(not on)
        self.column.set_simple(on, self._tries, self.stops)

    def on_painted(self) -> None:
        """The window has just been painted."""
        self._watch.on_painted()

    def _on_state(self, old: State | None, new: State) -> None:
        self.sequence.show_state(old, new)
        self.docks.show_state(old, new)
        if old is not None and only_points(old, new):
            return
        for part in (
            self.header, self.notices, self.prompt, self._tries, self.interventions,
            self.sampling, self._context, self.stops,
        ):  # fmt: skip
            part.show_state(old, new)
        self.stateChanged.emit(old, new)

    def end(self) -> None:
        """Its engine, its threads and its widgets go."""
        self._unsubscribe()
        self.files.close()
        self.session.close()
        for part in (self.files, self.settings, self.notices, self):
            part.deleteLater()
