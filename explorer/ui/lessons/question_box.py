"""A question: predict first, then see the measured answer beside the prediction."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from explorer.figures.text.sentences import fitting
from explorer.lessons.given_answers import GivenAnswer
from explorer.lessons.lesson import Question
from explorer.ui.access.accessible import announce
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.kit import boxes
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.lessons.figure_label import FigureLabel
from explorer.ui.lessons.filled_page import FilledPage

_MOST_TYPED = 200  # letters


class ChoiceRow(QWidget):
    """A radio button whose words wrap; a click on the words chooses it, too."""

    def __init__(self, words: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = words
        self.button = QRadioButton()
        self.button.setAccessibleName(fitting(words))
        label = SentenceLabel(words)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(label, 1)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.button.isEnabled():
            self.button.setChecked(True)


class QuestionBox(QWidget):
    """Asks, and after an answer or Skip shows what was predicted and what was measured."""

    answered = Signal(str)
    skipped = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: list[ChoiceRow] = []
        self._group = QButtonGroup(self)
        self.ask = FigureLabel()
        self._options = QVBoxLayout()
        self._options.setSpacing(4)
        self.field = QLineEdit()
        IgnoreFileDrops(self.field)
        self.field.setMaxLength(_MOST_TYPED)
        self.field.setPlaceholderText(self.tr("your prediction"))
        self.field.setAccessibleName(self.tr("Your prediction"))
        self.field.textChanged.connect(self._offer)
        self.field.returnPressed.connect(self._answer)
        self.check_button = QPushButton(self.tr("Check"))
        self.check_button.setProperty("look", "primary")
        self.check_button.clicked.connect(self._answer)
        self.skip_button = QPushButton(self.tr("Skip"))
        self.skip_button.setProperty("look", "flat")
        self.skip_button.setToolTip(self.tr("Show the answer without a prediction"))
        self.skip_button.clicked.connect(self.skipped)
        self.again_button = QPushButton(self.tr("Ask again"))
        self.again_button.setProperty("look", "flat")
        buttons = Flow()
        for button in (self.check_button, self.skip_button, self.again_button):
            buttons.addWidget(button)
        self.predicted = SentenceLabel()
        self.measured = SentenceLabel()
        self.verdict = SentenceLabel(look="title")
        self.explanation = FigureLabel()
        self._group.buttonToggled.connect(self._offer)
        boxes.column(
            self, self.ask, self._options, self.field, self.verdict, self.predicted, self.measured,
            self.explanation, buttons, gap=6,
        )  # fmt: skip
        self._known = False
        self.hide()

    @property
    def choices(self) -> list[ChoiceRow]:
        """The choices on offer, in order."""
        return list(self._choices)

    @property
    def prediction(self) -> str:
        """What is chosen or typed now."""
        if self._choices:
            return next((row.words for row in self._choices if row.button.isChecked()), "")
        return self.field.text().strip()

    def begin(self, question: Question | None) -> None:
        """Ask another question; its figures come later."""
        self._known = False
        self._set_choices(())
        self.field.clear()
        self.setVisible(question is not None)
        if question is not None:
            self.ask.show_pending(question.ask)
            self._show_parts(asking=True, typed=not question.choices)

    def show_filled(self, page: FilledPage) -> None:
        """The figures are there: now there is something to compare a prediction with."""
        self._known = True
        self.ask.show_parts(page.ask)
        if [row.words for row in self._choices] != list(page.choice_words):
            self._set_choices(page.choice_words)
        self.explanation.show_parts(page.explanation)
        self._offer()

    def ask_anew(self) -> None:
        """Nothing is chosen, and the answer is hidden."""
        self._group.setExclusive(False)
        for row in self._choices:
            row.button.setChecked(False)
        self._group.setExclusive(True)
        self._show_parts(asking=True, typed=not self._choices)

    def reveal(self, answer: GivenAnswer) -> None:
        """Both, side by side; the explanation after them."""
        for row in self._choices:
            row.button.setChecked(row.words == answer.predicted)
        self.verdict.setText(self._verdict(answer))
        guess = answer.predicted or self.tr("no prediction")
        self.predicted.setText(self.tr("You predicted: {0}").format(guess))
        self.measured.setText(self.tr("Measured: {0}").format(answer.measured))
        self._show_parts(asking=False, typed=not self._choices)
        told = (self.verdict, self.predicted, self.measured)
        announce(self, " ".join(label.text() for label in told if label.text()))

    def _verdict(self, answer: GivenAnswer) -> str:
        if answer.right is None:
            return self.tr("The answer could not be measured")
        if not answer.predicted:
            return self.tr("The answer")
        return self.tr("✓ As predicted") if answer.right else self.tr("✗ Not as predicted")

    def _show_parts(self, asking: bool, typed: bool) -> None:
        for widget in (self.check_button, self.skip_button):
            widget.setVisible(asking)
        self.field.setVisible(asking and typed)
        for row in self._choices:
            row.button.setEnabled(asking)
        for label in (self.verdict, self.predicted, self.measured, self.explanation):
            label.setVisible(not asking)
        self.again_button.setVisible(not asking)
        self._offer()

    def _set_choices(self, words: tuple[str, ...]) -> None:
        for row in self._choices:
            self._group.removeButton(row.button)
            self._options.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._choices = [ChoiceRow(one) for one in words]
        for row in self._choices:
            self._group.addButton(row.button)
            self._options.addWidget(row)

    def _offer(self, *_: object) -> None:
        self.check_button.setEnabled(self._known and bool(self.prediction))
        self.skip_button.setEnabled(self._known)

    def _answer(self) -> None:
        if self.check_button.isEnabled() and self.check_button.isVisibleTo(self):
            self.answered.emit(self.prediction)
