"""All keys of the program on one page, from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QDialogButtonBox, QWidget

from explorer.ui.dialogs.help.two_columns import Group, GroupedRows
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.look.theme import unit
from explorer.ui.menus.actions import ACTIONS, MENUS
from explorer.ui.menus.menus import Actions

translate = QCoreApplication.translate

_SIZE = (1040, 650)
_BESIDE_FROM = 800  # pixels at a zoom of 1


class KeysPage(Dialog):
    """Two lists beside each other, so that all of it is seen at once; stays beside the window."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        heads = self.tr("Action"), self.tr("Keys")
        self.lists = (
            GroupedRows(self.tr("Keyboard shortcuts, first half"), heads),
            GroupedRows(self.tr("Keyboard shortcuts, second half"), heads),
        )
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        self._both = boxes.line(None, *((one, 1) for one in self.lists), gap=8)
        self.lay_out(boxes.column(None, self._both), buttons)

    def show_keys(self) -> None:
        """The keys that work now."""
        groups = [*self._menus(), (self.tr("In a focused map or chart"), self._in_maps())]
        half = _middle(groups)
        for rows, part in zip(self.lists, (groups[:half], groups[half:]), strict=True):
            rows.show_groups(part)
        self.size_for(_SIZE)
        self.show()
        self.activateWindow()
        self.lists[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Over one another where they would be too narrow beside each other."""
        super().resizeEvent(event)
        wide = self.width() >= _BESIDE_FROM * unit(self)
        way = QBoxLayout.Direction
        self._both.setDirection(way.LeftToRight if wide else way.TopToBottom)

    def rows(self) -> list[tuple[str, str]]:
        """What is done, and by which keys."""
        return [row for one in self.lists for row in one.rows()]

    def _menus(self) -> list[Group]:
        """Each menu's rows that have keys."""
        found: list[Group] = []
        for name, title in MENUS.items():
            bound = [(row, self._actions.keys(row)) for row in ACTIONS if row.menu == name]
            rows = [(translate("actions", row.text), keys_of(keys)) for row, keys in bound if keys]
            if rows:
                found.append((translate("actions", title).replace("&", ""), rows))
        return found

    def _in_maps(self) -> list[tuple[str, str]]:
        return [
            (self.tr("Move the cursor"), self.tr("Arrow keys, Page Up, Page Down, Home, End")),
            (self.tr("Select the item under the cursor"), self.tr("Enter")),
            (self.tr("Zoom in, zoom out, show the whole map"), "+, −, 0"),
            (self.tr("Zoom, move"), self.tr("Mouse wheel, drag; double-click shows the whole map")),
            (self.tr("Copy picture and table"), keys_of(("Ctrl+C",))),
        ]


def _middle(groups: list[Group]) -> int:
    """Where to part them, so that both lists are about as long."""
    lengths = [len(rows) + 1 for _, rows in groups]
    return min(
        range(1, len(groups)), key=lambda at: max(sum(lengths[:at]), sum(lengths[at:])), default=1
    )


def keys_of(keys: Iterable[str]) -> str:
    """Keys as this system writes them."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(key).toString(native) for key in keys)
