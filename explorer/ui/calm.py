"""Controls that ignore the mouse wheel unless they have the focus: the page scrolls instead.

Qt's own change their value, and take the focus, when the wheel turns over them.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QDoubleSpinBox,
    QSlider,
    QSpinBox,
    QTabBar,
    QTabWidget,
    QToolTip,
    QWidget,
)


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


class SpinBox(_Calm, QSpinBox):
    """A whole number; what can't be one is refused in words."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return _judged(self, super().validate(text, position))


class DoubleSpinBox(_Calm, QDoubleSpinBox):
    """A number with a fraction; a comma typed is the point that it shows."""

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return _judged(self, super().validate(text.replace(",", "."), position))

    def valueFromText(self, text: str) -> float:
        return super().valueFromText(text.replace(",", "."))


def _judged(field: QSpinBox | QDoubleSpinBox, verdict: object) -> tuple[QValidator.State, str, int]:
    """Qt's verdict on what was typed; a refusal says under the field what it takes."""
    state, text, position = verdict  # type: ignore[misc]  # the stubs name the state alone
    if state == QValidator.State.Invalid and field.hasFocus():
        least, most = (field.textFromValue(end) for end in (field.minimum(), field.maximum()))  # type: ignore[arg-type]
        words = QCoreApplication.translate("SpinBox", "Type a number from {0} to {1}.")
        place = field.mapToGlobal(field.rect().bottomLeft())
        QToolTip.showText(place, words.format(least, most), field)
    return state, text, position


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
