"""Go to a token, or to a query and a key and list the heads with the most attention between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFormLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QToolButton,
    QWidget,
)

from explorer.figures.attention.strongest_heads import Ranking
from explorer.figures.text.tokens import Label
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.look.theme import unit
from explorer.ui.panels.attention import words
from explorer.wording import exact_percent

_ROWS = 6  # of the list that are seen at once
_AT = Qt.ItemDataRole.UserRole


class GoTo(QWidget):
    """Two fields, each for a token's number or text, and a list; Escape or ✕ leaves."""

    wanted = Signal(str, str)  # query, and key or ""
    picked = Signal(int, int)  # layer, head
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.ranking: Ranking | None = None
        self.query = self._field(self.tr("Go to token, or to query"))
        self.key = self._field(self.tr("Key"))
        self.key.setPlaceholderText(self.tr("optional"))
        self.key.setToolTip(
            self.tr("With a key: the heads with the most attention from the query to the key")
        )
        self._said = SentenceLabel(look="small")
        self.heads = QListWidget()
        self.heads.setAccessibleName(self.tr("Heads with the most attention from query to key"))
        self.heads.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.heads.itemClicked.connect(self._pick)
        self.heads.itemActivated.connect(self._pick)
        self._said.setBuddy(self.heads)
        title = QLabel(self.tr("Go to"))
        title.setProperty("look", "title")
        close = QToolButton()
        close.setText("✕")
        close.setProperty("look", "title-button")
        close.setToolTip(self.tr("Close (Esc)"))
        close.setAccessibleName(self.tr("Close Go to"))
        close.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        close.clicked.connect(self.left)
        top = boxes.line(None, (title, 1), close)
        fields = QFormLayout()
        fields.setSpacing(3)
        for label, field in (
            (TermLabel(self.tr("Query"), term="query"), self.query),
            (TermLabel(self.tr("Key"), term="key"), self.key),
        ):
            label.setBuddy(field)
            fields.addRow(label, field)
        boxes.column(self, top, fields, self._said, self.heads, edges=(0, 0, 0, 2), gap=3)
        self.say("")
        self.hide()

    def _field(self, name: str) -> QLineEdit:
        field = QLineEdit()
        field.setAccessibleName(name)
        field.setPlaceholderText(self.tr("number or text"))
        field.setMinimumWidth(40)
        field.returnPressed.connect(self._on_return)
        return field

    def begin(self) -> None:
        """Show it and ask for a query."""
        self.show()
        self.query.selectAll()
        self.query.setFocus()

    def say(self, sentence: str) -> None:
        """Show a sentence in place of the list; empty = nothing."""
        self.ranking = None
        self.heads.clear()
        self.heads.hide()
        self._said.setText(sentence)
        self._said.setVisible(bool(sentence))

    def show_ranking(self, found: Ranking, labels: Sequence[Label]) -> None:
        """List the heads, or say why none may read that key."""
        pair = words.token(found.query, labels), words.token(found.key, labels)
        if not found.heads:
            self.say(self.tr("No head attends from {0} to {1}: {2}.").format(*pair, found.why))
            return
        self.say(self.tr("Most attention from {0} to {1}:").format(*pair))
        self.ranking = found
        for one in found.heads:
            share = exact_percent(one.weight)
            item = QListWidgetItem(self.tr("L{0} H{1}   {2}").format(one.layer, one.head, share))
            said = self.tr("Layer {0}, head {1}: {2}").format(one.layer, one.head, share)
            item.setToolTip(said)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, said)
            item.setData(_AT, (one.layer, one.head))
            self.heads.addItem(item)
        row = self.heads.sizeHintForRow(0)
        rows = min(_ROWS, len(found.heads))
        self.heads.setFixedHeight(round(rows * row + 6 * unit(self)))
        self.heads.show()

    def set_selected(self, layer: int, head: int) -> None:
        """Mark the head that is looked at, if it is in the list."""
        for row in range(self.heads.count()):
            item = self.heads.item(row)
            if tuple(item.data(_AT)) == (layer, head):
                self.heads.setCurrentItem(item)
                return
        self.heads.setCurrentRow(-1)

    def table(self) -> Iterator[Sequence[object]]:
        """The list as figures."""
        yield "layer", "head", "query", "key", "weight"
        found = self.ranking
        if found is not None:
            for one in found.heads:
                yield one.layer, one.head, found.query, found.key, one.weight

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
            return
        super().keyPressEvent(event)

    def _on_return(self) -> None:
        if self.query.text().strip():
            self.wanted.emit(self.query.text().strip(), self.key.text().strip())

    def _pick(self, item: QListWidgetItem) -> None:
        self.picked.emit(*item.data(_AT))
