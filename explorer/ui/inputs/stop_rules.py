"""Stop rules: after how many tokens, at which texts, and whether end tokens end a run."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QWidget,
)

from explorer.figures.text import tokens
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.request import Stops
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.typed_numbers import TakeFirst
from explorer.ui.kit.wheel_guard import SpinBox

_PICTURES = str.maketrans({"␣": " ", "↵": "\n", "⇥": "\t"})


class StopControls(Wrapping):
    """When a run ends by itself.  The context's end always ends it."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = QLabel(self.tr("Stop"))
        title.setProperty("look", "title")
        self._ends = QCheckBox(self.tr("End tokens"))
        self._ends.setToolTip(self.tr("Stop when the model generates an end token"))
        self._ends.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._ends.clicked.connect(lambda on: self._request(end_tokens=on))
        self._most = SpinBox()
        self._most.setRange(0, 1_000_000)
        self._most.setSpecialValueText(self.tr("no limit"))
        self._most.setKeyboardTracking(False)
        self._most.setAccessibleName(self.tr("Maximum number of new tokens"))
        self._most.setToolTip(
            self.tr("Maximum number of new tokens. 0: until the context is full.")
        )
        self._most.valueChanged.connect(lambda value: self._request(tokens=value))
        self._text = QLineEdit()
        IgnoreFileDrops(self._text)
        self._text.setPlaceholderText(self.tr("stop text"))
        self._text.setAccessibleName(self.tr("Stop at this text"))
        self._text.setToolTip(
            self.tr(
                "Stop when the new text contains this. \\n: line break. |: separates several texts."
            )
        )
        self._first = TakeFirst(self._text, self._text, self._take_text)
        self._text.editingFinished.connect(self._take_text)
        grid = QGridLayout(self)
        grid.setContentsMargins(10, 6, 10, 8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.addWidget(title, 0, 0)
        grid.addWidget(self._ends, 0, 1, Qt.AlignmentFlag.AlignRight)
        grid.addWidget(self._most, 1, 0)
        grid.addWidget(self._text, 1, 1)

    def show_state(self, old: State | None, new: State) -> None:
        if old is not None and old.stops == new.stops:
            return
        self._ends.setChecked(new.stops.end_tokens)
        blocked = self._most.blockSignals(True)
        self._most.setValue(new.stops.tokens)
        self._most.blockSignals(blocked)
        if parsed(self._text.text()) != new.stops.strings:
            self._text.setText(worded(new.stops.strings))

    def _take_text(self) -> None:
        self._first.end()
        self._request(strings=parsed(self._text.text()))

    def _request(self, **changes: object) -> None:
        stops: Stops = msgspec.structs.replace(self._session.state.stops, **changes)
        self._session.set_stops(stops)


def parsed(text: str) -> tuple[str, ...]:
    """What was typed as stop strings: parts between |, line breaks and tabs as \\n and \\t."""
    plain = text.translate(_PICTURES).replace("\\n", "\n").replace("\\t", "\t")
    return tuple(dict.fromkeys(part for part in plain.split("|") if part))


def worded(strings: tuple[str, ...]) -> str:
    """The same back, with what can't be seen made visible."""
    return "|".join(tokens.plain(string) for string in strings)
