"""The card of a lesson: what to read, what to predict, and a button for the next page."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QMenu,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer.figures.text import sentences
from explorer.lessons.lesson import Lesson, LessonPage
from explorer.session.state import SceneProgress
from explorer.ui.access import mnemonics
from explorer.ui.access.accessible import announce
from explorer.ui.kit import boxes
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.names import literal
from explorer.ui.kit.scrolled import Scrolled, Wrapping
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.lessons.figure_label import FigureLabel
from explorer.ui.lessons.question_box import QuestionBox
from explorer.ui.look.theme import Theme, unit
from explorer.ui.threads.later import later

_WIDTH = 300  # pixels at a zoom of 1
_LARGE = 1.4  # the zoom from which the page has all of the card
_SHARE = 0.3  # of the window at most, in large text


class LessonCard(QWidget):
    """Shows one page; `Lessons` says what it holds and does what it asks for."""

    turned = Signal(int)  # pages on (+1) or back (-1)
    chosen = Signal(int)  # a page of the contents
    lookWanted = Signal()
    restoreWanted = Signal()
    cancelWanted = Signal()
    foldWanted = Signal()
    startOverWanted = Signal()
    closeWanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        self.title = SentenceLabel(look="muted")
        self.heading = SentenceLabel(look="heading")
        self.text = FigureLabel()
        self.question = QuestionBox()
        self.look_button = QPushButton(self.tr("Look here"))
        self.look_button.setToolTip(self.tr("Outline what this page is about"))
        self.look_button.clicked.connect(self.lookWanted)
        self.restore_button = QPushButton(self.tr("Reset this page"))
        self.restore_button.setProperty("look", "flat")
        self.restore_button.setToolTip(
            self.tr("Bring back this page's model, prompt, settings and panels")
        )
        self.restore_button.clicked.connect(self.restoreWanted)
        self.missing = SentenceLabel(look="muted")
        self.missing.hide()
        self.problem = SentenceLabel(look="error")
        self._build_progress()
        boxes.column(
            self, self._build_top(), self._line(), (self._build_body(), 1), self._build_foot(),
            edges=(10, 6, 10, 8), gap=6,
        )  # fmt: skip
        self.set_theme(None)

    # -- building

    def _build_top(self) -> QHBoxLayout:
        self.contents = QToolButton()
        self.contents.setProperty("look", "flat")
        self.contents.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.contents.setToolTip(self.tr("All pages of this lesson"))
        self._menu = QMenu(self.contents)
        mnemonics.follow(self._menu)
        self.contents.setMenu(self._menu)
        fold = self._flat("»", self.tr("Fold the lesson away"), self.foldWanted)
        close = self._flat("✕", self.tr("Close the lesson"), self.closeWanted)
        return boxes.line(None, self.contents, (QWidget(), 1), fold, close, gap=2)

    def _flat(self, text: str, name: str, signal: object) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setProperty("look", "title-button")
        button.setToolTip(name)
        button.setAccessibleName(name)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(signal)
        return button

    def _line(self) -> QFrame:
        line = QFrame()
        line.setFrameShape(QFrame.Shape.HLine)
        line.setProperty("look", "line")
        return line

    def _build_progress(self) -> None:
        self._doing = SentenceLabel(look="muted")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setAccessibleName(self.tr("Progress of the scene"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        self.cancel_button.clicked.connect(self.cancelWanted)
        self.progress = QWidget()
        row = boxes.line(None, (self._bar, 1), self.cancel_button, gap=6)
        boxes.column(self.progress, self._doing, row, gap=4)
        self.progress.hide()

    def _build_body(self) -> Scrolled:
        page = Wrapping()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 4, 0)
        column.setSpacing(8)
        buttons = Flow()
        buttons.addWidget(self.look_button)
        buttons.addWidget(self.restore_button)
        for part in (self.title, self.heading, self.progress, self.problem, self.text):
            column.addWidget(part)
        column.addLayout(buttons)
        column.addWidget(self.missing)
        self._ask_line = self._line()
        column.addWidget(self._ask_line)
        column.addWidget(self.question)
        column.addStretch(1)
        self._body = Scrolled(page, (120, 80))
        return self._body

    def _build_foot(self) -> QHBoxLayout:
        self.back_button = QPushButton(self.tr("Back"))
        self.back_button.setToolTip(self.tr("Previous page (Page Up)"))
        self.back_button.clicked.connect(lambda: self.turned.emit(-1))
        self.next_button = QPushButton(self.tr("Next"))
        self.next_button.setToolTip(self.tr("Next page (Page Down)"))
        self.next_button.setProperty("look", "primary")
        self.next_button.clicked.connect(lambda: self.turned.emit(+1))
        return boxes.line(None, self.back_button, (self.next_button, 1), gap=6)

    # -- size

    def set_theme(self, theme: Theme | None) -> None:
        """Text that has grown needs more room; a class knows which lesson it is."""
        self.title.setVisible(unit(self) < _LARGE)
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(self._wanted(), super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(self._wanted(), super().minimumSizeHint().height())

    def _wanted(self) -> int:
        """Never so wide that the panels have no room; never narrower than at the desk."""
        most = max(_WIDTH, round(self.window().width() * _SHARE))
        return min(round(_WIDTH * unit(self)), most)

    # -- a page

    def show_page(self, lesson: Lesson, index: int, seen: frozenset[int]) -> None:
        """Another page, before its scene is in place."""
        page, last = lesson.pages[index], len(lesson.pages) - 1
        self.title.setText(lesson.title)
        self.heading.setText(page.title)
        self.contents.setText(self.tr("{0} of {1}").format(index + 1, last + 1))
        name = self.tr("Page {0} of {1}. Contents").format(index + 1, last + 1)
        self.contents.setAccessibleName(name)
        self._fill_contents(lesson, index, seen)
        self.text.show_pending(page.text)
        self.question.begin(page.question)
        self._ask_line.setVisible(page.question is not None)
        self.problem.hide()
        self.missing.hide()
        self.back_button.setEnabled(index > 0)
        self.next_button.setText(self.tr("Next") if index < last else self.tr("Finish"))
        self._body.verticalScrollBar().setValue(0)
        self.setAccessibleName(self.tr("Lesson: {0}").format(lesson.title))
        announce(self, f"{name[: name.rindex('.')]}: {page.title}")

    def _fill_contents(self, lesson: Lesson, index: int, seen: frozenset[int]) -> None:
        self._menu.clear()
        for place, page in enumerate(lesson.pages):
            mark = "✓ " if place in seen and place != index else ""
            words = literal(f"{place + 1}  {mark}{sentences.name(page.title)}")
            action = self._menu.addAction(words, partial(self.chosen.emit, place))
            action.setCheckable(True)
            action.setChecked(place == index)
        self._menu.addSeparator()
        over = self._menu.addAction(self.tr("Start over"), self.startOverWanted.emit)
        over.setToolTip(self.tr("Forget your answers in this lesson and go to page 1"))

    def show_answer(self) -> None:
        """Scroll to the answer, where the page is longer than the card."""
        later(self, self._scroll_to_answer)  # once it has its place

    def _scroll_to_answer(self) -> None:
        bar, told = self._body.verticalScrollBar(), self.question.verdict
        if told.isVisible():
            top = told.mapTo(self._body.viewport(), QPoint()).y() + bar.value()
            bar.setValue(top + self._end_of_answer() - self._body.viewport().height())

    def _end_of_answer(self) -> int:
        """From the verdict down to the end of what explains it, at most the card's height."""
        question = self.question
        end = question.explanation.geometry().bottom() - question.verdict.geometry().top()
        return min(end + 4, self._body.viewport().height())

    def show_missing(self, sentence: str) -> None:
        """Say that what the page points at is not there; "" = it is."""
        self.missing.setText(sentence)
        self.missing.setVisible(bool(sentence))

    def show_progress(self, page: LessonPage, progress: SceneProgress | None) -> None:
        """How far the page's scene is, or why it is not in place."""
        going = progress is not None and not (progress.finished or progress.problem)
        self.progress.setVisible(going)
        self.restore_button.setVisible(not going)
        if progress is None:
            return
        self._doing.setText(progress.words or self.tr("Preparing this page…"))
        self._bar.setRange(0, max(progress.of, 1))
        self._bar.setValue(min(progress.done, progress.of))
        self.problem.setText(progress.problem)
        self.problem.setVisible(bool(progress.problem))
        again = self.tr("Try again") if progress.problem else self.tr("Reset this page")
        self.restore_button.setText(again)
        if going:
            self.text.show_pending(page.text)
