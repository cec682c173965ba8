"""Jobs that nobody waits for, and that give way to the user's.

The self-check, a pass run again for its attention, and the other side of a comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from explorer.figures.attention.arrived_head import needed_passes
from explorer.session import capture_budget
from explorer.session.engine_lease import EngineLease, Job
from explorer.session.jobs.replay_check import Proof
from explorer.session.state import Status
from explorer.trace.card import SelfCheck
from explorer.trace.comparison import Comparison, other_side, switched
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m

OTHER_TOKENS = (
    "In its other form, this file splits the text into different tokens, so the two can't be "
    "compared. Try another prompt."
)


def _let_go(trace: Trace, step: int) -> int | None:
    """The first pass that a map of this step needs and whose records were given up."""
    needed = needed_passes(trace, step)
    return next((i for i in needed if capture_budget.was_let_go(trace.steps[i])), None)


class Background:
    """Starts them when the engine is free, and puts their answers into the state."""

    def __init__(self, lease: EngineLease, proof: Proof) -> None:
        self.budget_bytes = capture_budget.DEFAULT_BYTES  # of a run's passes without a cache
        self._lease, self._store, self._link = lease, lease.store, lease.link
        self._proof = proof
        self.keep_bytes: Callable[[], int] = lambda: 0  # see `FarRecords`
        self._recapture: int | None = None  # step to run again once nothing else runs

    def forget(self) -> None:
        """Nothing is to be run again."""
        self._recapture = None

    def give_way(self) -> None:
        """End what has the engine, and forget what was to be run again."""
        self.forget()
        self._lease.drop_job()

    def check(self, asked: bool = False) -> None:
        """Self-check of the trace on screen, if nothing else has the engine."""
        trace = self._store.state.trace
        if (
            trace is None
            or not trace.steps
            or self._lease.job
            or not self._lease.can_continue(trace)
        ):
            if asked and not self._lease.job:
                self._store.set(error="The self-check needs a run and its model. Press Step first.")
            return
        run = self._link.ask(m.CheckTrace(request=trace.request, chosen=trace.chosen_ids))
        self._lease.job = Job("check", run, trace.request, asked=asked)
        self._store.set(
            trace=replace(trace, self_check=SelfCheck()),
            status=Status(activity="checking", text="Checking the run…"),
        )

    def look_at(self, step: int) -> None:
        """If this pass gave its records up, run it again as soon as nothing else runs."""
        trace = self._store.state.trace
        let_go = None if trace is None else _let_go(trace, step)
        gone = let_go is not None
        job = self._lease.job
        moved = job and job.kind in ("recapture", "compare") and job.step != step
        wanted = job and job.kind == "check" and (gone or self._other_side_missing())
        if (
            job and job.kind == "compare" and trace is not None
        ):  # of the mask, say, and now of another
            moved = moved or job.request != other_side(trace.request, self._store.state.compare_of)
        if moved or wanted:
            self.give_way()
        self._recapture = let_go
        if self._lease.job is None:
            self.go_on()

    def go_on(self) -> None:
        """What was put off, once the model is proven to be that of the run on screen."""
        free = self._lease.job is None  # a listener may have begun something meanwhile
        if free and (self._recapture is not None or self._other_side_missing()):
            self._proof.first(self._go_on, quiet=True)

    def _go_on(self) -> None:
        step, self._recapture = self._recapture, None
        trace = self._store.state.trace
        if trace is None:
            return
        if step is None or step >= len(trace.steps):
            self._compare(trace)
            return
        if not capture_budget.was_let_go(trace.steps[step]) or not self._lease.can_continue(trace):
            return
        run = self._link.ask(
            m.Recapture(
                request=trace.request,
                chosen=trace.chosen_ids[:step],
                keep_bytes=self.keep_bytes(),
            )
        )
        self._lease.job = Job("recapture", run, trace.request, step=step)
        text = f"Computing token {step + 1} again for its attention…"
        self._store.set(status=Status(activity="running", text=text))

    def _other_side_missing(self) -> bool:
        state = self._store.state
        if not state.comparing or state.trace is None or state.step_index is None:
            return False
        if state.compare_of == "form" and not state.trace.card.form:
            return False
        if state.compare_of == "interventions" and not state.trace.request.interventions:
            return False
        found = state.comparison
        fits = found is not None and found.of == state.compare_of
        return not (fits and found is not None and found.fits(state.trace, state.step_index))

    def _compare(self, trace: Trace) -> None:
        """Run the step on screen with one thing the other way, if that is wished for."""
        index, of = self._store.state.step_index, self._store.state.compare_of
        if index is None or not self._other_side_missing() or not self._lease.can_continue(trace):
            return
        request = other_side(trace.request, of)
        run = self._link.ask(m.Recapture(request=request, chosen=trace.chosen_ids[:index]))
        self._lease.job = Job("compare", run, request, step=index)
        side = "without" if trace.request.causal_mask else "with"
        how = f"{side} the causal mask"
        if of == "form":
            how = "as it is" if request.form == "as-is" else "in float32"
        elif of == "interventions":
            how = "without interventions"
        text = f"Running token {index + 1} {how}…"
        self._store.set(status=Status(activity="running", text=text))

    def on_stepped(self, step: Step, job: Job, trace: Trace) -> None:
        """A pass run again, for its own attention or for the other side of a comparison."""
        if job.kind == "compare":
            chosen = trace.chosen_ids[: job.step]
            of = switched(trace.request, job.request)
            ids = tuple(token.id for token in trace.tokens[: trace.read_slots(job.step)])
            if step.token_ids != ids:
                self._store.set(comparing=False, error=OTHER_TOKENS)
                return
            self._store.set(comparison=Comparison(chosen, job.request, step, trace.card, of))
        else:
            self._swap_in(trace, job.step, step)

    def _swap_in(self, trace: Trace, index: int, fresh: Step) -> None:
        try:
            swapped = capture_budget.with_records(trace, index, fresh)
        except ValueError as error:
            self._store.set(error=str(error))
            return
        shown = self._store.state.step_index
        keep = capture_budget.looked_at(self._store.state.selection.step, index)
        self._store.set(trace=capture_budget.within(swapped, self.budget_bytes, keep))
        if shown is not None:
            self._recapture = _let_go(swapped, shown)  # the next that its map needs

    def on_checked(self, event: m.Checked) -> None:
        trace = self._store.state.trace
        if trace is None:
            return
        checks = (*trace.self_check.checks, event.check)
        passed = None if all(c.passed for c in checks) else False
        self._store.set(trace=replace(trace, self_check=SelfCheck(passed=passed, checks=checks)))
