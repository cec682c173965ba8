"""Asks whether to save an unsaved run before something replaces it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox, QWidget

from explorer.session.session import Session
from explorer.ui.files import save_dialog

Act = Callable[[], object]


class Unsaved(QObject):
    """Save, discard or cancel; one question at a time."""

    def __init__(
        self,
        session: Session,
        save: Callable[[Act], None],
        window: QWidget,
        parent: QObject,
        kept: bool = True,
    ) -> None:
        """`save` writes what is on screen, and calls what it is given once that is done.

        Not `kept`: once the program is closed, nothing brings the run back.
        """
        super().__init__(parent)
        self._session = session
        self._save = save
        self._kept = kept
        self._window = window
        self._question: QMessageBox | None = None

    def before(self, act: Act, closing: bool = False) -> None:
        """Do `act` now if nothing would be lost, else once the user has saved or discarded."""
        if not self._session.state.unsaved:
            act()
        elif self._question is None:
            self._ask(act, closing)

    def _ask(self, act: Act, closing: bool) -> None:
        box = self._question = QMessageBox(self._window)
        box.setObjectName("unsaved")
        box.setIcon(QMessageBox.Icon.Question)
        box.setWindowTitle(self.tr("Save the run?"))
        box.setText(self._words())
        box.setInformativeText(self._consequence(closing))
        buttons = QMessageBox.StandardButton
        box.setStandardButtons(buttons.Save | buttons.Discard | buttons.Cancel)
        box.setDefaultButton(buttons.Save)
        box.button(buttons.Save).clicked.connect(lambda: self._save_first(act))
        box.button(buttons.Discard).clicked.connect(act)
        box.finished.connect(self._forget)
        save_dialog.present(box)

    def _words(self) -> str:
        file = self._session.state.file
        if file:
            return self.tr("Save the changes to {0}?").format(Path(file).name)
        if not self._kept:
            return self.tr("Save the run of the second side?")
        return self.tr("Save this run?")

    def _consequence(self, closing: bool) -> str:
        if not self._kept and closing:
            return self.tr("If you discard it, it is gone.")
        if closing:
            return self.tr(
                "If you discard it, you can get it back only with File > Reopen last "
                "session, until you close the program again."
            )
        return self.tr("If you discard it, only Undo can bring it back.")

    def _save_first(self, act: Act) -> None:
        self._session.cancel()  # a run that went on would be unsaved again
        self._save(act)

    def _forget(self) -> None:
        self._question = None
