"""The choice between a control token and the letters of its name, where the prompt holds some."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from explorer.figures.text.characters import printable
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.vocabulary import Vocabulary
from explorer.ui.kit import boxes
from explorer.ui.kit.elided import ElidedLabel
from explorer.ui.kit.wheel_guard import ComboBox


class ControlChoice(QWidget):
    """Hidden unless there is something to choose; a wish of the session otherwise."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._vocabulary: Vocabulary | None = None
        self._names: tuple[str, ...] = ()
        self.which = ElidedLabel()
        self.which.setTextFormat(Qt.TextFormat.PlainText)
        self.choice = ComboBox()
        self.choice.addItems([self.tr("as control token"), self.tr("as plain text")])
        self.choice.setAccessibleName(self.tr("How control tokens in the prompt are read"))
        self.choice.setToolTip(
            self.tr(
                "As control token: one id with a special meaning. As plain text: its "
                "name is split into ordinary tokens."
            )
        )
        self.choice.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.choice.activated.connect(lambda index: session.set_special_as_text(index == 1))
        boxes.line(self, (self.which, 1), self.choice)
        self.hide()

    def show_state(self, new: State) -> None:
        vocabulary = None if new.other_model else new.vocabulary
        if vocabulary is not self._vocabulary:
            self._vocabulary = vocabulary
            self._names = control_names(vocabulary)
        request = new.request
        found = [name for name in self._names if name in request.prompt]
        self.choice.setCurrentIndex(int(request.special_as_text))
        self.which.setText(printable(" ".join(found)))
        self.setVisible(bool(found) and request.typed)  # a conversation has no such choice


def control_names(vocabulary: Vocabulary | None) -> tuple[str, ...]:
    """What must be typed for each control token; ids that no text can name are left out."""
    if vocabulary is None:
        return ()
    ids = vocabulary.special.nonzero()[0].tolist()
    names = (vocabulary.raw(i).decode("utf-8", "replace") for i in ids)
    return tuple(name for name in dict.fromkeys(names) if name and not name.startswith("<id "))
