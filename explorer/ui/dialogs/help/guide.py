"""The guide: how to begin, and what each panel shows."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QPushButton, QWidget

from explorer.ui.dialogs.help.two_columns import Group, GroupedRows
from explorer.ui.frame.panel_dock import PanelDock
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog

_SIZE = (760, 560)


class Guide(Dialog):
    """First steps, the panels on screen, and those that the View menu opens."""

    glossaryWanted = Signal()
    keysWanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Guide"))
        self.list = GroupedRows(self.tr("Guide"), (self.tr("What"), self.tr("Meaning")))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        for text, signal in (
            (self.tr("Glossary"), self.glossaryWanted),
            (self.tr("Keyboard shortcuts"), self.keysWanted),
        ):
            button = QPushButton(text)
            button.setAutoDefault(False)
            button.clicked.connect(signal)
            buttons.addButton(button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.close)
        self.lay_out(boxes.column(None, (self.list, 1)), buttons)

    def show_for(self, docks: Iterable[PanelDock]) -> None:
        """Explain these panels, those on screen as they are now."""
        shown, others = [], []
        for dock in docks:
            if dock.in_front:
                shown.append((dock.place.words, dock.panel.explanation))
            else:
                others.append((dock.place.words, _explanation(dock)))
        groups: list[Group] = [
            (self.tr("First steps"), self._first_steps()),
            (self.tr("Panels on screen"), shown),
            (self.tr("Other panels (View menu)"), others),
        ]
        self.list.show_groups([group for group in groups if group[1]])
        self.size_for(_SIZE)
        self.show()
        self.activateWindow()
        self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _first_steps(self) -> list[tuple[str, str]]:
        return [
            (
                self.tr("1. Model"),
                self.tr("Choose a model at the top left. Copycat is small and always there."),
            ),
            (
                self.tr("2. Prompt"),
                self.tr("Type a text on the left. Its tokens appear above the panels."),
            ),
            (
                self.tr("3. Step"),
                self.tr("Press Step. The model reads the prompt and chooses one token."),
            ),
            (
                self.tr("4. Look"),
                self.tr("Hover over a dotted word, or press F1, to have it explained."),
            ),
        ]


def _explanation(dock: PanelDock) -> str:
    """What a panel shows; of one that nobody has seen yet, without making it."""
    if dock.made:
        return dock.panel.explanation
    kind = dock.place.load()
    return QCoreApplication.translate(kind.__name__, kind.EXPLANATION)
