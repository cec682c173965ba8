"""Compare mode: whether it is on, why a side is missing, and what stands around the maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QWidget

from explorer.figures.attention.map_request import Beside, of_beside
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
from explorer.ui.threads.later import later

if TYPE_CHECKING:
    from explorer.session.session import Session

_USUAL: dict[Of, Beside] = {"mask": "run", "form": "form", "interventions": "interventions"}


class CompareBar(QWidget):
    """A choice of what the run is compared with, and one line that says what is shown."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = ComboBox()
        self.choice.setAccessibleName(self.tr("What the run is compared with"))
        self._offer(
            "run", self.tr("Mask: real run"), self.tr("Runs the model again without the mask")
        )
        self._offer(
            "scores",
            self.tr("Mask: same scores"),
            self.tr("Removes the mask from the scores of this run. Nothing runs again."),
        )
        self.choice.currentIndexChanged.connect(self.changed)
        self._line = SentenceLabel(look="small")
        # Two lines always: another sentence must not move the maps.
        self._line.setMinimumHeight(2 * self._line.fontMetrics().height())
        boxes.line(self, self.choice, (self._line, 1), gap=6)

    def _offer(self, beside: Beside, name: str, tip: str) -> None:
        """Have this choice, under this name; an empty one takes it away."""
        place = self.choice.findData(beside)
        if place < 0 and name:
            place = self.choice.count()
            self.choice.addItem(name, beside)
            self.choice.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)
        elif name:
            self.choice.setItemText(place, name)
        elif place >= 0:
            self.choice.removeItem(place)

    def offer_for(self, state: State, comparing: bool) -> None:
        """Offer what this run can be compared with, and what it is compared with now."""
        form, trace = "", state.trace
        if trace is not None and trace.card.form:
            form = {"as-is": self.tr("In float32")}.get(trace.request.form, self.tr("As it is"))
        self._offer("form", form, self.tr("Runs the same tokens in the file's other form"))
        kept = comparing and self.beside == "interventions"
        requests = [state.request, *([] if trace is None else [trace.request])]
        changed = any(request.interventions for request in requests)
        self._offer(
            "interventions",
            self.tr("Interventions") if changed or kept else "",
            self.tr("Runs the same tokens on the model without interventions"),
        )

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
        self.tray.next.hovered.connect(lambda token: session.select(token_id=token))
        self._alone = False  # on without a second run, which this architecture refuses
        self._wished: Of = "mask"  # as the state had it last

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
        """Which setting differs on the other side."""
        return of_beside(self.bar.beside)

    def switch(self, on: bool) -> None:
        """Ask for the other run, unless the architecture refuses it."""
        self._alone = on and bool(self.refusal(self._session.state))
        if not self._alone:
            self._session.compare(on, self.of)

    def follow(self, state: State) -> None:
        """Never ask for a run that is refused, and do ask once another model allows it."""
        self.bar.offer_for(state, self.on(state))
        if state.compare_of != self._wished:  # by an act elsewhere
            self._wished = state.compare_of
            if self.of != state.compare_of:
                self.bar.choose(_USUAL[state.compare_of])
        refused = self.refusal(state)
        if state.comparing and not refused and state.compare_of != self.of:
            later(self, lambda: self._session.compare(True, self.of))
        elif refused and state.comparing:
            self._alone = True
            later(self, lambda: self._session.compare(False))
        elif self._alone and not refused and state.card is not None:
            self._alone = False
            later(self, lambda: self._session.compare(True, self.of))
        for part in (self.bar, self.tray):
            part.setVisible(self.on(state))
        for mask_only in (self.tray.prefix, self.tray.prefix.button):
            mask_only.setVisible(self.of == "mask")

    def refusal(self, state: State) -> str:
        """Why this architecture cannot run without the mask; empty if it can."""
        card = state.trace.card if state.card is None and state.trace else state.card
        if self.of != "mask" or card is None or card.offers("causal_off"):
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
        of, trace = self.of, state.trace
        if of == "interventions" and trace is not None and not trace.request.interventions:
            if state.request.interventions:
                return self.tr(
                    "This run was made without the interventions. Press Step to run with them."
                )
            return self.tr(
                "This run has no interventions. Add one, for example silence a head (H), and "
                "press Step."
            )
        if state.card is None:
            return {
                "mask": self.tr(
                    "The unmasked run needs the model. Open it, and the run starts automatically."
                ),
                "form": self.tr(
                    "The run in the other form needs the model. Open it, and the run starts "
                    "automatically."
                ),
                "interventions": self.tr(
                    "The run without interventions needs the model. Open it, and the run starts "
                    "automatically."
                ),
            }[of]
        if state.status.text:
            return state.status.text
        return {
            "mask": self.tr("There is no unmasked run yet. Press Step."),
            "form": self.tr("There is no run in the other form yet."),
            "interventions": self.tr("There is no run without interventions yet."),
        }[of]

    def show_state(self, new: State) -> None:
        """The line, both next-token distributions and the experiment's figures."""
        shown = new.shown
        if shown is None or not self.on(new):
            return
        missing = self.missing(new)
        self.bar.show_trace(shown.trace, shown.layer, missing)
        self.tray.next.name_sides(self.bar.beside)
        self.tray.next.show_steps(*shown.sides, missing)
        self.point(new)
        found = new.measured_of(PrefixShift)
        current = found is not None and found.fits(shown.trace, shown.step)
        self.tray.prefix.show_figures(None if found is None else found.result, current=current)

    def point(self, state: State) -> None:
        """Say what becomes of the token under the mouse, else of the one that was chosen."""
        shown, token = state.shown, state.selection.token_id
        if shown is not None and self.on(state):
            chosen = shown.last_pass.draw.token_id
            self.tray.next.show_token(chosen if token is None else token, token in (None, chosen))
