"""All keys of the program on one page, from the table of actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent
from PySide6.QtWidgets import QDialogButtonBox, QWidget

from explorer.ui.dialogs.help.two_columns import Group, GroupedRows
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.look.theme import unit
from explorer.ui.menus.actions import ACTIONS, MENUS
from explorer.ui.menus.menus import Actions

translate = QCoreApplication.translate

_SIZE = (1250, 620)
_MOST_LISTS, _LIST = 3, 370  # and how wide one is at least, in pixels at a zoom of 1


class KeysPage(Dialog):
    """Lists beside each other, so that all of it is seen at once; stays beside the window."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self._groups: list[Group] = []
        self.setWindowTitle(self.tr("Keyboard shortcuts"))
        heads = self.tr("Action"), self.tr("Keys")
        name = self.tr("Keyboard shortcuts, part {0}")
        self.lists = [GroupedRows(name.format(part), heads) for part in range(1, _MOST_LISTS + 1)]
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        beside = boxes.line(None, *((one, 1) for one in self.lists), gap=8)
        self.lay_out(boxes.column(None, beside), buttons)

    def show_keys(self) -> None:
        """The keys that work now."""
        self._groups = [*self._menus(), (self.tr("In a focused map or chart"), self._in_maps())]
        self.size_for(_SIZE)
        self._share_out()
        self.show()
        self.activateWindow()
        self.lists[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if sum(not one.isHidden() for one in self.lists) != self._fitting:
            self._share_out()

    @property
    def _fitting(self) -> int:
        """How many lists there is room for."""
        return max(1, min(_MOST_LISTS, int(self.width() / (_LIST * unit(self)))))

    def _share_out(self) -> None:
        """The groups in as many lists as there is room for."""
        parts = shared(self._groups, self._fitting)
        for place, one in enumerate(self.lists):
            one.setVisible(place < len(parts))
            one.show_groups(parts[place] if place < len(parts) else ())
            one.clearSelection()  # nothing is chosen until somebody walks over the rows

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
            (self.tr("Zoom in, zoom out, whole map"), "+, −, 0"),
            (self.tr("Zoom, move, whole map"), self.tr("Mouse wheel, drag, double-click")),
            (self.tr("Draw a mask, end, drop a stroke"), self.tr("Shift+arrow keys, Enter, Esc")),
            (self.tr("Copy picture and table"), keys_of(("Ctrl+C",))),
        ]


def shared(groups: Sequence[Group], lists: int) -> list[list[Group]]:
    """The groups as that many lists, or fewer, the longest of which is as short as can be."""
    lengths = [len(rows) + 1 for _, rows in groups]

    def longest(places: tuple[int, ...]) -> int:
        totals = [0] * lists
        for place, length in zip(places, lengths, strict=True):
            totals[place] += length
        return max(totals)

    # A few groups: all ways can be tried, and of equal ones the first is the most in order.
    places = min(product(range(lists), repeat=len(groups)), key=longest)
    parts = [[g for g, at in zip(groups, places, strict=True) if at == n] for n in range(lists)]
    return [part for part in parts if part]


def keys_of(keys: Iterable[str]) -> str:
    """Keys as this system writes them."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(key).toString(native) for key in keys)
