"""One notice: a line with buttons, and the whole sentence on request."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt, Signal, SignalInstance
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QFrame, QPushButton, QToolButton, QWidget

from explorer.figures.text.sentences import fitting
from explorer.ui.access.accessible import announce
from explorer.ui.kit.boxes import column, line
from explorer.ui.kit.elided import NoticeLine
from explorer.ui.kit.forms import keep_place
from explorer.ui.kit.sentence import SentenceLabel


class Notice(QWidget):
    """One line with at most three buttons, and all of a sentence that is longer on request.

    It says whether it has something to say; `Notices` shows one at a time.
    """

    dismissed = Signal()
    said = Signal()  # another sentence, or none any more

    def __init__(self, look: str, closable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._closed = ""  # the sentence that was closed by hand: it is not said again
        self.setProperty("look", look)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._label = NoticeLine()
        self._label.cutChanged.connect(self._offer_rest)
        self._label.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        copy = QAction(self.tr("Copy text"), self._label)
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(self.text))
        self._label.addAction(copy)
        self._row = line(self, (self._label, 1), edges=(10, 1, 4, 1))
        close = self._flat("✕", self.tr("Dismiss"), self.dismissed) if closable else None
        self._rest = self._flat("…", self.tr("Show the whole notice"), self._show_rest)
        self._row.addWidget(self._rest)
        if close is not None:
            self._row.addWidget(close)
        keep_place(self._rest)  # so that its coming does not cut off more
        self._rest.hide()
        self.hide()

    def _flat(
        self, text: str, name: str, act: Callable[[], object] | SignalInstance
    ) -> QToolButton:
        button = QToolButton(self)
        button.setText(text)
        button.setProperty("look", "flat")
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        return button

    def add_button(self, text: str, act: Callable[[], object], primary: bool = False) -> None:
        button = QPushButton(text)
        if primary:
            button.setProperty("look", "primary")
        # The mouse must not leave the focus here: it would go astray when the bar is hidden.
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        after = self._row.indexOf(self._rest) + 1
        buttons = self.findChildren(QPushButton, options=Qt.FindChildOption.FindDirectChildrenOnly)
        self._row.insertWidget(after + len(buttons), button)

    def close_by_hand(self) -> None:
        """Hide this sentence until there is another."""
        closed = self.text
        self.say("")
        self._closed = closed

    def say(self, text: str) -> None:
        """Have a sentence to show; with an empty one the bar goes."""
        text = fitting(text)
        if text and text == self._closed:
            return
        self._closed = ""
        if text == self.text:
            return
        self._label.setText(text)
        self.setAccessibleName(text)
        focused = self.window().focusWidget()
        if not text and focused is not None and self.isAncestorOf(focused):
            self.window().setFocus()
        self.said.emit()
        announce(self, text, urgent=self.property("look") == "error-card")

    @property
    def text(self) -> str:
        return self._label.text()

    def _offer_rest(self, cut: bool) -> None:
        self._rest.setVisible(cut)

    def _show_rest(self) -> None:
        """The whole sentence under the line, until Esc or a click elsewhere."""
        whole = WholeText(self.text, self.width(), self)
        whole.move(self.mapToGlobal(QPoint(0, self.height())))
        whole.show()


class WholeText(QFrame):
    """A sentence in full, to select and copy from; Esc or a click elsewhere closes it."""

    def __init__(self, text: str, width: int, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("look", "card")
        label = SentenceLabel(text)
        label.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setFixedWidth(width)
        self.setFixedHeight(column(self, label, edges=(10, 6, 10, 6)).heightForWidth(width))
        label.setFocus()
