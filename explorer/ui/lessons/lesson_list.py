"""The list of lessons: title, minutes, model and how far one is."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QDialogButtonBox,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from explorer import places, smollm2
from explorer.figures.text import sentences
from explorer.lessons import library
from explorer.lessons.lesson import Lesson
from explorer.ui.frame.topbar import title_of
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.lessons.course import pages_seen
from explorer.ui.settings.settings import Settings

_SIZE = (640, 480)


class LessonList(Dialog):
    """Stays open beside the window until a lesson is chosen."""

    chosen = Signal(object)  # Lesson
    fileWanted = Signal()

    def __init__(self, memory: Settings, parent: QWidget) -> None:
        super().__init__(parent)
        self._memory = memory
        self._lessons: tuple[Lesson, ...] = ()
        self.setWindowTitle(self.tr("Lessons"))
        self.resize(*_SIZE)
        self.table = QTableWidget(0, 4)
        self.table.setAccessibleName(self.tr("Lessons"))
        self.table.setHorizontalHeaderLabels(
            [self.tr("Lesson"), self.tr("Minutes"), self.tr("Model"), self.tr("Pages read")]
        )
        self.table.verticalHeader().hide()
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setTabKeyNavigation(False)
        header = self.table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.currentCellChanged.connect(lambda *_: self._show_summary())
        self.table.itemActivated.connect(lambda _: self.open_chosen())
        self.summary = SentenceLabel()
        self.summary.setMinimumHeight(self.summary.fontMetrics().height() * 3)
        self.summary.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.open_button = QPushButton(self.tr("Open"))
        self.open_button.setProperty("look", "primary")
        self.open_button.setDefault(True)
        self.open_button.clicked.connect(self.open_chosen)
        self.file_button = QPushButton(self.tr("Open a lesson file…"))
        self.file_button.clicked.connect(self._ask_file)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.addButton(self.file_button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.open_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout()
        column.addWidget(self.table, 1)
        column.addWidget(self.summary)
        self.lay_out(column, buttons)

    def show_all(self) -> None:
        """Read the lessons again, and show how far each is."""
        self._lessons, faults = library.readable(language())
        self.table.setRowCount(len(self._lessons))
        for row, lesson in enumerate(self._lessons):
            for column, text in enumerate(self._texts(lesson)):
                self.table.setItem(row, column, QTableWidgetItem(text))
        self.open_button.setEnabled(bool(self._lessons))
        self.summary.setText("\n".join(map(str, faults)))
        if self._lessons:
            unread = [row for row, one in enumerate(self._lessons) if not self._read(one)]
            self.table.setCurrentCell(unread[0] if unread else 0, 0)
            self._show_summary()
        self.show()
        self.activateWindow()
        self.table.setFocus(Qt.FocusReason.OtherFocusReason)

    def open_chosen(self) -> None:
        """Open the lesson that is selected."""
        lesson = self._current()
        if lesson is not None:
            self.close()
            self.chosen.emit(lesson)

    def _ask_file(self) -> None:
        self.close()
        self.fileWanted.emit()

    def _current(self) -> Lesson | None:
        row = self.table.currentRow()
        return self._lessons[row] if 0 <= row < len(self._lessons) else None

    def _texts(self, lesson: Lesson) -> tuple[str, ...]:
        of = len(lesson.pages)
        return (
            sentences.name(lesson.title),
            str(lesson.minutes),
            sentences.name(self.tr(title_of(lesson.model))),
            self.tr("{0} of {1}").format(self._read(lesson), of) if self._read(lesson) else "",
        )

    def _read(self, lesson: Lesson) -> int:
        return len(pages_seen(self._memory, lesson))

    def _show_summary(self) -> None:
        lesson = self._current()
        if lesson is None:
            return
        words = lesson.summary.strip()
        if lesson.model == smollm2.NAME and not smollm2.path().is_file():
            missing = self.tr(
                "This lesson needs SmolLM2, which has not been downloaded yet ({0} MB). "
                "Download it in the list of models (Ctrl+Shift+M)."
            ).format(smollm2.DOWNLOAD_MB)
            words = f"{words}\n{missing}"
        self.summary.setText(words)


def language() -> str:
    """The folder of lessons in the user's language, if there is one; else English."""
    code = QLocale.system().name().split("_")[0]
    try:
        places.asset("lessons", code)
    except FileNotFoundError:
        return library.ENGLISH
    return code
