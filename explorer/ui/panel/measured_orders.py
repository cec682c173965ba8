"""Orders of the heads that take passes of the model: what silencing each does, what each adds."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from explorer.figures.attention import head_scores
from explorer.figures.attention.head_scores import HeadScores, Order
from explorer.session.session import Session
from explorer.session.state import State
from explorer.trace.experiments import Result
from explorer.trace.inside.attribution import Attribute, Attribution
from explorer.trace.inside.heads import HeadSweep, SweepHeads
from explorer.ui.panel.asking import Asking, Question
from explorer.wording import progress_percent

translate = QCoreApplication.translate


class MeasuredOrders:
    """Follows what the engine has found; asks for a sweep when told to, for a sum by itself."""

    def __init__(self, panel: QWidget, session: Session, kind: Callable[[], Order | None]) -> None:
        """`kind` tells the order that is chosen."""
        self._session, self._kind = session, kind
        self._asking = Asking(panel, session, self._wanted)
        self._shown: Result | None = None  # whose order is shown
        self.doing = ""  # what is going on, for the atlas
        self.problem = ""  # why there is no order, as a sentence

    @property
    def chosen(self) -> bool:
        """True if the heads are to be in one of these orders."""
        return self._kind() in ("effect", "contribution")

    @property
    def known(self) -> bool:
        """True if such an order is shown."""
        return self._shown is not None

    def forget(self) -> None:
        """No such order is shown any more."""
        self._shown, self.doing, self.problem = None, "", ""

    def ask(self) -> None:
        """Have the heads silenced, if that is the order and was not done here."""
        state = self._session.state
        going = state.status.experiment is SweepHeads
        if self._kind() == "effect" and state.result(HeadSweep) is None and not going:
            self._session.sweep_heads()

    def follow(self, state: State) -> tuple[bool, HeadScores | None]:
        """Whether another order is to be shown, and which; None = the figures are not known."""
        shown, kind = state.shown, self._kind()
        self.doing = self.problem = ""
        if shown is None or not self.chosen:
            return False, None
        found: Result | None
        if kind == "effect":
            found = self._sweep(state)
        else:
            found = _sum(state)
            self.problem = state.refusal(Attribute)
            self._asking.later()
        if found is None:
            had, self._shown = self.known, None
            return had, None
        if found is self._shown:
            return False, None
        self._shown = found
        if isinstance(found, HeadSweep):
            return True, head_scores.of_sweep(found, shown.step, shown.trace)
        assert isinstance(found, Attribution)
        return True, head_scores.of_attribution(found, shown.step, shown.trace)

    def _sweep(self, state: State) -> HeadSweep | None:
        """The effects; while heads are silenced, those of before."""
        if state.status.experiment is not SweepHeads:
            return state.result(HeadSweep)
        share = progress_percent(state.status.fraction or 0.0)
        self.doing = translate("MeasuredOrders", "silencing: {0}").format(share)
        return self._shown if isinstance(self._shown, HeadSweep) else None

    def _wanted(self, state: State) -> Question | None:
        """The sum of the logit at the token looked at, if that is the order and not known."""
        shown = state.shown
        if shown is None or self._kind() != "contribution" or _sum(state) is not None:
            return None
        if shown.trace.tokens[shown.query].origin == "padding":
            return None
        return Attribute, {"slot": shown.query, "token": shown.chosen_id, "against": None}


def _sum(state: State) -> Attribution | None:
    """The sum that is known at the token looked at, whichever token it is of."""
    found, shown = state.result(Attribution), state.shown
    return found if found and shown and found.slot == shown.query else None
