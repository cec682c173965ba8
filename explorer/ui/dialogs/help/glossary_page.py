"""All terms on one page, with a search."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialogButtonBox, QLineEdit, QPushButton, QTreeWidgetItem, QWidget

from explorer.ui.access.accessible import announce
from explorer.ui.dialogs.help.two_columns import GroupedRows
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.glossary.labels import known
from explorer.ui.kit import boxes
from explorer.ui.kit.screen_fit import Dialog
from explorer.ui.kit.sentence import SentenceLabel

_SIZE = (760, 600)
_DOWN = {Qt.Key.Key_Down, Qt.Key.Key_PageDown, Qt.Key.Key_Return, Qt.Key.Key_Enter}


class GlossaryPage(Dialog):
    """Terms in groups, those found by the search; it stays beside the window."""

    showMe = Signal(str)  # a term

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Glossary"))
        self.search = QLineEdit()
        IgnoreFileDrops(self.search)
        self.search.setPlaceholderText(self.tr("Search terms and explanations"))
        self.search.setAccessibleName(self.tr("Search the glossary"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(self._show_found)
        self.search.installEventFilter(self)
        self.list = GroupedRows(self.tr("Terms"), (self.tr("Term"), self.tr("Explanation")))
        self.list.currentItemChanged.connect(self._follow)
        self.list.itemActivated.connect(self._show_me)
        self._none = SentenceLabel(self.tr("No term matches. Try another word."), look="muted")
        self._none.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.show_button = QPushButton(self.tr("Show me"))
        self.show_button.setToolTip(self.tr("Close this page and outline the term on screen"))
        self.show_button.clicked.connect(self._show_me)
        buttons.addButton(self.show_button, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.rejected.connect(self.close)
        for button in (*buttons.buttons(), self.show_button):
            button.setAutoDefault(False)  # type: ignore[attr-defined]  # Enter is the search's
        self.lay_out(boxes.column(None, self.search, self._none, (self.list, 1), gap=6), buttons)
        self._show_found("")

    def show_at(self, name: str = "") -> None:
        """Open it, at this term if one is named; else where it was left, to search."""
        if name:
            self.search.clear()
            self.list.select(known().terms[name].word)
        self.size_for(_SIZE)
        self.show()
        self.activateWindow()
        (self.list if name else self.search).setFocus(Qt.FocusReason.OtherFocusReason)
        self.search.selectAll()

    @property
    def selected(self) -> str:
        """The ID of the selected term; "" if none is."""
        word = self.list.selected
        return next((name for name, term in known().terms.items() if term.word == word), "")

    def _show_found(self, query: str) -> None:
        glossary = known()
        found = glossary.matching(query)
        if query.strip():  # the best first
            groups = [(self.tr("{0} terms found").format(len(found)), list(found.values()))]
        else:
            groups = [
                (title, [term for term in found.values() if term.group == group])
                for group, title in glossary.groups.items()
            ]
        self.list.show_groups(
            [(title, [(term.word, term.text) for term in rows]) for title, rows in groups if rows]
        )
        self._none.setVisible(not found)
        self._follow()
        if query.strip():
            announce(self.list, self.tr("{0} terms found").format(len(found)))

    def _follow(self, *_: QTreeWidgetItem | None) -> None:
        term = known().terms.get(self.selected)
        self.show_button.setEnabled(term is not None and bool(term.show))

    def _show_me(self) -> None:
        if self.show_button.isEnabled():
            name = self.selected
            self.close()
            self.showMe.emit(name)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """From the search down into what it found."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            down = event.key() in _DOWN
            if down:
                self.list.setFocus(Qt.FocusReason.OtherFocusReason)
            return down
        return super().eventFilter(watched, event)
