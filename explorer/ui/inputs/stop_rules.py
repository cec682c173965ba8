"""Stop rules: after how many tokens, at which texts, and whether end tokens end a run."""

from __future__ import annotations

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLineEdit, QWidget

from explorer.figures.text import tokens
from explorer.figures.text.characters import from_pictures
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.request import Stops
from explorer.ui.files.dropped_files import IgnoreFileDrops
from explorer.ui.glossary.labels import TermBox, TermLabel
from explorer.ui.kit.scrolled import Wrapping
from explorer.ui.kit.typed_numbers import TakeFirst
from explorer.ui.kit.wheel_guard import SpinBox


class StopControls(Wrapping):
    """When a run ends by itself.  The context's end always ends it."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = TermLabel(self.tr("Stop"), term="stop-rule")
        title.setProperty("look", "title")
        self.ends = TermBox(self.tr("End tokens"), term="end-token")
        self.ends.setToolTip(self.tr("Stop when the model generates an end token"))
        self.ends.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.ends.clicked.connect(lambda on: self._request(end_tokens=on))
        self.most = SpinBox()
        self.most.setRange(0, 1_000_000)
        self.most.setSpecialValueText(self.tr("no limit"))
        self.most.setKeyboardTracking(False)
        self.most.setAccessibleName(self.tr("Maximum number of new tokens"))
        self.most.setToolTip(self.tr("Maximum number of new tokens. 0: until the context is full."))
        self.most.valueChanged.connect(lambda value: self._request(tokens=value))
        self.text = QLineEdit()
        IgnoreFileDrops(self.text)
        self.text.setPlaceholderText(self.tr("stop text"))
        self.text.setAccessibleName(self.tr("Stop at this text"))
        self.text.setToolTip(
            self.tr(
                "Stop when the new text contains this. \\n: line break. |: separates several texts."
            )
        )
        self._first = TakeFirst(self.text, self.text, self._take_text)
        self.text.editingFinished.connect(self._take_text)
        grid = QGridLayout(self)
        grid.setContentsMargins(10, 6, 10, 8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.addWidget(title, 0, 0)
        grid.addWidget(self.ends, 0, 1, Qt.AlignmentFlag.AlignRight)
        grid.addWidget(self.most, 1, 0)
        grid.addWidget(self.text, 1, 1)

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, "stops"):
            return
        self.ends.setChecked(new.stops.end_tokens)
        blocked = self.most.blockSignals(True)
        self.most.setValue(new.stops.tokens)
        self.most.blockSignals(blocked)
        if parsed(self.text.text()) != new.stops.strings:
            self.text.setText(worded(new.stops.strings))

    def _take_text(self) -> None:
        self._first.end()
        self._request(strings=parsed(self.text.text()))

    def _request(self, **changes: object) -> None:
        stops: Stops = msgspec.structs.replace(self._session.state.stops, **changes)
        self._session.set_stops(stops)


def parsed(text: str) -> tuple[str, ...]:
    """What was typed as stop strings: parts between |, line breaks and tabs as \\n and \\t."""
    plain = from_pictures(text).replace("\\n", "\n").replace("\\t", "\t")
    return tuple(dict.fromkeys(part for part in plain.split("|") if part))


def worded(strings: tuple[str, ...]) -> str:
    """The same back, with what can't be seen made visible."""
    return "|".join(tokens.plain(string) for string in strings)
