"""A small card beside a word on screen: the word, two lines of explanation, and what to do next."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QPushButton, QWidget
from shiboken6 import isValid

from explorer.ui.access.accessible import announce
from explorer.ui.glossary.terms import Term
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import leave_focus
from explorer.ui.look.theme import unit

_WIDTH, _GAP = 300, 4  # pixels at a zoom of 1
_LEAVE_MS = 350  # for the way of the mouse from the word to the card
_ENDS = {QEvent.Type.Hide, QEvent.Type.MouseButtonPress, QEvent.Type.WindowDeactivate}


class TermCard(QFrame):
    """Lies over its window; goes when the mouse leaves, on Esc, or with the word it explains."""

    showMe = Signal(str)  # a term
    glossaryWanted = Signal(str)  # at this term

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.setProperty("look", "term-card")
        self.setAutoFillBackground(True)
        self._name = ""
        self._about: QWidget | None = None  # the widget whose word is explained
        self._focus_before: QWidget | None = None
        self._leaving = QTimer(self)
        self._leaving.setSingleShot(True)
        self._leaving.setInterval(_LEAVE_MS)
        self._leaving.timeout.connect(self._leave)
        self._word = SentenceLabel(look="title")
        self._text = SentenceLabel()
        self._tip = SentenceLabel(look="muted")
        self.show_button = QPushButton(self.tr("Show me"))
        self.show_button.setToolTip(self.tr("Outline where this is on screen"))
        self.show_button.clicked.connect(lambda: self.showMe.emit(self._leave_for()))
        self.all_button = QPushButton(self.tr("Glossary"))
        self.all_button.setToolTip(self.tr("All terms on one page"))
        self.all_button.setProperty("look", "flat")
        self.all_button.clicked.connect(lambda: self.glossaryWanted.emit(self._leave_for()))
        self._keys = SentenceLabel(look="small")
        below = boxes.line(None, self.show_button, self.all_button, gap=6)
        below.addWidget(self._keys, 1)
        parts = (self._word, self._text, self._tip, below)
        boxes.column(self, *parts, edges=(12, 8, 12, 10), gap=6)
        leave_focus(self)
        self.hide()

    @property
    def term(self) -> str:
        """The ID of the term that is explained; "" while nothing is."""
        return "" if self.isHidden() else self._name

    @property
    def words(self) -> tuple[str, str, str]:
        """The word, its explanation, and what its control says of itself."""
        return self._word.text(), self._text.text(), self._tip.text()

    def explain(self, name: str, term: Term, about: QWidget, words: QRect, by_key: bool) -> None:
        """Show a term under `words`, a part of `about`; with the focus if it was asked by key."""
        self.close_card()
        self._name, self._about = name, about
        self._word.setText(term.word)
        self._text.setText(term.text)
        tip = about.toolTip()
        self._tip.setText(tip)
        self._tip.setVisible(bool(tip))
        self.show_button.setVisible(bool(term.show))
        self._keys.setText(self.tr("F1: guide") if by_key else "")
        self.setAccessibleName(term.word)
        self.setAccessibleDescription(term.text)
        about.installEventFilter(self)
        self._place(about, words)
        self.show()
        self.raise_()
        if by_key:
            self._focus_before = about.window().focusWidget()
            first = self.show_button if term.show else self.all_button
            first.setFocus(Qt.FocusReason.ShortcutFocusReason)
            announce(self, f"{term.word}. {term.text}")

    def close_card(self) -> bool:
        """Hide it, and give the focus back; False if it was hidden."""
        if self.isHidden():
            return False
        held = self._has_focus
        self._leaving.stop()
        if self._about is not None and isValid(self._about):
            self._about.removeEventFilter(self)
        self._about = None
        before, self._focus_before = self._focus_before, None
        if held and before is not None and isValid(before):
            before.setFocus(Qt.FocusReason.OtherFocusReason)
        self.hide()
        return True

    def _leave_for(self) -> str:
        """Hide it, and say which term it was."""
        self.close_card()
        return self._name

    def _place(self, about: QWidget, words: QRect) -> None:
        """Below the words, or above them where there is more room; never outside the window."""
        window = self.parentWidget()
        assert window is not None
        u = unit(self)
        gap = round(_GAP * u)
        room = window.rect().adjusted(gap, gap, -gap, -gap)
        self.ensurePolished()
        width = min(round(_WIDTH * u), room.width())
        layout = self.layout()
        assert layout is not None
        layout.activate()
        height = max(layout.totalHeightForWidth(width), layout.totalMinimumSize().height())
        at = window.mapFromGlobal(about.mapToGlobal(words.topLeft()))
        below, above = at.y() + words.height() + gap, at.y() - gap - height
        place = QPoint(at.x(), above if below + height > room.bottom() and above >= 0 else below)
        place.setX(max(room.left(), min(place.x(), room.right() + 1 - width)))
        place.setY(max(room.top(), min(place.y(), room.bottom() + 1 - height)))
        self.setGeometry(QRect(place.x(), place.y(), width, height))

    def _leave(self) -> None:
        """The mouse has left the word: stay if it has come here, or if keys are used here."""
        about = self._about
        over = about is not None and isValid(about) and about.underMouse()
        if not (over or self.underMouse() or self._has_focus):
            self.close_card()

    @property
    def _has_focus(self) -> bool:
        """True if one of its buttons has the focus of the window."""
        focus = self.window().focusWidget()
        return focus is not None and self.isAncestorOf(focus)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._leaving.start()
        elif event.type() in _ENDS:
            self.close_card()
        return False

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._leaving.start()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close_card()
        else:
            super().keyPressEvent(event)
