"""What the next run changes in its model: a chip each, which takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QToolButton, QWidget

from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.interventions.kinds import Intervention
from explorer.ui.glossary.labels import TermLabel
from explorer.ui.kit import boxes
from explorer.ui.kit.flow import Flow
from explorer.ui.kit.scrolled import Snug
from explorer.ui.panel.intervention_words import source_words, together

_FEW = 4  # chips that are always seen


class InterventionsBox(Snug):
    """Seen only while there are any."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.setProperty("look", "card")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        title = TermLabel(self.tr("Interventions"), term="intervention")
        title.setProperty("look", "title")
        self.clear = QPushButton(self.tr("Clear all"))
        self.clear.setToolTip(self.tr("Run the model as it is again"))
        self.clear.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clear.clicked.connect(lambda: session.set_interventions(()))
        self.chips: list[QToolButton] = []
        self.rest = QPushButton()  # what the folded chips are behind
        self.rest.setCheckable(True)
        self.rest.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.rest.toggled.connect(self._fold)
        self._flow = Flow()
        top = boxes.line(None, (title, 1), self.clear)
        boxes.column(self, top, self._flow, edges=(10, 6, 10, 8), gap=4)
        self.set_snug(True)
        self.hide()

    def show_state(self, old: State | None, new: State) -> None:
        if not changed(old, new, "request"):
            return
        asked = new.request.interventions
        if old is not None and old.request.interventions == asked:
            return
        for chip in self.chips:
            self._flow.removeWidget(chip)
            chip.deleteLater()
        self.chips = [self._chip(words, some) for words, some in together(asked)]
        self._flow.removeWidget(self.rest)
        self._flow.addWidget(self.rest)  # the last one
        self.setVisible(bool(asked))
        self._fold()

    def _fold(self) -> None:
        """Of many chips the first few, unless all are wanted: the prompt needs its room, too."""
        more = len(self.chips) - _FEW
        many = more > 1  # one chip more takes no more room than what would stand for it
        self.rest.setVisible(many)
        self.rest.setText(
            self.tr("Show fewer") if self.rest.isChecked() else self.tr("and {0} more").format(more)
        )
        for place, chip in enumerate(self.chips):
            chip.setVisible(place < _FEW or not many or self.rest.isChecked())

    def _chip(self, words: str, some: Sequence[Intervention]) -> QToolButton:
        chip = QToolButton()
        chip.setText(f"{words} ✕")
        chip.setAccessibleName(self.tr("Take back: {0}").format(words))
        source = source_words(some[0], self._session.state.vocabulary)
        chip.setToolTip("\n".join(filter(None, [chip.accessibleName(), source])))
        chip.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        chip.clicked.connect(partial(self._session.drop_interventions, some))
        self._flow.addWidget(chip)
        return chip
