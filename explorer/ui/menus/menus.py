"""Menus, tool tips and shortcuts, made from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, QObject
from PySide6.QtGui import QAction, QIcon, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget

from explorer.session.state import State
from explorer.ui.access import mnemonics
from explorer.ui.look.icons import icon
from explorer.ui.look.theme import Theme
from explorer.ui.menus.action import Action
from explorer.ui.menus.action_window import ActionWindow
from explorer.ui.menus.actions import ACTIONS, MENUS


class Actions(QObject):
    """The table as Qt actions that follow the state."""

    def __init__(self, parent: QWidget, window: ActionWindow, theme: Theme) -> None:
        """The keys work in `parent`, which is that `window` as Qt sees it."""
        super().__init__(parent)
        self._presenting = False
        self._preferences = window.preferences
        self._state: State | None = None
        self._in_lesson = False
        self._icons: dict[str, QIcon] = {}
        self._looks: dict[str, tuple[str, QIcon | None]] = {}
        self.by_id: dict[str, QAction] = {}
        for row in ACTIONS:
            action = QAction(parent)
            action.setObjectName(row.id)
            action.setStatusTip(_text(row.tip))
            action.setCheckable(row.checked is not None or row.preference is not None)
            action.triggered.connect(lambda _=False, row=row: self._carry_out(row, window))
            parent.addAction(action)
            self.by_id[row.id] = action
        self.set_theme(theme)
        self._bind()
        self._preferences.changed.connect(self._follow_preferences)

    def _bind(self) -> None:
        """The keys of each row, with or without single letters."""
        for row in ACTIONS:
            keys = self.keys(row)
            self.by_id[row.id].setShortcuts([QKeySequence(key) for key in keys])
            self.by_id[row.id].setToolTip(_tip(row, keys))

    def keys(self, row: Action) -> list[str]:
        """The keys of a row that work now."""
        letters = self._preferences.on("letter_keys")
        keys = row.keys
        if self._presenting and row.presenter_keys is not None:
            keys = row.presenter_keys
        if self._in_lesson:
            taken = {key for other in ACTIONS for key in other.lesson_keys}
            keys = (*(key for key in keys if key not in taken), *row.lesson_keys)
        return [key for key in keys if letters or len(key) > 1]

    def _follow_preferences(self) -> None:
        self._bind()
        if self._state is not None:
            self.follow(self._state)

    def _carry_out(self, row: Action, window: ActionWindow) -> None:
        row.act(window)
        # Qt flips a checkable action by itself; the state alone says what is true.
        self.follow(window.acting.session.state)

    @staticmethod
    def names(row_id: str) -> list[str]:
        """What the action is called, on and off."""
        (row,) = (row for row in ACTIONS if row.id == row_id)
        return [_text(name) for name in (row.text, row.checked_text) if name]

    def set_theme(self, theme: Theme) -> None:
        """Icons in the theme's colours."""
        self._icons = {
            name: icon(name, theme)
            for row in ACTIONS
            for name in (row.icon, row.checked_icon)
            if name
        }
        for row in ACTIONS:
            self._dress(row)

    def set_presenting(self, on: bool) -> None:
        """Lock what could be hit by accident, and give the keys of a lectern."""
        self._presenting = on
        self._bind()
        if self._state is not None:
            self.follow(self._state)

    def follow(self, state: State) -> None:
        """Enable and check what the state says."""
        self._state = state
        if self._in_lesson is not (state.lesson is not None):
            self._in_lesson = not self._in_lesson
            self._bind()
        for row in ACTIONS:
            action = self.by_id[row.id]
            locked = self._presenting and row.locked_when_presenting
            action.setEnabled(row.enabled(state) and not locked)
            if row.checked is not None:
                action.setChecked(row.checked(state))
            elif row.preference is not None:
                action.setChecked(self._preferences.on(row.preference))
            self._dress(row)

    def _dress(self, row: Action) -> None:
        """Text and icon; some rows are called otherwise while they are on."""
        action = self.by_id[row.id]
        on = self._presenting if row.id == "presenter" else action.isChecked()
        text = row.checked_text if on and row.checked_text else row.text
        if row.named is not None and self._state is not None:
            text = row.named(self._state)
        picture = self._icons.get(row.checked_icon if on and row.checked_icon else row.icon)
        # Each change of an action goes to every menu and button that shows it.
        if self._looks.get(row.id) != (text, picture):
            self._looks[row.id] = (text, picture)
            action.setText(_text(text))
            action.setToolTip(_tip(row, self.keys(row)))
            if picture is not None:
                action.setIcon(picture)


def _text(source: str) -> str:
    return QCoreApplication.translate("actions", source)


def _tip(row: Action, keys: Iterable[str]) -> str:
    named = " / ".join(
        QKeySequence(key).toString(QKeySequence.SequenceFormat.NativeText) for key in keys
    )
    return f"{_text(row.tip)} ({named})" if named else _text(row.tip)


def fill(bar: QMenuBar, actions: Actions) -> dict[str, QMenu]:
    """All menus of the table, in its order; what is not in the table is added by the window."""
    menus = {}
    for name, title in MENUS.items():
        menus[name] = bar.addMenu(_text(title))
        mnemonics.follow(menus[name])
        for row in (row for row in ACTIONS if row.menu == name):
            if row.line_before:
                menus[name].addSeparator()
            menus[name].addAction(actions.by_id[row.id])
    return menus
