"""May a model run the program code that it brings?  No, unless the user says yes."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer.session.state import CodeQuestion


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
            self.tr("{0} can be opened only by running program code that it brings.").format(
                question.model
            )
        )
        self.setInformativeText(
            self.tr(
                "These files would run: {0}.\n\nThey can do anything that you can do on this "
                "computer: read, change and send files. Say yes only if you know who wrote them. "
                "Your answer counts for this one time."
            ).format(", ".join(question.files))
        )
        self.setStandardButtons(QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No)
        self.setDefaultButton(QMessageBox.StandardButton.No)
        self.setEscapeButton(QMessageBox.StandardButton.No)
        self.button(QMessageBox.StandardButton.Yes).setText(self.tr("Run its code"))
        self.button(QMessageBox.StandardButton.No).setText(self.tr("Don't run it"))
        self.finished.connect(self._tell)

    def _tell(self) -> None:
        yes = self.button(QMessageBox.StandardButton.Yes)
        self.answered.emit(self.clickedButton() is yes)
