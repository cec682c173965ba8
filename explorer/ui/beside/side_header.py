"""The line over one side: which it is, what it runs, and whether keys and menus are about it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QToolButton, QWidget

from explorer.figures.text import sentences
from explorer.session.changes import changed
from explorer.session.state import State
from explorer.ui.files import caption
from explorer.ui.frame.topbar import title_of
from explorer.ui.kit.boxes import line
from explorer.ui.kit.elided import ElidedLabel

_PROMPT = 60  # letters of it
_SHOWN_FROM = ("trace", "request", "card", "status", "sampling", "branches", "branch_names")


class SideHeader(QWidget):
    """A click makes its side the one that acts."""

    chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setProperty("look", "side")
        self.name = QToolButton()
        self.name.setProperty("look", "title-button")
        self.name.setCheckable(True)
        self.name.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.name.clicked.connect(self.chosen)
        self.words = ElidedLabel()
        self._row = line(self, self.name, (self.words, 1), gap=6, edges=(8, 2, 4, 2))
        self._acts = False

    def add(self, button: QWidget) -> None:
        """One more button at the end of the line."""
        self._row.addWidget(button)

    def show_place(self, on_left: bool, acts: bool) -> None:
        """Which side it is, and whether keys and menus are about it."""
        text = self.tr("Left") if on_left else self.tr("Right")
        self.name.setText(f"● {text}" if acts else text)
        self.name.setChecked(acts)
        tip = (
            self.tr("Keys, menus and the toolbar are about this side.")
            if acts
            else self.tr("Click to use keys, menus and the toolbar on this side (F6)")
        )
        self.name.setToolTip(tip)
        self.name.setAccessibleName(f"{text}. {tip}")
        if acts != self._acts:
            self._acts = acts
            self.setProperty("look", "acting-side" if acts else "side")
            self.style().polish(self)

    def show_state(self, old: State | None, new: State) -> None:
        """What it runs, in words."""
        if changed(old, new, *_SHOWN_FROM):
            self.words.setText(self._words(new))

    def _words(self, state: State) -> str:
        busy = state.status.activity in ("starting", "loading", "lost")
        return " · ".join(filter(None, [state.status.text if busy else "", self._what(state)]))

    def _what(self, state: State) -> str:
        trace = state.trace
        request = state.request if trace is None else trace.request
        card = state.card if trace is None else trace.card
        model = title_of(request.model) if card is None else caption.model_name(card)
        form = "" if card is None or card.form == "as-is" else card.dtype
        read = self.tr("chat") if request.chat else self.tr("raw text")
        prompt = " ".join(request.prompt[: 4 * _PROMPT].split())
        parts = [sentences.name(model), form, read, self._branch(state)]
        return " · ".join(filter(None, [*parts, sentences.name(prompt, _PROMPT)]))

    def _branch(self, state: State) -> str:
        """Which branch it is, where there are several or one has a name; else empty."""
        tree, current = state.tree, state.branches.current
        if len(tree) < 2 and current not in state.branch_names:
            return ""
        name = next((one.name for one in tree if one.number == current), "")
        return self.tr("branch {0}").format(sentences.name(name)) if name else ""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self.chosen.emit()
