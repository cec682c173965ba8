"""The main window: puts the parts together and hands them the state."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRect, Qt, QUrl
from PySide6.QtGui import (
    QCloseEvent,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeyEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QMenu, QMessageBox, QSplitter, QWidget

from explorer import __version__, places, wording
from explorer.figures.text import sentences, tokens
from explorer.session.changes import changed, only_points
from explorer.session.saving.recovery import Found
from explorer.session.session import Session
from explorer.session.state import CodeQuestion, State
from explorer.trace.files.saved_view import SavedView
from explorer.ui.access import mnemonics
from explorer.ui.access.accessible import announce, label_lists
from explorer.ui.beside.acting_side import ActingSide
from explorer.ui.beside.side_by_side import SideBySide
from explorer.ui.beside.ways_beside import WaysBeside
from explorer.ui.dialogs.help.help import Help
from explorer.ui.dialogs.remote_code import CodeDialog
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame import saved_view
from explorer.ui.frame.docks import Docks
from explorer.ui.frame.notices import Notices
from explorer.ui.frame.paint_watch import PaintWatch
from explorer.ui.frame.presenting.presented_window import PresentedWindow
from explorer.ui.frame.presenting.presenter import Presenter
from explorer.ui.frame.recovery import Recovery
from explorer.ui.frame.settings_column import SettingsColumn
from explorer.ui.frame.status import StatusBar
from explorer.ui.frame.token_area import TokenArea
from explorer.ui.frame.topbar import TopBar, open_name, title_of
from explorer.ui.inputs import sample_prompts
from explorer.ui.inputs.context_controls import ContextControls
from explorer.ui.inputs.interventions import InterventionsBox
from explorer.ui.inputs.prompt import PromptBox
from explorer.ui.inputs.sampling_controls import SamplingControls
from explorer.ui.inputs.stop_rules import StopControls
from explorer.ui.inputs.try_this import TryThis
from explorer.ui.kit.boxes import column, line
from explorer.ui.kit.screen_fit import on_screen
from explorer.ui.kit.scrolled import Scrolled
from explorer.ui.kit.wheel_guard import leave_focus
from explorer.ui.lessons.lessons import Lessons
from explorer.ui.lessons.targets import WindowParts
from explorer.ui.look import themed
from explorer.ui.look.appearance import SYSTEM, Appearance
from explorer.ui.look.theme import THEMES
from explorer.ui.menus.menus import Actions, fill
from explorer.ui.panel.scale_dialog import ScaleDialog
from explorer.ui.panels.attention.panel import AttentionPanel
from explorer.ui.settings.preferences import Preferences
from explorer.ui.settings.settings import Settings
from explorer.ui.threads.later import later

if TYPE_CHECKING:
    from explorer.ui.dialogs.hand_in.hand_in import HandIn
    from explorer.ui.dialogs.hub import HubDialog
    from explorer.ui.dialogs.model_picker import ModelPicker

FIRST_SIZE = (1280, 720)
_LEAST = (480, 320)  # pixels at any zoom; a window that is smaller than its parts scrolls
_FRAMED_MS = 200  # until a window manager has drawn a frame


class Window(PresentedWindow):
    """Shows the session's state; every change goes through the session."""

    def __init__(self, session: Session, look: Appearance, memory: Settings) -> None:
        super().__init__()
        self.session = session
        self.look = look
        self._memory = memory
        self.preferences = Preferences(memory, self)
        self._take_unit()
        self._whole = False
        self.preferences.changed.connect(self._on_preference)
        self._pickers: dict[Session, ModelPicker] = {}  # made when they are first asked for
        self._hub: HubDialog | None = None
        self._hand_ins: dict[Session, HandIn] = {}
        self._closing = False  # for good: the user was asked, or can't be
        self.files = SessionFiles(session, memory, self)
        self.setWindowTitle(self.tr("Decoder Explorer"))
        self.setAcceptDrops(True)
        theme = look.theme
        self.actions_table = Actions(self, self, theme)
        self.topbar = TopBar(session, self.actions_table, theme)
        self.notices = Notices(session)
        self.recovery = Recovery()
        self.notices.add(self.recovery)
        self.prompt = PromptBox(session, theme)
        self.sampling = SamplingControls(session)
        self.stops = StopControls(session)
        self.context = ContextControls(session)
        self.try_this = TryThis(session)
        self.interventions = InterventionsBox(session)
        self.sequence = TokenArea(session, theme)
        self.docks = Docks(session, theme, self.preferences, self)
        self.status = StatusBar(theme)
        self._paint_watch = PaintWatch(session, self.docks)
        self.lessons = Lessons(session, memory, look, self.files, self)
        self._build_menus()
        self._lay_out()
        self._connect()
        leave_focus(self)
        label_lists(self)
        self._restore()
        self._show_extent()
        session.saving.look = lambda: saved_view.look_at(self.docks, self.look)
        self._unsubscribe = session.subscribe(self._on_state)
        self._on_state(None, session.state)
        self.prompt.edit.setFocus()

    # -- building

    def _build_menus(self) -> None:
        self._menus = fill(self.menuBar(), self.actions_table)
        help_menu = self._menus["help"]
        prompts = QMenu(self.tr("Sample prompts"), help_menu)
        help_menu.insertMenu(help_menu.actions()[0], prompts)
        sample_prompts.fill(prompts, self.take_sample)
        view = self._menus["view"]
        view.addSeparator()
        panels = view.addMenu(self.tr("Panels"))
        self._panel_lists = panels, self.topbar.panels.menu()
        self._list_panels(self.docks)
        themes = self._menus["view"].addMenu(self.tr("Theme"))
        for menu in (prompts, panels, themes, self.topbar.panels.menu()):
            mnemonics.follow(menu)
        choices = [(SYSTEM, self.tr("Follow the system"))]
        choices += [(theme.name, self.tr(theme.title)) for theme in THEMES.values()]
        for name, words in choices:
            action = themes.addAction(words, partial(self.look.set_theme, name))
            action.setCheckable(True)
            action.setData(name)
        themes.aboutToShow.connect(lambda: self._check_theme(themes))

    def _list_panels(self, docks: Docks) -> None:
        """The menus show and hide these panels."""
        for menu in self._panel_lists:
            for row in menu.actions():
                menu.removeAction(row)
            menu.addActions([dock.toggleViewAction() for dock in docks.docks])

    def _check_theme(self, themes: QMenu) -> None:
        for action in themes.actions():
            action.setChecked(action.data() == self.look.choice)

    def _lay_out(self) -> None:
        """From the outside in: a widget that gets a parent is styled again with all inside it."""
        self.parts = QWidget()
        self.setCentralWidget(Scrolled(self.parts, _LEAST, zoomed=False))
        middle = line(None, edges=(8, 0, 8, 0))
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._column = SettingsColumn()
        settings = Scrolled(self._column, (None, 120))
        right = QWidget()
        panels = Scrolled(self.docks, (300, 180), parent=right)
        own = ActingSide(
            self.session, self.docks, self.files, self.sequence, self.prompt, self.sampling,
            right, panels, settings,
        )  # fmt: skip
        self.beside = SideBySide(
            own, self.notices, self.actions_table, self.look, self._memory, self.preferences, self
        )
        parts = (self.topbar, self.beside.notices, (middle, 1))
        rows = column(self.parts, *parts, gap=3, edges=(0, 0, 0, 4))
        self.ways_beside = WaysBeside(self.beside, self.choose_model, self)
        self.presenter = Presenter(self, self.actions_table, self.beside.settings)
        middle.addWidget(self.presenter.strip)
        middle.addWidget(self._split, 1)
        middle.addWidget(self.lessons.card)
        middle.addWidget(self.lessons.strip)
        self._split.addWidget(self.beside.settings)
        self._column.fill(
            self.prompt, self.try_this, self.interventions, self.sampling, self.context, self.stops
        )
        self._split.addWidget(self.beside)
        self._split.setStretchFactor(1, 1)
        self._split.setSizes([270, 1000])
        self._split.setChildrenCollapsible(False)
        column(right, self.sequence, (panels, 1), gap=6)
        areas = {"settings": self._column, "tools": self.topbar, "tokens": self.sequence}
        self.help = Help(self, self.actions_table, self.docks, areas, self.presenter.show_settings)
        rows.addWidget(self.status)  # last: the order of Tab is the order in which they come
        lesson_parts = WindowParts(
            self.docks, self.topbar, self.sequence, self.prompt, self.sampling, self.stops,
            self.presenter.show_settings,
        )  # fmt: skip
        self.lessons.take_parts(lesson_parts, self.presenter)

    def _connect(self) -> None:
        self.look.changed.connect(self._on_look)
        self.lessons.openChanged.connect(self.show_whole)
        self.look.needs = self.presenter.least_size
        self.topbar.openModel.connect(lambda name: self.acting.files.open(name))
        self.beside.turned.connect(self._on_turned)
        self.beside.ended.connect(self._forget_side)
        self.beside.stateChanged.connect(self._show_acting)
        self.try_this.download.chosen.connect(self.files.open)
        self.files.recentChanged.connect(lambda: self.topbar.set_recent(self._memory.recent()))
        self.topbar.set_recent(self._memory.recent())
        self.status.cancel.connect(lambda: self.acting.session.cancel())
        self.docks.saved.connect(self._confirm)
        for source in (self.docks, self.files):
            source.copied.connect(lambda: self.status.say(self.tr("Copied")))
        self.files.saved.connect(self._confirm)
        self.recovery.opened.connect(self.files.recover)
        self.recovery.deleted.connect(self.files.discard_kept)
        self.files.dealtWith.connect(self.recovery.drop)
        self.notices.openLog.connect(self.open_log)
        self.notices.restartEngine.connect(lambda: self._restart_engine(self.session))
        self.beside.openLog.connect(self.open_log)
        self.beside.restartEngine.connect(self._restart_engine)
        self.beside.compareInterventions.connect(self.compare_interventions)
        self.beside.chooseModel.connect(self.choose_model)
        self.beside.codeAsked.connect(self._ask_about_code)
        self.beside.saved.connect(self._confirm)
        self.beside.copied.connect(lambda: self.status.say(self.tr("Copied")))
        self.prompt.edit.left.connect(self.setFocus)

    def _on_state(self, old: State | None, new: State) -> None:
        if old is not None and only_points(old, new):
            # The mouse moves a hundred times a second, and nothing else of this shows it.
            self.sequence.show_state(old, new)
            self.docks.show_state(old, new)
            return
        if old is not None and new.seen is not None and changed(old, new, "seen"):
            saved_view.show(new.seen, self.docks, self.look)
        if self.acting.session is self.session:
            self._show_acting(old, new)
        for part in (
            self.notices,
            self.prompt,
            self.try_this,
            self.interventions,
            self.sampling,
            self.context,
            self.stops,
            self.sequence,
            self.docks,
        ):
            part.show_state(old, new)
        self.lessons.show_state(old, new)
        self.presenter.follow()
        if new.code_question is not None and (old is None or old.code_question is None):
            self._ask_about_code(self.session, new.code_question)
        self._show_title(new)

    @property
    def acting(self) -> ActingSide:
        """The side that keys, menus and the toolbar are about."""
        return self.beside.acting

    def _show_acting(self, old: State | None, new: State) -> None:
        """What there is once for both sides."""
        self.actions_table.follow(new)
        self.topbar.show_state(old, new)
        self.status.show_state(old, new)

    def _on_turned(self) -> None:
        """Another side acts."""
        self.topbar.follow(self.acting.session)
        self._list_panels(self.acting.docks)
        self._show_acting(None, self.acting.session.state)

    def _forget_side(self, session: Session) -> None:
        """A side is closed, and what was made for it."""
        for made in (self._pickers.pop(session, None), self._hand_ins.pop(session, None)):
            if made is not None:
                made.deleteLater()

    def _models(self, state: State) -> str:
        """The model; both, where the run is of another one than the one that is open."""
        name = title_of(state.request.model)
        if not state.other_model:
            return name
        return self.tr("run of {0} ({1} is open)").format(name, title_of(open_name(state)))

    def _show_title(self, state: State) -> None:
        """The file, the model and the program, with a mark while not all is saved."""
        names = (
            sentences.name(Path(state.file).name),
            self._models(state),
            self.tr("Decoder Explorer"),
        )
        # Qt shows [*] as that mark, and two of them as the letters.
        first, *others = (name.replace("[*]", "[*][*]") for name in names if name)
        self.setWindowTitle(" — ".join([f"{first}[*]", *others]))
        # Qt tells the window manager each time, whether or not anything has changed.
        if self.isWindowModified() != state.unsaved:
            self.setWindowModified(state.unsaved)

    def _on_look(self) -> None:
        self.actions_table.set_theme(self.look.theme)
        themed.pass_on(self, self.look.theme)

    def _on_preference(self, name: str) -> None:
        if name == "full":
            self._show_extent()
        elif name == "nats":
            self._take_unit()
            self.beside.redraw()

    def show_whole(self, on: bool) -> None:
        """Everything while a lesson is open, which may point at any part; off: as was chosen."""
        self._whole = on
        if on:
            self.beside.act_on(self.beside.own)  # what a lesson points at is there
        self._show_extent()

    def _show_extent(self) -> None:
        """All of the window, or the simple layout."""
        full = self.preferences.on("full") or self._whole
        parts = (self.topbar, self.prompt, self.sampling, self.sequence, self.docks, self.status)
        for part in parts:
            part.set_simple(not full)
        self.context.setVisible(full)
        self.beside.set_simple(not full)
        self._column.set_simple(not full, self.try_this, self.stops)

    def _take_unit(self) -> None:
        wording.use_unit("nats" if self.preferences.on("nats") else "bits")

    # -- what the actions ask for

    def run_or_pause(self) -> None:
        self.beside.run_or_pause()

    def go_along(self, by: int) -> None:
        """Select another token of the run, and say which; at its ends, say that it is the end."""
        session = self.acting.session
        before = session.state.step_index
        session.look(by)
        state = session.state
        index, trace = state.step_index, state.trace
        if trace is None or index is None:
            return
        if index != before:
            words = self.tr("Token {0} of {1}: {2}")
            text = tokens.written(trace.chosen[index])
            announce(self.status, words.format(index + 1, len(trace.steps), text))
        elif by < 0:
            self.status.say(self.tr("This is the first generated token."))
        else:
            self.status.say(self.tr("This is the newest token. Step (Space) generates the next."))

    def restart_engine(self) -> None:
        """A new engine that opens the model again, also one that was lost while it loaded."""
        self._restart_engine(self.acting.session)

    def _restart_engine(self, session: Session) -> None:
        state = session.state
        session.restart_engine()
        if state.card is None and state.request.model:
            session.open_model(state.request.model)

    def choose_model(self) -> None:
        """The list of models on this computer, beside the window."""
        side = self.acting
        picker = self._pickers.get(side.session)
        if picker is None:
            from explorer.ui.dialogs.model_picker import ModelPicker

            picker = self._pickers[side.session] = ModelPicker(side.session, self._memory, self)
            picker.chosen.connect(side.files.open)
            picker.download.connect(self.download_model)
        picker.show()
        picker.activateWindow()

    def take_sample(self, sample: sample_prompts.Sample) -> None:
        """Put a sample prompt in place, on the model it was made for."""
        side = self.acting
        if side.session.state.request.model == sample.model:
            side.session.set_prompt(sample.prompt)
        else:
            side.files.open(sample.model, then=lambda: side.session.set_prompt(sample.prompt))

    def download_model(self) -> None:
        """Fetch a model from the Hub, beside the window."""
        if self._hub is None:
            from explorer.ui.dialogs.hub import HubDialog

            self._hub = HubDialog(self.session, self)
            self._hub.chosen.connect(lambda name: self.acting.files.open(name))
        self._hub.show()
        self._hub.activateWindow()

    def _ask_about_code(self, session: Session, question: CodeQuestion) -> None:
        dialog = CodeDialog(question, self)
        dialog.answered.connect(session.answer_code)
        dialog.open()

    def _attention(self) -> AttentionPanel:
        panel = self.acting.docks.bring_up(AttentionPanel.ID)
        assert isinstance(panel, AttentionPanel)
        return panel

    def go_to_token(self) -> None:
        self._attention().begin_go_to()

    def hand_in(self) -> HandIn:
        """Makes reports, scripts and notebooks of what is on screen."""
        side = self.acting
        made = self._hand_ins.get(side.session)
        if made is None:
            from explorer.ui.dialogs.hand_in.hand_in import HandIn

            made = self._hand_ins[side.session] = HandIn(side.session, side.docks, self)
            made.failed.connect(side.session.report)
            made.copied.connect(lambda: self.status.say(self.tr("Copied")))
            made.saving.saved.connect(self._confirm)
            self.status.add_job(made.saving.button)
        return made

    def make_report(self) -> None:
        self.hand_in().make_report()

    def copy_python(self) -> None:
        self.hand_in().copy_python()

    def save_notebook(self) -> None:
        self.hand_in().save_notebook()

    def save_gif(self) -> None:
        self.hand_in().save_gif()

    def close_run(self) -> None:
        """Close the run on screen, which is asked about if it is in no file; else the window."""
        side = self.acting
        if side.session.state.trace is None:
            self.close()
        else:
            side.files.unsaved.before(side.session.reset)

    def explain(self, widget: QWidget, term: str, words: QRect | None = None) -> None:
        """The card of a term beside the word over which the mouse rests."""
        self.help.explain(widget, term, words=words)

    def compare_mask(self) -> None:
        self._attention().compare()

    def compare_forms(self) -> None:
        self._attention().compare_forms()

    def patch(self) -> None:
        self._attention().show_patch_menu()

    def compare_interventions(self) -> None:
        self._attention().compare_interventions()

    def sweep_heads(self) -> None:
        self._attention().find_head("effect")

    def draw_mask(self) -> None:
        self._attention().draw_mask()

    def scale_scores(self) -> None:
        ScaleDialog(self.acting.session, self).open()

    def reset_layout(self) -> None:
        self.presenter.show_settings(True)
        self._split.setSizes([270, max(self.width() - 270, 400)])
        for side in self.beside.sides:
            side.docks.reset_layout()

    def open_log(self) -> None:
        log = places.log_file()
        if not log.exists():
            self.session.report(
                self.tr("There is no log yet: nothing has been written to {0}.").format(log)
            )
        elif not QDesktopServices.openUrl(QUrl.fromLocalFile(str(log))):
            self.session.report(
                self.tr("No program is set to open text files. The log is {0}").format(log)
            )

    def about(self) -> None:
        QMessageBox.about(
            self,
            self.tr("About Decoder Explorer"),
            self.tr(
                "Decoder Explorer {0}\n\nWatch a decoder-only language model generate, one pass at "
                "a time, on your own machine.\n\nApache License 2.0. Qt and PySide6 are used under "
                "the LGPL; see THIRD_PARTY.md."
            ).format(__version__),
        )

    def offer_kept(self, found: Found) -> None:
        """The runs that were not saved when the program last ended."""
        self.recovery.offer(found.sessions)
        if found.unreadable is not None:
            self.session.report(
                self.tr(
                    "An unsaved run from an earlier session is damaged and can't be "
                    "opened. Its file was moved to {0}."
                ).format(found.unreadable)
            )

    def _confirm(self, name: str) -> None:
        self.status.say(self.tr("Saved: {0}").format(name))

    # -- Qt

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.UpdateRequest:  # all that was to be painted is now
            self._paint_watch.on_painted()
            self.beside.on_painted()
        elif event.type() == QEvent.Type.ThemeChange:  # the desktop's fonts or colours
            self.look.system.refresh()
        return done

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape that nothing inside needs leaves presenter mode, else one panel alone."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif self.help.close_card():
            return
        elif self.look.presenting:
            self.presenter.toggle()
        elif self.acting.docks.enlarged is not None:
            self.acting.docks.enlarge(None)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():  # what can't be used gets a reason
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        event.acceptProposedAction()
        side = self.beside.side_of(self.childAt(event.position().toPoint())) or self.acting
        problem = side.files.take(event.mimeData())
        if problem:
            side.session.report(problem)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            later(self, self._fit_frame, _FRAMED_MS)

    def close_at_once(self) -> None:
        """Close without a question."""
        self._closing = True
        self.close()

    def end(self) -> None:
        """Close because the system says so; an unsaved run is offered at the next start."""
        self.session.saving.leave()
        self.beside.leave()
        self.close_at_once()

    def closeEvent(self, event: QCloseEvent) -> None:
        asks = not self._closing and self.isVisible()
        if asks and (self.beside.unsaved or self.session.state.unsaved):
            event.ignore()
            # Both sides are asked about before either goes: the user may still cancel.
            self.beside.before_end(
                lambda: self.files.unsaved.before(self.close_at_once, closing=True)
            )
            return
        self.beside.end_at_once()
        if self.look.presenting:
            self.presenter.toggle()
        self.presenter.show_settings(True)
        self._memory.put("geometry", self.saveGeometry())
        self._memory.put("layout", self.docks.layout_state())
        self._memory.put("split", self._split.saveState())
        self.files.keep_last()
        self._memory.sync()
        for dialog in filter(None, (*self._pickers.values(), self._hub)):
            dialog.close()
        self.help.close()
        self._unsubscribe()
        self.lessons.close()
        self.files.close()
        self.session.saving.look = SavedView
        self.look.needs = None
        event.accept()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        # The window manager may end full screen by itself.
        ended = not self.isFullScreen() and self.isVisible() and not self.isMinimized()
        if event.type() == QEvent.Type.WindowStateChange and self.look.presenting and ended:
            self.presenter.toggle()

    def _restore(self) -> None:
        self.topbar.set_presenting(False)
        self.resize(*FIRST_SIZE)
        restored = self.restoreGeometry(self._memory.blob("geometry"))
        self._split.restoreState(self._memory.blob("split"))
        self.docks.restore_layout(self._memory.blob("layout"))
        # Where a window without a place of its own goes, the window manager knows best.
        if restored and (place := on_screen(self.geometry())) != self.geometry():
            self.setGeometry(place)

    def _fit_frame(self, again: int = 10) -> None:
        """Make room for the frame, which is not known before a window manager has drawn it."""
        if not self.isVisible() or QGuiApplication.platformName() == "offscreen":
            return  # a screen that nobody sees, and a frame that is not there
        whole, frame = self.frameGeometry(), self.windowHandle().frameMargins()
        if frame.isNull() and again:  # a busy machine: there may be none, or none yet
            later(self, lambda: self._fit_frame(again - 1), _FRAMED_MS)
            return
        place = on_screen(whole)
        full = Qt.WindowState.WindowFullScreen | Qt.WindowState.WindowMaximized
        if not self.windowState() & full and place != whole:
            self.setGeometry(place.marginsRemoved(frame))
