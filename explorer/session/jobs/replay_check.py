"""Before a run of an earlier opening goes on, its last step is computed again.

A saved run names its model, and other weights may lie under that name by now; so may they after an
engine was restarted, or a model opened twice.  The step's logits must come out as recorded.
What differs by more than rounding is drift: told with its size, and nothing goes on by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from explorer.session.engine_lease import EngineLease, Job
from explorer.session.state import Drift, Status
from explorer.trace.fingerprint import same_weights
from explorer.trace.rounding import arithmetic, largest, logit_tolerance
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m


class Proof:
    """One at a time; what was to happen is done once the numbers agree."""

    def __init__(self, lease: EngineLease) -> None:
        self._lease, self._store, self._link = lease, lease.store, lease.link
        self._then: Callable[[], None] | None = None
        self.keep_bytes: Callable[[], int] = lambda: 0  # see `FarRecords`
        self._drifts: list[Drift] = []  # found with the model open now

    def forget(self) -> None:
        """A model was opened or reopened: nothing is known of it yet."""
        self._lease.proven.clear()
        self._drifts.clear()

    def first(self, act: Callable[[], None], quiet: bool = False) -> None:
        """Do `act`, on the run on screen, once its model is proven; not at all if it drifted.

        `quiet`: nobody asked for it, so a drift that is known is not told again.
        """
        trace = self._store.state.trace
        if trace is None or not self.wanted(trace):
            act()
        elif (found := next((d for d in self._drifts if d.fits(trace)), None)) is None:
            self._begin(trace, act)
        elif not quiet:
            self._store.set(drift=found)

    def waits_for(self, act: Callable[[], None]) -> bool:
        """True if `act` is to be done once the proof under way is there."""
        job = self._lease.job
        return job is not None and job.kind == "proof" and self._then == act

    def wanted(self, trace: Trace) -> bool:
        """True if the trace must be checked first: its model was reopened since."""
        return bool(trace.steps) and self._lease.holds(trace) and not self._lease.same_model(trace)

    def _begin(self, trace: Trace, then: Callable[[], None]) -> None:
        """Compute the last step again in place of what has the engine, then do `then`."""
        self._lease.drop_job()
        last = len(trace.steps) - 1
        chosen, keep = trace.chosen_ids[:last], self.keep_bytes()
        run = self._link.ask(m.Recapture(request=trace.request, chosen=chosen, keep_bytes=keep))
        self._then = then
        self._lease.job = Job("proof", run, trace.request, step=last)
        text = "Computing the last token again, to check that the model is the same…"
        self._store.set(status=Status(activity="running", text=text), drift=None)

    def on_stepped(self, fresh: Step, trace: Trace) -> None:
        """The step is here: the model is proven, or has drifted."""
        state = self._store.state
        assert state.card is not None
        found = drift(trace, fresh, same_weights(trace.card.fingerprint, state.card.fingerprint))
        if found is None:
            self._lease.proven.append(trace.card)
        else:
            self._then = None
            self._drifts.append(found)
            self._store.set(drift=found)

    def finished(self) -> None:
        """The engine is free again: go on, if the model was proven."""
        then, self._then = self._then, None
        if then is not None:
            then()


def drift(trace: Trace, fresh: Step, same_files: bool) -> Drift | None:
    """How far the last step of `trace`, computed again as `fresh`, is off; None if by rounding.

    Files that differ are drift, however close the numbers of this one step.
    """
    old = trace.steps[-1]
    # What the step found in the cache of another run, the pass that is run again reads, too.
    ends = [step.first_slot + step.positions_processed for step in (old, fresh)]
    same_tokens = fresh.token_ids[-len(old.token_ids) :] == old.token_ids
    read_alike = ends[0] == ends[1] and same_tokens and fresh.logits.shape == old.logits.shape
    apart = largest(fresh.logits - old.logits) if read_alike else float("inf")
    limit = logit_tolerance(arithmetic(trace.request), old.logits)
    if same_files and apart <= limit:
        return None
    token, now = trace.chosen[-1], 0.0
    if read_alike and 0 <= token.id < len(fresh.logits):
        now = _probability(fresh.logits, token.id)
    return Drift(
        card=trace.card,
        same_files=same_files,
        apart=apart,
        limit=limit,
        token=token,
        probability=_probability(old.logits, token.id),
        probability_now=now,
    )


def _probability(logits: np.ndarray, token_id: int) -> float:
    """Of one token, by the raw logits."""
    shifted = logits.astype(np.float64) - float(logits.max())
    return float(np.exp(shifted[token_id]) / np.exp(shifted).sum())
