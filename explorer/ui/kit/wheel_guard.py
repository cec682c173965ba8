"""Controls that ignore the mouse wheel unless they have the focus: the page scrolls instead.

Qt's own change their value, and take the focus, when the wheel turns over them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QSlider,
    QSpinBox,
    QTabBar,
    QTabWidget,
    QWidget,
)

from explorer.ui.kit.typed_numbers import TypedNumber

if TYPE_CHECKING:
    _Widget = QWidget  # what _WheelNeedsFocus stands in front of
else:
    _Widget = object


class _WheelNeedsFocus(_Widget):
    """In front of a Qt class: the wheel acts only with the focus, and does not give it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


class ComboBox(_WheelNeedsFocus, QComboBox):
    """A list to choose from; the mouse leaves the focus where it was, for Space to step."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)


class SpinBox(TypedNumber, _WheelNeedsFocus, QSpinBox):
    """A whole number."""

    def limits(self) -> tuple[int, int]:
        return self.minimum(), self.maximum()

    def number_now(self) -> int:
        return self.value()

    def put_back(self, number: float) -> None:
        self.setValue(int(number))

    def valueFromText(self, text: str) -> int:
        number = self.number_in(text)
        return self.value() if number is None else int(number)


class DoubleSpinBox(TypedNumber, _WheelNeedsFocus, QDoubleSpinBox):
    """A number with a fraction; a comma typed is the point that it shows."""

    def limits(self) -> tuple[float, float]:
        return self.minimum(), self.maximum()

    def decimals_taken(self) -> int:
        return self.decimals()

    def number_now(self) -> float:
        return self.value()

    def put_back(self, number: float) -> None:
        self.setValue(number)

    def valueFromText(self, text: str) -> float:
        number = self.number_in(text)
        return self.value() if number is None else number


class AbstractSpinBox(_WheelNeedsFocus, QAbstractSpinBox):
    """What a number of another kind is made from."""


class Slider(_WheelNeedsFocus, QSlider):
    """A value along a level line."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setOrientation(Qt.Orientation.Horizontal)


def leave_focus(root: QWidget) -> None:
    """Clicked buttons take no focus: Space would press them again instead of stepping."""
    for button in root.findChildren(QAbstractButton):
        if button.focusPolicy() & Qt.FocusPolicy.ClickFocus == Qt.FocusPolicy.ClickFocus:
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)


class TabWidget(QTabWidget):
    """Pages behind tabs; the wheel turns none of them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        ignore_wheel(self.tabBar())


class _WheelFilter(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.Wheel:
            return False
        if isinstance(watched, QWidget) and watched.hasFocus():
            return False
        event.ignore()
        return True


def ignore_wheel(bar: QTabBar) -> None:
    """Make a tab bar that Qt has made ignore the wheel as well."""
    if bar.findChild(_WheelFilter) is None:
        bar.installEventFilter(_WheelFilter(bar))
