"""A spin box for whole numbers beyond 2^31, which Qt's own cannot hold."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from explorer.ui.kit.typed_numbers import TypedNumber
from explorer.ui.kit.wheel_guard import AbstractSpinBox

MAXIMUM = 2**63 - 1


class LongSpinBox(TypedNumber, AbstractSpinBox):
    """0 to 2^63 - 1; `changed` tells what the user set, as a Python int."""

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._value = 0
        self.lineEdit().setText("0")

    def value(self) -> int:
        return self._value

    def number_now(self) -> int:
        return self._value

    def set_value(self, value: int) -> None:
        """Show another number, without telling anyone."""
        if value != self._value or not self.lineEdit().text():
            self._value = value
            self.lineEdit().setText(str(value))

    def limits(self) -> tuple[int, int]:
        return 0, MAXIMUM

    def commit(self) -> None:
        number = self.number_in(self.lineEdit().text())
        if number is not None:
            self._take(int(number))
        self.lineEdit().setText(str(self._value))

    def put_back(self, number: float) -> None:
        """Nothing was taken yet."""

    def stepBy(self, steps: int) -> None:
        self.take_typed()
        self._take(min(max(self._value + steps, 0), MAXIMUM))
        self.lineEdit().setText(str(self._value))

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:
        flags = QAbstractSpinBox.StepEnabledFlag.StepNone
        if self._value < MAXIMUM:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepUpEnabled
        if self._value > 0:
            flags |= QAbstractSpinBox.StepEnabledFlag.StepDownEnabled
        return flags

    def _take(self, value: int) -> None:
        if value != self._value:
            self._value = value
            self.changed.emit(value)
