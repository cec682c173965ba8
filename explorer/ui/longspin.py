"""A spin box for whole numbers beyond 2^31, which Qt's own cannot hold."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from explorer.ui.calm import AbstractSpinBox

MAXIMUM = 2**63 - 1


class LongSpinBox(AbstractSpinBox):
    """0 to 2^63 - 1; `changed` tells what the user set, as a Python int."""

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._value = 0
        self.lineEdit().setText("0")
        self.lineEdit().textEdited.connect(self._edited)
        self.editingFinished.connect(self._tidy)

    def value(self) -> int:
        return self._value

    def set_value(self, value: int) -> None:
        """Show another number, without telling anyone."""
        if value != self._value or not self.lineEdit().text():
            self._value = value
            self.lineEdit().setText(str(value))

    def stepBy(self, steps: int) -> None:
        self._take(min(max(self._value + steps, 0), MAXIMUM))
        self.lineEdit().setText(str(self._value))

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        if self._value < MAXIMUM:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if self._value > 0:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        if not text:
            return QValidator.State.Intermediate, text, position
        if text.isascii() and text.isdigit() and int(text) <= MAXIMUM:
            return QValidator.State.Acceptable, text, position
        return QValidator.State.Invalid, text, position

    def _edited(self, text: str) -> None:
        if text.isascii() and text.isdigit() and int(text) <= MAXIMUM:
            self._take(int(text))

    def _tidy(self) -> None:
        self.lineEdit().setText(str(self._value))

    def _take(self, value: int) -> None:
        if value != self._value:
            self._value = value
            self.changed.emit(value)
