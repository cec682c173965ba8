"""Lessons and scenes in the window: puts card, covers and outline together, and opens files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QStandardPaths, Qt, QTimer, Signal
from PySide6.QtWidgets import QFileDialog, QSizePolicy, QToolButton, QWidget

from explorer import disk
from explorer.lessons import library
from explorer.lessons.lesson import FILE, Lesson, load
from explorer.lessons.scene import Scene, read_scene, write_scene
from explorer.lessons.toml_lines import MOST_CHARACTERS, LessonFileError
from explorer.session.changes import changed
from explorer.session.saving.scene_capture import captured
from explorer.session.scenes import ScenePlayer
from explorer.session.session import Session
from explorer.session.state import State
from explorer.ui.access.outline import PartOutline
from explorer.ui.files import save_dialog
from explorer.ui.files.session_files import SessionFiles
from explorer.ui.frame import saved_view
from explorer.ui.frame.presenting.presenter import Presenter
from explorer.ui.lessons import targets
from explorer.ui.lessons.card import LessonCard
from explorer.ui.lessons.course import Course, pages_seen
from explorer.ui.lessons.covers import Covers
from explorer.ui.lessons.desk import Desk
from explorer.ui.lessons.filled_page import FilledPage
from explorer.ui.lessons.notes import LessonNotes
from explorer.ui.look.appearance import Appearance
from explorer.ui.panels.next_token import NextTokenPanel
from explorer.ui.settings.settings import Settings

if TYPE_CHECKING:
    from explorer.ui.lessons.lesson_list import LessonList


_DRAWN_MS, _TRIES = 60, 80  # until the panels have drawn a page's scene


class Lessons(QObject):
    """What the actions ask for, and the card that the window has a place for."""

    openChanged = Signal(bool)  # a lesson is open

    def __init__(
        self,
        session: Session,
        memory: Settings,
        look: Appearance,
        files: SessionFiles,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._memory, self._look, self._files = session, memory, look, files
        self._window = window
        self._player = ScenePlayer(session)
        self._shown: Scene | None = None  # whose view is put back once it is in place
        self._list: LessonList | None = None
        self._desk: Desk | None = None
        self._unfolded = False  # this page has opened the settings to point into them
        self._notes: LessonNotes | None = None  # of the teacher, on another screen
        self.course = Course(session, memory, self._player, self)
        self.covers = Covers()
        self.outline = PartOutline(window)
        self._later = QTimer(self)
        self._later.setInterval(_DRAWN_MS)
        self._later.timeout.connect(self._look_when_drawn)
        self._tries = 0
        self.card = LessonCard()
        self.card.hide()
        self.strip = self._build_strip()
        self._connect()

    def _build_strip(self) -> QToolButton:
        """What is left of the card while it is folded."""
        strip = QToolButton()
        strip.setText("«")
        strip.setToolTip(self.tr("Show the lesson"))
        strip.setAccessibleName(strip.toolTip())
        strip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        strip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        strip.clicked.connect(lambda: self.fold(False))
        strip.hide()
        return strip

    def _connect(self) -> None:
        card, course = self.card, self.course
        card.turned.connect(self.turn)
        card.chosen.connect(course.go)
        card.lookWanted.connect(self.look_here)
        card.restoreWanted.connect(course.restore)
        card.cancelWanted.connect(course.cancel)
        card.foldWanted.connect(lambda: self.fold(True))
        card.startOverWanted.connect(course.start_over)
        card.closeWanted.connect(course.end)
        card.question.answered.connect(course.predict)
        card.question.skipped.connect(lambda: course.predict(""))
        card.question.again_button.clicked.connect(course.ask_again)
        course.turned.connect(self._show_page)
        course.moved.connect(self._show_progress)
        course.filled.connect(self._show_text)
        course.asked.connect(self._show_asked)
        course.revealed.connect(self._show_question)

    def take_parts(self, parts: targets.WindowParts, presenter: Presenter) -> None:
        """What can be pointed at and covered, once the window is laid out."""
        self._parts, self._presenter = parts, presenter
        presenter.notesChanged.connect(self._show_notes)

    # -- what the user asks for

    def show_list(self) -> None:
        """The lessons that there are, beside the window."""
        if self._list is None:
            from explorer.ui.lessons.lesson_list import LessonList

            self._list = LessonList(self._memory, self._window)
            self._list.chosen.connect(self.begin)
            self._list.fileWanted.connect(self.ask_file)
        self._list.show_all()

    def ask_file(self) -> None:
        """Choose a lesson's file."""
        chosen, _ = QFileDialog.getOpenFileName(
            self._window,
            self.tr("Open a lesson file"),
            self._folder(),
            self.tr("Lessons (*.toml)"),
        )
        if chosen:
            self.open_named(chosen)

    def open_named(self, name: str) -> None:
        """Open a lesson by its name or file; a sentence with file and line if it is none."""
        try:
            lesson = library.find(name)
        except LessonFileError as error:
            also = ", ".join(str(one.line) for one in error.others)
            more = self.tr("There are more problems on these lines: {0}.").format(also)
            self._session.report(f"{error} {more}" if also else str(error))
            return
        self.begin(lesson)

    def begin(self, lesson: Lesson) -> None:
        """Open a lesson on the page where it was left; an unsaved run is asked about first."""
        self._files.unsaved.before(lambda: self._begin(lesson))

    def _begin(self, lesson: Lesson) -> None:
        if self._desk is None:
            self._desk = Desk(self._parts.docks, self._look, self._presenter, self._window)
            self.openChanged.emit(True)
            self._desk.make_room()
        self.course.begin(lesson)
        self.fold(False)
        self._window.setFocus()  # a field that takes text would keep Page Down for itself

    def turn(self, by: int) -> None:
        """To another page; after the last one the lesson ends."""
        lesson = self.course.lesson
        if lesson is not None and by > 0 and self.course.index == len(lesson.pages) - 1:
            self.course.end()
        else:
            self.course.turn(by)

    def fold(self, on: bool) -> None:
        """The card, or a strip in its place."""
        there = self.course.lesson is not None
        self.card.setVisible(there and not on)
        self.strip.setVisible(there and on)
        if self._look.presenting:
            self._look.fit()

    @property
    def can_look(self) -> bool:
        """True if the page points at something that no question covers."""
        page = self.course.page
        if page is None or page.look_at is None:
            return False
        return targets.place_of(page.look_at) not in self.course.hidden

    def look_here(self) -> None:
        """Outline what the page points at, unless that would answer its question."""
        page = self.course.page
        self.outline.clear()
        if page is None or page.look_at is None or not self.can_look:
            return
        folded = not self._presenter.settings_shown and targets.in_settings(
            self._parts, page.look_at
        )
        if folded and self._look.presenting:  # for a class, the panels keep their room
            self.outline.point_at(self._presenter.strip)
            return
        self._unfolded |= folded
        there = targets.point(self.outline, self._parts, page.look_at)
        self.card.show_missing("" if there else targets.not_there())

    # -- scenes in files

    def ask_save_scene(self) -> None:
        """Ask for a name, and write what is on screen as a scene."""
        state = self._session.state
        if not (state.request if state.trace is None else state.trace.request).typed:
            self._session.report(
                self.tr("A scene holds one typed prompt, and this run was given something else. "
                        "Save the session instead.")
            )  # fmt: skip
            return
        view = saved_view.look_at(self._parts.docks, self._look)
        scene = captured(self._session.state, view, self._look.scale)
        save_dialog.ask(
            self._window,
            self.tr("Save scene"),
            Path(self._folder()) / "scene.toml",
            self.tr("Scene (*.toml)"),
            lambda path: self.save_scene(scene, path),
        )

    def save_scene(self, scene: Scene, path: Path) -> None:
        """Write a scene; a sentence if that is not possible."""
        try:
            disk.write(path, write_scene(scene).encode())
        except OSError as error:
            self._session.report(
                self.tr("The scene was not saved: {0}. Choose another folder.").format(
                    disk.why(error)
                )
            )
            return
        self._memory.put("folder", str(path.parent))
        self._files.saved.emit(path.name)

    def ask_open_scene(self) -> None:
        """Choose a scene's file."""
        chosen, _ = QFileDialog.getOpenFileName(
            self._window, self.tr("Open scene"), self._folder(), self.tr("Scenes (*.toml)")
        )
        if chosen:
            self.open_scene(chosen)

    def open_scene(self, path: str) -> None:
        """Put the scene of a file in place; a sentence with file and line if it is none."""
        try:
            text = disk.read_text(path, 4 * MOST_CHARACTERS)
            scene = read_scene(text, path)
        except (disk.TextError, LessonFileError) as error:
            self._session.report(str(error))
            return
        self._memory.put("folder", str(Path(path).parent))
        self._files.unsaved.before(lambda: self._play(scene))

    def take_file(self, path: str) -> None:
        """Open what was dropped or named: a lesson's folder or file, or a scene."""
        if Path(path).is_dir() or Path(path).name == FILE:
            self.open_named(path)
            return
        try:
            lesson = load(Path(path))
        except LessonFileError:
            self.open_scene(path)
        else:
            self.begin(lesson)

    def _play(self, scene: Scene) -> None:
        saved_view.show_panels(scene.saved_view, self._parts.docks, self._look)
        self._shown = scene
        self._player.play(scene)

    def _folder(self) -> str:
        remembered = self._memory.text("folder")
        if remembered and Path(remembered).is_dir():
            return remembered
        return QStandardPaths.writableLocation(QStandardPaths.StandardLocation.HomeLocation)

    # -- what is shown

    def show_state(self, old: State | None, new: State) -> None:
        """Follow the scene, and what the figures are worked out from."""
        scene = new.scene
        if changed(old, new, "scene") and scene is not None and scene.scene is self._shown:
            if scene.finished:
                self._shown = None
                saved_view.show_choices(scene.scene.saved_view, self._parts.docks)
            elif scene.problem:
                self._shown = None
                if self.course.progress is None:  # else the card says it
                    self._session.report(scene.problem)
        self.course.show_state(old, new)

    def _show_page(self) -> None:
        lesson, page = self.course.lesson, self.course.page
        self.outline.clear()
        self._later.stop()
        if self._unfolded and not self._look.presenting:
            self._presenter.show_settings(False)
        self._unfolded = False
        if lesson is None or page is None:
            self._cover()
            self.card.hide()
            self.strip.hide()
            self._show_notes()
            if self._desk is not None:
                self._desk.restore()
                self._desk = None
                self.openChanged.emit(False)
            return
        self._shown = page.scene
        saved_view.show_panels(page.scene.saved_view, self._parts.docks, self._look)
        self.card.show_page(lesson, self.course.index, pages_seen(self._memory, lesson))
        self._cover()
        self._show_notes()

    def _show_progress(self) -> None:
        page, progress = self.course.page, self.course.progress
        if page is not None:
            self.card.show_progress(page, progress)
        if progress is not None and progress.finished:
            self._tries = _TRIES
            self._later.start()

    def _show_text(self, page: FilledPage) -> None:
        self.card.text.show_parts(page.text)
        self._show_notes()

    def _show_notes(self) -> None:
        """The page in the teacher's notes, where a class looks at another screen."""
        window = self._presenter.notes
        if window is None:
            self._notes = None
        elif self._notes is None:
            self._notes = LessonNotes()
            self._notes.turned.connect(self.turn)
            window.set_lesson(self._notes)
        if self._notes is not None:
            card, course = self.card, self.course
            said, asked = card.text.parts, card.question.ask.parts
            self._notes.show_page(course.lesson, course.index, said, asked, course.answer)

    def _look_when_drawn(self) -> None:
        """Once the panels show the page's scene; what they draw takes a moment."""
        self._tries -= 1
        if self._parts.docks.settled or self._tries <= 0:
            self._later.stop()
            self.look_here()

    def _show_asked(self, page: FilledPage) -> None:
        if page.page.question is not None:
            self.card.question.show_filled(page)
            self._show_question()

    def _show_question(self) -> None:
        answer = self.course.answer
        if answer is None:
            self.card.question.ask_anew()
        else:
            self.card.question.reveal(answer)
            self.card.show_answer()
        self._cover()
        self.look_here()
        self._show_notes()

    def _cover(self) -> None:
        hidden = self.course.hidden
        self.covers.put(hidden, targets.covered(self._parts))
        self.card.look_button.setVisible(self.can_look)
        self._parts.tokens.hide_next(NextTokenPanel.ID in hidden)

    def close(self) -> None:
        """Follow the session no longer."""
        self.outline.clear()
        self._later.stop()
        if self._list is not None:
            self._list.close()
        self._player.close()
        self.course.close()
