"""Help: what is on screen, and the keys."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialogButtonBox, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.menus.actions import ACTIONS, MENUS
from explorer.ui.menus.menus import Actions
from explorer.ui.panel.panel import Panel

translate = QCoreApplication.translate

_SIZE = (720, 560)
Rows = list[tuple[str, str]]


class Help(Dialog):
    """A list that a screen reader can walk over; it stays open beside the window."""

    def __init__(self, actions: Actions, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions = actions
        self.setWindowTitle(self.tr("Help"))
        self.resize(*_SIZE)
        self.tree = QTreeWidget()
        self.tree.setAccessibleName(self.tr("Guide and keyboard shortcuts"))
        self.tree.setHeaderLabels([self.tr("What"), self.tr("Meaning or keys")])
        self.tree.setWordWrap(True)
        self.tree.setAlternatingRowColors(True)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout()
        column.addWidget(self.tree, 1)
        self.lay_out(column, buttons)

    def show_for(self, panels: Iterable[Panel]) -> None:
        """Say what these panels show, and every key of the program."""
        self.tree.clear()
        parts = [
            (self.tr("On screen"), [(p.tr(p.TITLE), p.explanation) for p in panels]),
            *self._menus(),
            (self.tr("In presenter mode"), _presenting()),
            (self.tr("In a focused map or chart"), self._in_maps()),
        ]
        for name, rows in parts:
            part = QTreeWidgetItem([name])
            for row in rows:
                item = QTreeWidgetItem(part, list(row))
                item.setToolTip(1, row[1])
            self.tree.addTopLevelItem(part)
        self.tree.expandAll()
        self.tree.resizeColumnToContents(0)
        self.tree.setCurrentIndex(self.tree.model().index(0, 0))
        self.show()
        self.activateWindow()
        self.tree.setFocus(Qt.FocusReason.OtherFocusReason)

    def _menus(self) -> list[tuple[str, Rows]]:
        """Each menu's rows that have keys."""
        found = []
        for name, title in MENUS.items():
            bound = [(row, self._actions.keys(row)) for row in ACTIONS if row.menu == name]
            rows = [(translate("actions", row.text), keys_of(keys)) for row, keys in bound if keys]
            if rows:
                found.append((translate("actions", title).replace("&", ""), rows))
        return found

    def _in_maps(self) -> Rows:
        return [
            (self.tr("Move the cursor"), self.tr("Arrow keys, Page Up, Page Down, Home, End")),
            (self.tr("Select the item under the cursor"), self.tr("Enter")),
            (self.tr("Zoom in, zoom out, show the whole map"), "+, −, 0"),
            (self.tr("Zoom, move"), self.tr("Mouse wheel, drag; double-click shows the whole map")),
            (self.tr("Copy picture and table"), keys_of(("Ctrl+C",))),
        ]


def _presenting() -> Rows:
    """The keys that are others in front of a class."""
    rows = ((row.text, row.presenter_keys) for row in ACTIONS)
    return [(translate("actions", text), keys_of(keys)) for text, keys in rows if keys]


def keys_of(keys: Iterable[str]) -> str:
    """Keys as this system writes them."""
    native = QKeySequence.SequenceFormat.NativeText
    return ", ".join(QKeySequence(key).toString(native) for key in keys)
