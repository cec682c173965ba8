"""Bars at the top of the window: an error, a lost engine, what a model just opened warns of, …"""

from __future__ import annotations

import math
from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from explorer.figures.text import tokens
from explorer.session.branches import LIMIT_BRANCHES, LIMIT_BYTES
from explorer.session.changes import changed
from explorer.session.session import Session
from explorer.session.state import Drift, State
from explorer.trace.cost.run_cost import Plan
from explorer.trace.interventions.kinds import Intervention
from explorer.trace.trace import Trace
from explorer.ui.access.accessible import announce
from explorer.ui.frame.bars.branch_notice import BranchNotice
from explorer.ui.frame.bars.notice import Notice
from explorer.ui.kit.boxes import line
from explorer.ui.look.text_size import for_back_row
from explorer.ui.panel.intervention_words import listed
from explorer.wording import percent, seconds_text, short_bytes

_UNBOUNDED = 16777215  # Qt's largest height
THINNED = 4  # the choice of a thinner record: every fourth layer


class Notices(QWidget):
    """All notices on one line: one is seen, and a button goes through those that wait."""

    openLog = Signal()
    restartEngine = Signal()
    chooseModel = Signal()  # where the model of the run on screen is now
    compareInterventions = Signal()  # show the run with and without them

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.lost = Notice("error-card")
        self.lost.add_button(self.tr("Restart the engine"), self.restartEngine.emit, primary=True)
        self.lost.add_button(self.tr("Open log"), self.openLog.emit)
        self.error = Notice("error-card", closable=True)
        self.error.add_button(self.tr("Open log"), self.openLog.emit)
        self.error.dismissed.connect(self._dismiss_error)
        self.missing = Notice("error-card", closable=True)
        self.missing.add_button(self.tr("Choose…"), self.chooseModel.emit, primary=True)
        self.missing.dismissed.connect(self._dismiss_error)
        self.unmasked = Notice("warning-card", closable=True)
        self.unmasked.add_button(self.tr("Turn the mask on"), lambda: session.set_causal_mask(True))
        self.changed = Notice("warning-card", closable=True)
        self.changed.add_button(self.tr("Compare"), self.compareInterventions.emit)
        self.changed.add_button(self.tr("Clear all"), lambda: session.set_interventions(()))
        self.stale = Notice("warning-card", closable=True)
        self.dropped = Notice("warning-card", closable=True)
        self.taken = Notice("warning-card", closable=True)
        self.taken.add_button(self.tr("Undo"), session.undo)
        for bar in (self.unmasked, self.changed, self.stale, self.dropped, self.taken):  # they last
            bar.dismissed.connect(bar.close_by_hand)
        self.branch = BranchNotice(session)
        self.plan = Notice("warning-card")
        self.plan.add_button(self.tr("Run"), lambda: session.go_on(1), primary=True)
        self.plan.add_button(
            self.tr("Record every {0}th layer").format(THINNED), lambda: session.go_on(THINNED)
        )
        self.plan.add_button(self.tr("Cancel"), session.drop_plan)
        self.drift = Notice("warning-card")
        self.drift.add_button(self.tr("View only"), session.look_only)
        self.drift.add_button(self.tr("Run again as a branch"), session.run_again, primary=True)
        self.model = Notice("warning-card", closable=True)
        self.model.dismissed.connect(lambda: self.model.say(""))
        self._bars: list[Notice] = []
        self._shown: Notice | None = None
        self._next = QToolButton()
        self._next.setProperty("look", "flat")
        self._next.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._next.clicked.connect(self._show_next)
        self._next.hide()
        line(self, self._next, gap=4, edges=(8, 0, 8, 0))
        for notice in (
            self.lost, self.error, self.missing, self.plan, self.drift, self.dropped, self.taken,
            self.branch, self.model, self.unmasked, self.changed, self.stale,
        ):  # fmt: skip
            self._insert(len(self._bars), notice)
        self._measure()

    def add(self, notice: Notice) -> None:
        """One more bar, above those about the run."""
        self._insert(self._bars.index(self.model), notice)
        self._measure()

    def _insert(self, at: int, notice: Notice) -> None:
        row = self.layout()
        assert isinstance(row, QHBoxLayout)
        self._bars.insert(at, notice)
        row.insertWidget(at, notice, 1)
        notice.said.connect(lambda: self._on_said(notice))

    def _measure(self) -> None:
        """Room for one line, whether or not there is one: nothing moves when a notice comes.

        A class sees as many lines as it has, and none without one.
        """
        for bar in self._bars:
            bar.ensurePolished()
        self.setVisible(not for_back_row() or self._shown is not None)
        if for_back_row():
            self.setMinimumHeight(0)
            self.setMaximumHeight(_UNBOUNDED)
        else:
            self.setFixedHeight(max(bar.sizeHint().height() for bar in self._bars))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._measure()

    # -- one at a time

    @property
    def waiting(self) -> list[Notice]:
        """All that have something to say, the most urgent first."""
        return [bar for bar in self._bars if bar.text]

    @property
    def shown(self) -> Notice | None:
        """The one that is seen."""
        return self._shown

    def _on_said(self, notice: Notice) -> None:
        """The newest is seen, but never in place of one that matters more."""
        shown = self._shown
        if notice.text:
            gives_way = shown is None or self._weight(notice) >= self._weight(shown)
            self._show(notice if gives_way else shown)
        elif notice is shown or shown is None:
            self._show(next(iter(self.waiting), None))
        else:
            self._show(shown)

    def _weight(self, notice: Notice) -> int:
        """2: nothing goes on without it; 1: tells of a failure or asks for a choice; 0: informs."""
        if notice is self.lost:
            return 2
        return int(notice in (self.error, self.missing, self.plan, self.drift))

    def _show_next(self) -> None:
        waiting = self.waiting
        at = waiting.index(self._shown) if self._shown in waiting else -1
        self._show(waiting[(at + 1) % len(waiting)])
        announce(self, waiting[(at + 1) % len(waiting)].text)

    def _show(self, notice: Notice | None) -> None:
        self._shown = notice
        for bar in self._bars:
            bar.setVisible(bar is notice)
        self.setVisible(notice is not None or not for_back_row())
        waiting = self.waiting
        if len(waiting) < 2 or notice is None:
            if self._next.hasFocus():
                self.window().setFocus()
            self._next.hide()
            return
        place = self.tr("{0} of {1}").format(waiting.index(notice) + 1, len(waiting))
        self._next.setText(f"{place} ›")
        self._next.setAccessibleName(self.tr("Notice {0}: show the next").format(place))
        self._next.setToolTip(self.tr("Show the next notice"))
        self._next.show()

    def _dismiss_error(self) -> None:
        self.error.say("")
        self.missing.say("")
        self._session.report("")

    def show_state(self, old: State | None, new: State) -> None:
        lost = new.status.activity == "lost" and not new.status.released
        self.lost.say(new.status.text if lost else "")
        error = "" if lost and new.error == new.status.text else new.error
        missing = _model_is_missing(new)
        self.error.say("" if missing else error)
        self.missing.say(self._missing_words(new.trace, error) if missing and new.trace else "")
        if changed(old, new, "plan"):
            self.plan.say("" if new.plan is None else self._plan_words(new.plan))
        if changed(old, new, "drift", "trace"):
            told = new.drift is not None and new.drift.fits(new.trace)
            self.drift.say(self._drift_words(new.drift) if told and new.drift is not None else "")
        if changed(old, new, "card"):
            self.model.say(" ".join(new.card.warnings) if new.card is not None else "")
        made_by = None if new.trace is None else new.trace.card
        known = (new.card, None if old is None or old.trace is None else old.trace.card)
        if made_by is not None and made_by.warnings and not any(made_by is c for c in known):
            self.model.say(" ".join(made_by.warnings))  # of a saved run
        if changed(old, new, "branches.let_go"):
            self.dropped.say(self._dropped_words(new.branches.let_go))
        self.taken.say(self._taken_words() if new.undo_kind == "batch prompt" else "")
        self.branch.show_state(old, new)
        if changed(old, new, "trace", "request", "card", "opened"):
            stale = self._stale_words(new)
            request = new.request
            # One bar for a setting and for what it makes stale: of two only one would be seen.
            for bar, words in (
                (self.unmasked, "" if request.causal_mask else self._mask_words()),
                (self.changed, self._changed_words(request.interventions)),
            ):
                bar.say(f"{words} {stale}".rstrip() if words else "")
                stale = "" if words else stale
            self.stale.say(stale)

    def _missing_words(self, trace: Trace, error: str) -> str:
        words = self.tr(
            "The model of this run, {0}, could not be opened. Choose where it is now: Step then "
            "continues the run. ({1})"
        )
        return words.format(trace.card.name, error)

    def _dropped_words(self, count: int) -> str:
        if not count:
            return ""
        if count == 1:
            text = self.tr(
                "The oldest branch was deleted to save memory (limit: {1} or {2} branches). "
                "Save the session to keep the rest."
            )
        else:
            text = self.tr(
                "The {0} oldest branches were deleted to save memory (limit: {1} or {2} "
                "branches). Save the session to keep the rest."
            )
        return text.format(count, short_bytes(LIMIT_BYTES), LIMIT_BRANCHES)

    def _taken_words(self) -> str:
        return self.tr(
            "The main run now uses this prompt of the batch, with its padding. Undo "
            "restores the earlier run."
        )

    def _mask_words(self) -> str:
        return self.tr("Causal mask off: tokens can attend to later tokens. The KV cache is off.")

    def _changed_words(self, interventions: Sequence[Intervention]) -> str:
        if not interventions:
            return ""
        text = self.tr("Interventions on: {0}. This is not the model's own output.")
        return text.format(listed(interventions))

    def _stale_words(self, state: State) -> str:
        """What else made the run on screen than what the controls say now."""
        trace, request = state.trace, state.request
        if trace is None:
            return ""
        if trace.request == request:
            return self._reopening_words(state, trace)
        made = trace.request
        if made.model != request.model:
            opened = state.card is not None and not state.other_model
            name = state.card.name if opened and state.card is not None else request.model
            text = self.tr("This is still the {0} run. Press Step to start over with {1}.")
            return text.format(trace.card.name, name)
        if made.form != request.form:
            if request.form == "as-is":
                return self.tr("This run used float32. Press Step to run the file as it is.")
            return self.tr("This run used the file as it is. Press Step to run it in {0}.").format(
                request.dtype
            )
        if made.causal_mask != request.causal_mask:
            if request.causal_mask:
                return self.tr("This run used no causal mask. Press Step to run again with it.")
            return self.tr("This run used the mask. Press Step to run again without it.")
        if made.context != request.context:
            return self.tr("This run used another context policy. Press Step to run again.")
        if made.interventions != request.interventions:
            if request.interventions:
                return self.tr("Press Step to run with these interventions.")
            return self.tr("This run used interventions. Press Step to run again without them.")
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

    def _reopening_words(self, state: State, trace: Trace) -> str:
        """What Step opens before a saved run goes on; empty if its model is open."""
        card, request = state.card, trace.request
        if not state.reopens or card is None:
            return ""
        if state.other_model:
            text = self.tr(
                "This run used {0}, but {1} is open. Press Step to open {0} and continue."
            )
            return text.format(trace.card.name, card.name)
        if request.form != card.form:
            if request.form == "as-is":
                text = self.tr(
                    "This run used {0} as it is, but it is open in {1}. Press Step to reopen it as "
                    "it is and continue."
                )
                return text.format(trace.card.name, card.dtype)
            text = self.tr(
                "This run used {0} in {1}, but the file is open as it is. Press Step to reopen it "
                "in {1} and continue."
            )
            return text.format(trace.card.name, request.dtype)
        if card.form == "as-is" and request.cache_type_k != card.cache_type_k:
            text = self.tr(
                "This run kept the keys of {0} in {1}, but it is open with keys in {2}. Press Step "
                "to reopen it and continue."
            )
            return text.format(trace.card.name, request.cache_type_k, card.cache_type_k)
        if card.form == "as-is" and request.gpu_layers != card.gpu_layers:
            text = self.tr(
                "This run of {0} had {1} layers on a GPU, but it is open with {2}. Press Step to "
                "reopen it and continue."
            )
            return text.format(trace.card.name, request.gpu_layers, card.gpu_layers)
        text = self.tr(
            "This run used {0} on {1}, but {2} is open in {3} on {4}. Press Step to reopen it "
            "and continue."
        )
        return text.format(request.dtype, request.device, card.name, card.dtype, card.device)

    def _drift_words(self, drift: Drift) -> str:
        """What was found, how large it is, and what holds."""
        name = drift.card.name
        if drift.same_files:
            text = self.tr("{0} no longer reproduces this run.").format(name)
        else:
            text = self.tr("The files of {0} have changed since this run was made.").format(name)
        text += " " + self.tr("You can view this run but not continue it.")
        if math.isfinite(drift.apart):
            text += " " + self.tr(
                "Recomputed logits of its last token differ by up to {0} (rounding "
                "allows {1}). The probability of {2} was {3} and is now {4}."
            ).format(
                f"{drift.apart:.2g}",
                f"{drift.limit:.1g}",
                tokens.written(drift.token),
                percent(drift.probability),
                percent(drift.probability_now),
            )
        else:
            text += " " + self.tr(
                "Its tokenizer now gives different tokens, or its vocabulary has changed."
            )
        return text

    def _plan_words(self, plan: Plan) -> str:
        """What is needed to choose first, then what it is made of."""
        count, size = f"{plan.tokens:,}", short_bytes(plan.total_bytes)
        if plan.estimated_seconds is None:
            text = self.tr("Large prompt ({0} tokens): up to {1} of memory.").format(count, size)
        else:
            text = self.tr("Large prompt ({0} tokens): up to {1} of memory, about {2}.").format(
                count, size, seconds_text(plan.estimated_seconds)
            )
        if not plan.fits and plan.available_bytes is not None:
            free = short_bytes(plan.available_bytes)
            text += " " + self.tr("Only {0} is free.").format(free)
        made_of = self.tr(
            "This is in addition to the weights ({0}): KV cache {1}, recorded attention {2} × {3}."
        ).format(
            short_bytes(plan.weights_bytes),
            short_bytes(plan.cache_bytes),
            plan.copies,
            short_bytes(plan.capture_bytes),
        )
        return f"{text} {made_of}"


def _model_is_missing(state: State) -> bool:
    """True if the model that made the run on screen was asked for, and could not be opened."""
    trace = state.trace
    return bool(state.error and trace is not None and trace.request.model == state.unopened)
