"""Asks what goes into a report, and in which form it is saved."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPixmap
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QPushButton,
    QWidget,
)

from explorer.session.state import State
from explorer.ui.dialogs.hand_in import report as reports
from explorer.ui.dialogs.hand_in.report import Answer, Picture, Report
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel

_PREVIEW = QSize(180, 110)  # pixels
_SIZE = (680, 560)


class ReportDialog(Dialog):
    """The run as it was when the dialog was opened, with what the user adds."""

    wanted = Signal(object, str)  # Report, "html" or "pdf"

    def __init__(
        self,
        state: State,
        pictures: Sequence[Picture],
        answers: Sequence[Answer] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._state, self._pictures, self._answers = state, tuple(pictures), tuple(answers)
        self.setWindowTitle(self.tr("Make a report"))
        self.resize(*_SIZE)
        self.title = QLineEdit(self.tr("Report"))
        self.author = QLineEdit()
        self.notes = QPlainTextEdit()
        self.notes.setTabChangesFocus(True)
        self.room = QCheckBox(self.tr("Leave lines to write on"))
        self.with_answers = QCheckBox(
            self.tr("Answers given in lessons ({0})").format(len(answers))
        )
        self.with_answers.setChecked(True)
        self.with_answers.setVisible(bool(answers))
        self.list = self._list()
        self.html = self._button(self.tr("Save HTML…"), "html")
        self.html.setProperty("look", "primary")
        self.pdf = self._button(self.tr("Save PDF…"), "pdf")
        self._lay_out()

    def _list(self) -> QListWidget:
        found = QListWidget()
        found.setAccessibleName(self.tr("Pictures in the report"))
        found.setIconSize(_PREVIEW)
        found.setSpacing(3)
        for picture in self._pictures:
            small = picture.image.scaled(
                _PREVIEW,
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            small.setDevicePixelRatio(1)
            item = QListWidgetItem(QIcon(QPixmap.fromImage(small)), picture.title)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked)
            item.setToolTip(picture.caption)
            found.addItem(item)
        return found

    def _button(self, text: str, kind: str) -> QPushButton:
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: self.wanted.emit(self.report(), kind))
        return button

    def _lay_out(self) -> None:
        form = QFormLayout()
        form.addRow(self.tr("Title"), self.title)
        form.addRow(self.tr("Your name"), self.author)
        form.addRow(self.tr("Notes"), self.notes)
        self.notes.setMaximumHeight(110)
        hint = SentenceLabel(look="muted")
        hint.setText(
            self.tr("Pictures of the panels on screen. Open another panel first to add it.")
            if self._pictures
            else self.tr("No panel shows a picture now. The report has the run in words.")
        )
        content = boxes.column(
            None, form, self.with_answers, self.room, hint, (self.list, 1), gap=8
        )
        leave = QPushButton(self.tr("Close"))
        leave.setAutoDefault(False)
        leave.clicked.connect(self.close)
        row = boxes.line(None, leave, self.pdf, self.html)
        row.insertStretch(0, 1)
        self.lay_out(content, row)

    def report(self) -> Report:
        """What is asked for now."""
        trace = self._state.trace
        assert trace is not None
        rows = range(self.list.count())
        chosen = [self.list.item(r).checkState() is Qt.CheckState.Checked for r in rows]
        return Report(
            title=self.title.text().strip() or self.tr("Report"),
            author=self.author.text().strip(),
            notes=self.notes.toPlainText(),
            day=date.today(),
            prompt=reports.prompt_text(trace),
            generated=reports.generated_text(trace),
            tokens=reports.tokens_of(trace),
            facts=reports.facts(self._state),
            answers=self._answers if self.with_answers.isChecked() else (),
            pictures=tuple(p for p, on in zip(self._pictures, chosen, strict=True) if on),
            room=self.room.isChecked(),
        )
