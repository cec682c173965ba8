"""Bars at the top of the window: an error, a lost engine, what a model just opened warns of, …"""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from explorer.figures import tokens
from explorer.figures.cache import short_bytes
from explorer.figures.plan import seconds_text
from explorer.figures.sentences import fitting
from explorer.session.branches import LIMIT_BRANCHES, LIMIT_BYTES
from explorer.session.state import Drift, State
from explorer.trace.plan import Plan
from explorer.ui.canvases.accessible import announce
from explorer.ui.sentence import SentenceLabel
from explorer.wording import percent

THINNED = 4  # the choice of a thinner record: every fourth layer


class Notice(QWidget):
    """One sentence with at most two buttons; hidden while it has nothing to say."""

    dismissed = Signal()

    def __init__(self, look: str, closable: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._closed = ""  # the sentence that was closed by hand: it is not said again
        self.setProperty("look", look)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._label = SentenceLabel()
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(10, 1, 4, 1)
        self._row.addWidget(self._label, 1)
        if closable:
            close = QToolButton()
            close.setText("✕")
            close.setProperty("look", "flat")
            close.setAccessibleName(self.tr("Dismiss"))
            close.setToolTip(self.tr("Dismiss"))
            close.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            close.clicked.connect(self.dismissed)
            self._row.addWidget(close)
        self.hide()

    def add_button(self, text: str, act: Callable[[], object], primary: bool = False) -> None:
        button = QPushButton(text)
        if primary:
            button.setProperty("look", "primary")
        # The mouse must not leave the focus here: it would go astray when the bar is hidden.
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.clicked.connect(act)
        self._row.insertWidget(self._row.count() - (1 if self._has_close() else 0), button)

    def close_by_hand(self) -> None:
        """Hide this sentence until there is another."""
        closed = self.text
        self.say("")
        self._closed = closed

    def say(self, text: str) -> None:
        """Show a sentence; an empty one hides the bar."""
        text = fitting(text)
        if text and text == self._closed:
            return
        self._closed = ""
        if text == self.text and self.isHidden() != bool(text):
            return
        self._label.setText(text)
        self.setAccessibleName(text)
        focused = self.window().focusWidget()
        if not text and focused is not None and self.isAncestorOf(focused):
            self.window().setFocus()
        self.setVisible(bool(text))
        announce(self, text, urgent=self.property("look") == "error-card")

    @property
    def text(self) -> str:
        return self._label.text()

    def _has_close(self) -> bool:
        item = self._row.itemAt(self._row.count() - 1)
        return item is not None and isinstance(item.widget(), QToolButton)


class Notices(QWidget):
    """All bars, the most urgent on top."""

    openLog = Signal()
    dismissError = Signal()
    restartEngine = Signal()
    maskOn = Signal()
    goOn = Signal(int)  # the planned run, recording attention of every n-th layer
    dropPlan = Signal()
    runAgain = Signal()
    lookOnly = Signal()
    undo = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lost = Notice("error-card")
        self.lost.add_button(
            self.tr("Start the engine again"), self.restartEngine.emit, primary=True
        )
        self.lost.add_button(self.tr("Open log"), self.openLog.emit)
        self.error = Notice("error-card", closable=True)
        self.error.add_button(self.tr("Open log"), self.openLog.emit)
        self.error.dismissed.connect(self.dismissError)
        self.mask = Notice("warning-card", closable=True)
        self.mask.add_button(self.tr("Turn the mask on"), self.maskOn.emit)
        self.stale = Notice("warning-card", closable=True)
        for bar in (self.mask, self.stale):  # they last, and lie over the panels if they are long
            bar.dismissed.connect(bar.close_by_hand)
        self.dropped = Notice("warning-card", closable=True)
        self.dropped.dismissed.connect(self.dropped.close_by_hand)
        self.taken = Notice("warning-card", closable=True)
        self.taken.add_button(self.tr("Undo"), self.undo.emit)
        self.taken.dismissed.connect(self.taken.close_by_hand)
        self.plan = Notice("warning-card")
        self.plan.add_button(self.tr("Run it"), lambda: self.goOn.emit(1), primary=True)
        self.plan.add_button(
            self.tr("Record every {0}th layer only").format(THINNED),
            lambda: self.goOn.emit(THINNED),
        )
        self.plan.add_button(self.tr("Cancel"), self.dropPlan.emit)
        self.drift = Notice("warning-card")
        self.drift.add_button(self.tr("Look only"), self.lookOnly.emit)
        self.drift.add_button(self.tr("Run again as a branch"), self.runAgain.emit, primary=True)
        self.model = Notice("warning-card", closable=True)
        self.model.dismissed.connect(lambda: self.model.say(""))
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 0, 8, 0)
        column.setSpacing(3)
        bars = (
            self.lost, self.error, self.plan, self.drift, self.dropped, self.taken, self.model,
            self.mask, self.stale,
        )  # fmt: skip
        for notice in bars:
            column.addWidget(notice)

    def add(self, notice: Notice) -> None:
        """One more bar, above those about the run."""
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(column.indexOf(self.model), notice)

    def show_state(self, old: State | None, new: State) -> None:
        lost = new.status.activity == "lost"
        self.lost.say(new.status.text if lost else "")
        self.error.say("" if lost and new.error == new.status.text else new.error)
        if old is None or old.plan is not new.plan:
            self.plan.say("" if new.plan is None else self._plan_words(new.plan))
        if old is None or old.drift is not new.drift or old.trace is not new.trace:
            told = new.drift is not None and new.drift.fits(new.trace)
            self.drift.say(self._drift_words(new.drift) if told and new.drift is not None else "")
        if old is None or old.card is not new.card:
            self.model.say(" ".join(new.card.warnings) if new.card is not None else "")
        if old is None or new.branches.let_go != old.branches.let_go:
            self.dropped.say(self._dropped_words(new.branches.let_go))
        self.taken.say(self._taken_words() if new.undo_kind == "batch prompt" else "")
        told = ("trace", "request", "card")
        if old is None or any(getattr(old, name) is not getattr(new, name) for name in told):
            stale = self._stale_words(new)
            if new.request.causal_mask:
                self.mask.say("")
                self.stale.say(stale)
            else:  # one bar for both: two would take the charts their height
                self.mask.say(f"{self._mask_words()} {stale}".rstrip())
                self.stale.say("")

    def _dropped_words(self, count: int) -> str:
        if not count:
            return ""
        text = self.tr(
            "{0} dropped to stay within {1} and {2} branches. Save the session to keep the rest."
        )
        many = self.tr("1 old branch was") if count == 1 else self.tr("{0} old branches were")
        return text.format(many.format(count), short_bytes(LIMIT_BYTES), LIMIT_BRANCHES)

    def _taken_words(self) -> str:
        return self.tr(
            "The main run is now this prompt of the batch, with its padding. Undo brings the "
            "earlier prompt and run back."
        )

    def _mask_words(self) -> str:
        return self.tr(
            "Causal mask off: tokens also attend to later ones. No KV cache: each step recomputes "
            "the whole text."
        )

    def _stale_words(self, state: State) -> str:
        """What else made the run on screen than what the controls say now."""
        trace, request = state.trace, state.request
        if trace is None or trace.request == request:
            return ""
        made = trace.request
        if made.model != request.model:
            name = request.model if state.card is None else state.card.name
            text = self.tr("This is still the {0} run. Press Step to start over with {1}.")
            return text.format(trace.card.name, name)
        if made.mode != request.mode:
            text = self.tr("This run was made in mode {0}. Press Step to run again in mode {1}.")
            return text.format(made.mode, request.mode)
        if made.causal_mask != request.causal_mask:
            if request.causal_mask:
                return self.tr("This run used no causal mask. Press Step to run again with it.")
            return self.tr("This run used the mask. Press Step to run again without it.")
        if made.chat != request.chat:
            if request.chat:
                return self.tr(
                    "This run read the prompt as raw text. Press Step to read it as a chat."
                )
            return self.tr("This run read the prompt as a chat. Press Step to read it as raw text.")
        if made.prompt != request.prompt:
            return self.tr(
                "This run used another prompt. Press Step to start over with the new one."
            )
        if made.special_as_text != request.special_as_text:
            return self.tr("This run read the control tokens differently. Press Step to run again.")
        if made.uses_cache != request.uses_cache:
            if request.uses_cache:
                return self.tr("This run used no KV cache. Press Step to run again with it.")
            return self.tr("This run used the KV cache. Press Step to run again without it.")
        if (made.padding, made.pad) != (request.padding, request.pad):
            return self.tr("This run used different padding. Press Step to run again.")
        return self.tr("This run used other settings. Press Step to run again.")

    def _drift_words(self, drift: Drift) -> str:
        """What was found, how large it is, and what holds."""
        name = drift.card.name
        if drift.same_files:
            text = self.tr("{0} no longer gives the numbers of this run.").format(name)
        else:
            text = self.tr("The files of {0} have changed since this run was made.").format(name)
        if math.isfinite(drift.apart):
            text += " " + self.tr(
                "Computed again, the logits of its last step differ by up to {0} (rounding: {1}); "
                "the probability of {2} was {3} and is now {4}."
            ).format(
                f"{drift.apart:.2g}",
                f"{drift.limit:.1g}",
                tokens.written(drift.token),
                percent(drift.probability),
                percent(drift.probability_now),
            )
        else:
            text += " " + self.tr("It splits the text into other tokens or has another vocabulary.")
        return text + " " + self.tr("You can look at this run, but not continue it.")

    def _plan_words(self, plan: Plan) -> str:
        text = self.tr(
            "A large run: reading {0} tokens takes up to {1} of memory beside the {2} of weights "
            "(cache {3}, recorded attention {4} × {5})."
        ).format(
            f"{plan.tokens:,}",
            short_bytes(plan.total_bytes),
            short_bytes(plan.weights_bytes),
            short_bytes(plan.cache_bytes),
            plan.copies,
            short_bytes(plan.capture_bytes),
        )
        if plan.estimated_seconds is not None:
            about = seconds_text(plan.estimated_seconds)
            text += " " + self.tr("It will take about {0}, by estimate.").format(about)
        if not plan.fits and plan.available_bytes is not None:
            free = short_bytes(plan.available_bytes)
            text += " " + self.tr("Only {0} are free.").format(free)
        return text
