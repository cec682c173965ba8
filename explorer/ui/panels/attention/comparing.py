"""Compare mode: whether it is on, why a side is missing, and what stands around the maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.map_request import Beside
from explorer.session.state import State
from explorer.trace.comparison import Of
from explorer.trace.experiments import PrefixExperiment, PrefixShift
from explorer.trace.trace import Trace
from explorer.ui.kit import boxes
from explorer.ui.kit.sentence import SentenceLabel
from explorer.ui.kit.wheel_guard import ComboBox
from explorer.ui.look.theme import Theme
from explorer.ui.panels.attention import words
from explorer.ui.panels.attention.comparison_tray import ComparisonTray

if TYPE_CHECKING:
    from explorer.session.session import Session

_FORM: Beside = "form"


class CompareBar(QWidget):
    """A choice between a real run and the same scores, and one line that says which it is."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = ComboBox()
        self.choice.setAccessibleName(self.tr("What the masked run is compared with"))
        for place, (name, value, tip) in enumerate(
            (
                (
                    self.tr("Real run"),
                    "run",
                    self.tr("Runs the model again without the mask"),
                ),
                (
                    self.tr("Same scores"),
                    "scores",
                    self.tr("Removes the mask from the scores of this run. Nothing runs again."),
                ),
            )
        ):
            self.choice.addItem(name, value)
            self.choice.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        self.choice.currentIndexChanged.connect(self.changed)
        self._line = SentenceLabel(look="small")
        # Two lines always: another sentence must not move the maps.
        self._line.setMinimumHeight(2 * self._line.fontMetrics().height())
        boxes.line(self, self.choice, (self._line, 1), gap=6)

    def set_form(self, form: str) -> None:
        """Offer the other form of a file that is run in this one; empty: it has none."""
        place = self.choice.findData(_FORM)
        name = self.tr("In float32") if form == "as-is" else self.tr("As it is")
        if not form and place >= 0:
            self.choice.removeItem(place)
        elif form and place < 0:
            self.choice.addItem(name, _FORM)
            tip = self.tr("Runs the same tokens in the file's other form")
            self.choice.setItemData(self.choice.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        elif form:
            self.choice.setItemText(place, name)

    def choose(self, beside: Beside) -> None:
        """Compare with this, if it is offered."""
        place = self.choice.findData(beside)
        if place >= 0:
            self.choice.setCurrentIndex(place)

    @property
    def beside(self) -> Beside:
        """Which comparison is chosen."""
        chosen: Beside = self.choice.currentData()
        return chosen

    def show_trace(self, trace: Trace, layer: int, waiting: str) -> None:
        """Say what is shown; `waiting` comes first while the other run is not there."""
        said = words.comparison(self.beside, trace, layer)
        if waiting and self.beside != "scores":
            said = waiting
        self._line.setText(said)

    @property
    def line(self) -> str:
        """What is said."""
        return self._line.text()


class Comparing(QObject):
    """Where an architecture refuses to run without its mask, the scores can still be compared."""

    def __init__(self, session: Session, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self.bar = CompareBar()
        self.tray = ComparisonTray(theme, lambda: session.measure(PrefixExperiment))
        self._alone = False  # on without a second run, which this architecture refuses

    def on(self, state: State) -> bool:
        """True if two sides are to be shown."""
        return state.comparing or self._alone

    def beside(self, state: State) -> Beside | None:
        """What stands beside the masked run; None = nothing can or should."""
        if not self.on(state):
            return None
        chosen = self.bar.beside
        return None if chosen == "run" and self.refusal(state) else chosen

    @property
    def of(self) -> Of:
        """What is the other way round on the other side."""
        return "form" if self.bar.beside == "form" else "mask"

    def switch(self, on: bool) -> None:
        """Ask for the other run, unless the architecture refuses it."""
        self._alone = on and bool(self.refusal(self._session.state))
        if not self._alone:
            self._session.compare(on, self.of)

    def follow(self, state: State) -> None:
        """Never ask for a run that is refused, and do ask once another model allows it."""
        form = "" if state.trace is None else state.trace.request.form
        self.bar.set_form(form if state.trace is not None and state.trace.card.form else "")
        refused = self.refusal(state)
        if state.comparing and not refused and state.compare_of != self.of:
            QTimer.singleShot(0, self, lambda: self._session.compare(True, self.of))
        elif refused and state.comparing:
            self._alone = True
            QTimer.singleShot(0, self, lambda: self._session.compare(False))
        elif self._alone and not refused and state.card is not None:
            self._alone = False
            QTimer.singleShot(0, self, lambda: self._session.compare(True, self.of))
        for part in (self.bar, self.tray):
            part.setVisible(self.on(state))
        for mask_only in (self.tray.prefix, self.tray.prefix.button):
            mask_only.setVisible(self.of == "mask")

    def refusal(self, state: State) -> str:
        """Why this architecture cannot run without the mask; empty if it can."""
        card = state.trace.card if state.card is None and state.trace else state.card
        if self.of == "form" or card is None or card.offers("causal_off"):
            return ""
        why = card.words("causal_off")
        return self.tr("The mask can't be switched off here: {0}.").format(why) if why else ""

    def missing(self, state: State) -> str:
        """Why the other side is not there; empty if it is."""
        if state.shown is not None and state.shown.other is not None:
            return ""
        refused = self.refusal(state)
        if refused:
            return refused
        if state.card is None and self.of == "form":
            return self.tr(
                "The run in the other form needs the model. Open it, and the run starts "
                "automatically."
            )
        if state.card is None:
            return self.tr(
                "The unmasked run needs the model. Open it, and the run starts automatically."
            )
        if state.status.text:
            return state.status.text
        if self.of == "form":
            return self.tr("There is no run in the other form yet.")
        return self.tr("There is no unmasked run yet. Press Step.")

    def show_state(self, new: State) -> None:
        """The line, both next-token distributions and the experiment's figures."""
        shown = new.shown
        if shown is None or not self.on(new):
            return
        missing = self.missing(new)
        self.bar.show_trace(shown.trace, shown.layer, missing)
        self.tray.next.name_sides(self.bar.beside)
        self.tray.next.show_steps(*shown.sides, missing)
        found = new.measured_of(PrefixShift)
        current = found is not None and found.fits(shown.trace, shown.step)
        self.tray.prefix.show_figures(None if found is None else found.result, current=current)
