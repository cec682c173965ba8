"""Single keys act only where nobody else needs them: not in a field, a slider or a map."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QTextEdit,
    QWidget,
)

_TEXT = (QLineEdit, QPlainTextEdit, QTextEdit, QAbstractSpinBox, QComboBox, QAbstractItemView)
_ARROWS = {Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Home}
# No shortcut is one of these alone; the list of a combo box takes its choice by asking first.
_NEVER = {Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape}
LEAVES_UNDO = "leavesUndo"  # a dynamic property: this field has no undo of its own
KEEPS_ARROWS = "keepsArrows"  # a dynamic property: this widget moves a cursor with the arrows


class ShortcutGuard(QObject):
    """Tells Qt which key presses belong to the focused widget and are no shortcut.

    It listens to that widget alone: a filter on the application would slow every event down.
    """

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        app.focusChanged.connect(self._follow)

    def _follow(self, old: QWidget | None, new: QWidget | None) -> None:
        if old is not None:
            old.removeEventFilter(self)
        if new is not None:
            new.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(watched, QWidget):
            assert isinstance(event, QKeyEvent)
            if _plain(event) and keeps(watched, Qt.Key(event.key())):
                event.accept()
                return True
            if leaves_undo(watched) and _is_undo(event):
                event.ignore()  # the field would take it for its own; this way the shortcut gets it
                return True
        return False


def keeps(widget: QWidget, key: Qt.Key) -> bool:
    """True if this widget, when focused, needs the key itself."""
    if key in _NEVER:
        return False
    if isinstance(widget, _TEXT):
        return True
    if isinstance(widget, QAbstractButton):
        return key == Qt.Key.Key_Space
    if isinstance(widget, QMenu):
        return True
    if isinstance(widget, QAbstractSlider) or widget.property(KEEPS_ARROWS):
        return key in _ARROWS
    return False


def leaves_undo(widget: QWidget) -> bool:
    """True if what is changed in this widget is the session's to undo and redo."""
    return isinstance(widget, QAbstractSpinBox) or bool(widget.property(LEAVES_UNDO))


def _is_undo(event: QKeyEvent) -> bool:
    return event.matches(QKeySequence.StandardKey.Undo) or event.matches(
        QKeySequence.StandardKey.Redo
    )


def _plain(event: QKeyEvent) -> bool:
    modifiers = event.modifiers() & ~(
        Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.KeypadModifier
    )
    return modifiers == Qt.KeyboardModifier.NoModifier and not _is_function_key(event.key())


def _is_function_key(key: int) -> bool:
    return Qt.Key.Key_F1 <= key <= Qt.Key.Key_F35
