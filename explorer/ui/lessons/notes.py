"""A lesson in the teacher's notes: what the page says, how its question stands, what follows."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from explorer.lessons.figure_text import FilledPart
from explorer.lessons.given_answers import GivenAnswer
from explorer.lessons.lesson import Lesson
from explorer.ui.kit import boxes
from explorer.ui.kit.scrolled import Scrolled, Wrapping
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.lessons.figure_label import FigureLabel


class LessonNotes(QWidget):
    """Follows the card that the class sees; hidden while no lesson is open."""

    turned = Signal(int)  # pages on (+1) or back (-1)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.place = SentenceLabel(look="muted")
        self.heading = SentenceLabel(look="heading")
        self.text, self.ask = FigureLabel(), FigureLabel()
        self.state = SentenceLabel(look="title")
        self.following = SentenceLabel(look="muted")
        self.back_button, self.next_button = QPushButton(), QPushButton()
        self.back_button.setText(self.tr("Back"))
        for button, by in ((self.back_button, -1), (self.next_button, +1)):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # Space goes on stepping
            button.clicked.connect(lambda _, by=by: self.turned.emit(by))
        page = Wrapping()
        told = (self.place, self.heading, self.text, self.ask, self.state)
        boxes.column(page, *told, edges=(0, 0, 4, 0), gap=6).addStretch(1)
        buttons = boxes.line(None, self.back_button, (self.next_button, 1), gap=6)
        boxes.column(self, (Scrolled(page, (120, 80)), 1), self.following, buttons, gap=6)

    def show_page(
        self,
        lesson: Lesson | None,
        index: int,
        text: Sequence[FilledPart],
        ask: Sequence[FilledPart],
        answer: GivenAnswer | None,
    ) -> None:
        """A page with its figures, and the class's answer to its question, if it has one."""
        self.setVisible(lesson is not None)
        if lesson is None:
            return
        page, after = lesson.pages[index], lesson.pages[index + 1 : index + 2]
        place = self.tr("{0}, page {1} of {2}")
        self.place.setText(place.format(lesson.title, index + 1, len(lesson.pages)))
        self.heading.setText(page.title)
        self.text.show_parts(text)
        self.ask.show_parts(ask)
        for label in (self.ask, self.state):
            label.setVisible(page.question is not None)
        self.state.setText(self._answered(answer))
        titles = [self.tr("Next page: {0}").format(one.title) for one in after]
        self.following.setText("".join(titles) or self.tr("This is the last page."))
        self.back_button.setEnabled(index > 0)
        self.next_button.setText(self.tr("Next") if after else self.tr("Finish"))

    def _answered(self, answer: GivenAnswer | None) -> str:
        if answer is None:
            return self.tr("Not answered yet. The answer is hidden from the class.")
        if not answer.predicted:
            return self.tr("Skipped. Measured: {0}").format(answer.measured)
        words = self.tr("Predicted: {0}. Measured: {1}")
        return words.format(answer.predicted, answer.measured)
