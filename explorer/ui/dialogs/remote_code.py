"""May a model run the program code that it brings?  No, unless the user says yes."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QMessageBox, QPushButton, QWidget

from explorer.figures.text.sentences import fitting
from explorer.session.state import CodeQuestion

_NAMED = 8  # files


class CodeDialog(QMessageBox):
    """Enter, Escape and closing it all mean No; nothing is remembered of a Yes."""

    answered = Signal(bool)

    def __init__(self, question: CodeQuestion, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIcon(QMessageBox.Icon.Warning)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWindowTitle(self.tr("Run the model's own code?"))
        self.setText(
            self.tr("{0} needs its own program code to open.").format(fitting(question.model))
        )
        self.setInformativeText(
            self.tr(
                "These files would run: {0}.\n\nThey can do anything you can do on this "
                "computer: read, change and send files. Run them only if you trust "
                "their authors. You will be asked again next time."
            ).format(fitting(self._some(question.files)))
        )
        if len(question.files) > _NAMED:
            self.setDetailedText("\n".join(question.files))
        self.yes = QPushButton(self.tr("Run its code"))
        self.no = QPushButton(self.tr("Don't run it"))
        self.addButton(self.yes, QMessageBox.ButtonRole.YesRole)
        self.addButton(self.no, QMessageBox.ButtonRole.NoRole)
        self.setDefaultButton(self.no)
        self.setEscapeButton(self.no)
        self.finished.connect(lambda: self.answered.emit(self.clickedButton() is self.yes))

    def _some(self, files: Sequence[str]) -> str:
        """As many names as leave the buttons on a small screen; all are under the details."""
        named = ", ".join(files[:_NAMED])
        more = len(files) - _NAMED
        return self.tr("{0} and {1} more").format(named, more) if more > 0 else named

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # A button that has the focus would become the one that Enter presses.
        self.yes.setAutoDefault(False)
        self.no.setDefault(True)
        self.no.setFocus()
