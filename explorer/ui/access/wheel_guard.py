"""Controls that ignore the mouse wheel unless they have the focus: the page scrolls instead.

Qt's own change their value, and take the focus, when the wheel turns over them.
"""

from __future__ import annotations

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


class _Calm:
    """In front of a Qt class: the wheel acts only with the focus, and does not give it."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # type: ignore[attr-defined]

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():  # type: ignore[attr-defined]
            super().wheelEvent(event)  # type: ignore[misc]
        else:
            event.ignore()


class ComboBox(_Calm, QComboBox):
    """A list to choose from; the mouse leaves the focus where it was, for Space to step."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)


class SpinBox(TypedNumber, _Calm, QSpinBox):
    """A whole number."""


class DoubleSpinBox(TypedNumber, _Calm, QDoubleSpinBox):
    """A number with a fraction; a comma typed is the point that it shows."""

    def decimals_taken(self) -> int:
        return self.decimals()


class AbstractSpinBox(_Calm, QAbstractSpinBox):
    """What a number of another kind is made from."""


class Slider(_Calm, QSlider):
    """A value along a line."""


def leave_focus(root: QWidget) -> None:
    """Clicked buttons take no focus: Space would press them again instead of stepping."""
    for button in root.findChildren(QAbstractButton):
        if button.focusPolicy() & Qt.FocusPolicy.ClickFocus == Qt.FocusPolicy.ClickFocus:
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)


class TabWidget(QTabWidget):
    """Pages behind tabs; the wheel turns none of them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        leave_alone(self.tabBar())


class _PassBy(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and not watched.hasFocus():  # type: ignore[attr-defined]
            event.ignore()
            return True
        return False


def leave_alone(bar: QTabBar) -> None:
    """Make a tab bar that Qt has made ignore the wheel as well."""
    if bar.findChild(_PassBy) is None:
        bar.installEventFilter(_PassBy(bar))
