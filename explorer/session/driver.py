"""Turns wishes into requests to the engine, and its answers into state.

One job at a time has the engine; the self-check and the recapture of an old pass are jobs that
give way to the user's.  Answers with the number of a job that is over are dropped: whatever a
cancelled run still says is stale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from explorer.session import budget
from explorer.session.history import History
from explorer.session.link import Link, Post
from explorer.session.ports import Engine
from explorer.session.prompt import LiveTokens, encoding_problem
from explorer.session.state import Comparison, Selection, Status, other_side
from explorer.session.store import Store
from explorer.trace import messages as m
from explorer.trace.card import SelfCheck
from explorer.trace.request import RunRequest
from explorer.trace.step import Step
from explorer.trace.trace import Trace

ENDLESS = 1_000_000  # passes; the engine stops earlier by itself
_AHEAD = 2  # steps wished for while one is running that are remembered


@dataclass(slots=True)
class Job:
    """What has the engine now."""

    kind: Literal["load", "advance", "recapture", "check", "compare", "prefix"]
    run: int
    request: RunRequest
    fresh: bool = False  # advance: a new trace takes the place of the one on screen
    endless: bool = False  # advance: until something stops it
    queued: int = 0  # advance: steps wished for meanwhile
    step: int = 0  # recapture, compare: index of the step
    asked: bool = False  # check: wished for by the user, not started by itself


class Driver:
    """Owns the link and the job; the only one who writes what the engine answers."""

    def __init__(
        self, store: Store, history: History, factory: Callable[[], Engine], post: Post
    ) -> None:
        self.budget_bytes = budget.DEFAULT_BYTES
        self._store = store
        self._history = history
        self._link = Link(factory, post, self._receive)
        self._job: Job | None = None
        self._loaded: tuple[str, str, str] | None = None
        self._wanted = False  # a model was asked for, and nothing spoke against it since
        self._after_load: int | None = None  # steps to run once the model is there
        self._recapture: int | None = None  # step to run again once nothing else runs
        self.prompt = LiveTokens(store, self._link)

    # -- the engine's life

    def start(self) -> None:
        """A new engine; the model that was open is opened again."""
        self._forget_engine()
        self._store.set(
            status=Status(activity="starting", text="Starting the engine…"),
            error="",
            error_details="",
        )
        self._link.start()
        if self._wanted and self._link.alive:
            self.load()

    @property
    def running(self) -> bool:
        """True if there is an engine to ask."""
        return self._link.alive and self._store.state.status.activity != "lost"

    def close(self) -> None:
        self._forget_engine()
        self._link.close()

    def _forget_engine(self) -> None:
        self._job = None
        self._loaded = None
        self._after_load = None
        self._recapture = None
        self.prompt.stop()

    # -- wishes

    def open(self) -> None:
        """Open the model that the request names, with a new engine if there is none."""
        self._wanted = True
        if self.running:
            self.load()
        else:
            self.start()

    def load(self) -> None:
        """Open the model that the request names."""
        self.cancel()
        request = self._store.state.request
        run = self._link.ask(
            m.Load(model=request.model, dtype=request.dtype, device=request.device)
        )
        self._job = Job("load", run, request)
        self._loaded = None
        self._wanted = True
        self.prompt.stop()
        self._store.set(status=Status(activity="loading", text=f"Opening {request.model}…"))

    def advance(self, steps: int) -> None:
        """Run `steps` passes; a lost engine is started first, a missing model opened first."""
        state = self._store.state
        problem = encoding_problem(state.request.prompt)
        if problem or not state.request.model:
            self._store.set(error=problem or "Open a model first: there is nothing to run yet.")
            return
        if not self.running:
            self.start()
            if not self.running:
                return
        if self._job and self._job.kind == "advance":
            if not self._job.endless:
                self._job.queued = min(self._job.queued + steps, max(steps, _AHEAD))
            return
        if self._job is None or self._job.kind != "load":
            self.cancel()
            if self._loaded == _key(state.request):
                self._begin(steps)
                return
            self.load()
        self._after_load = steps

    def _begin(self, steps: int) -> None:
        state = self._store.state
        trace = state.trace
        fresh = trace is None or trace.request != state.request or not self._same_model(trace)
        chosen = () if fresh or trace is None else trace.chosen_ids
        run = self._link.ask(
            m.Advance(request=state.request, chosen=chosen, steps=steps, sampling=state.sampling)
        )
        self._job = Job("advance", run, state.request, fresh=fresh, endless=steps >= ENDLESS)
        self._history.end_gesture()
        latest = replace(state.selection, step=None, query=None, key=None)
        self._store.set(
            status=Status(activity="running", text="Running…"),
            selection=latest,
            error="",
            error_details="",
        )

    def _same_model(self, trace: Trace) -> bool:
        card = self._store.state.card
        return card is not None and card.fingerprint == trace.card.fingerprint

    def resample(self) -> None:
        """The sampling of the state for the passes still to come."""
        if self._job and self._job.kind == "advance":
            self._link.send(m.Resample(run=self._job.run, sampling=self._store.state.sampling))

    def pause(self) -> None:
        """End the run, keeping its finished steps."""
        self._after_load = None
        if self._job and self._job.kind == "advance":
            self.cancel()
            self.check()

    def cancel(self) -> None:
        """End whatever has the engine; what it still says is stale."""
        job, self._job = self._job, None
        self._after_load = None
        self._recapture = None
        if job is None:
            return
        if job.kind == "load":
            self._wanted = False
        self._link.send(m.Cancel(run=job.run))
        self._store.set(status=Status(activity="idle"))

    def stop(self) -> None:
        """End anything but a load: the user acts."""
        self._after_load = None
        if self._job and self._job.kind != "load":
            self.cancel()

    def check(self, asked: bool = False) -> None:
        """Self-check of the trace on screen, if nothing else has the engine."""
        trace = self._store.state.trace
        if trace is None or not trace.steps or self._job or not self._can_continue(trace):
            if asked and not self._job:
                self._store.set(
                    error="The self-check needs a trace on screen and its model; press step first."
                )
            return
        run = self._link.ask(m.CheckTrace(request=trace.request, chosen=trace.chosen_ids))
        self._job = Job("check", run, trace.request, asked=asked)
        self._store.set(
            trace=replace(trace, self_check=SelfCheck()),
            status=Status(activity="checking", text="Checking the trace…"),
        )

    def look_at(self, step: int) -> None:
        """If this pass gave its records up, run it again as soon as nothing else runs."""
        trace = self._store.state.trace
        gone = trace is not None and budget.was_let_go(trace.steps[step])
        job = self._job
        moved = job and job.kind in ("recapture", "compare") and job.step != step
        wanted = job and job.kind == "check" and (gone or self._other_side_missing())
        if moved or wanted:
            self.cancel()
        self._recapture = step if gone else None
        if self._job is None:
            self._next_in_background()

    def _next_in_background(self) -> None:
        step, self._recapture = self._recapture, None
        trace = self._store.state.trace
        if trace is None:
            return
        if step is None or step >= len(trace.steps):
            self._compare(trace)
            return
        if not budget.was_let_go(trace.steps[step]) or not self._can_continue(trace):
            return
        run = self._link.ask(m.Recapture(request=trace.request, chosen=trace.chosen_ids[:step]))
        self._job = Job("recapture", run, trace.request, step=step)
        text = f"Running step {step} again for its attention…"
        self._store.set(status=Status(activity="running", text=text))

    def _other_side_missing(self) -> bool:
        state = self._store.state
        if not state.comparing or state.trace is None or state.step_index is None:
            return False
        return state.comparison is None or not state.comparison.fits(state.trace, state.step_index)

    def _compare(self, trace: Trace) -> None:
        """Run the step on screen with the mask the other way, if that is wished for."""
        index = self._store.state.step_index
        if index is None or not self._other_side_missing() or not self._can_continue(trace):
            return
        request = other_side(trace.request)
        run = self._link.ask(m.Recapture(request=request, chosen=trace.chosen_ids[:index]))
        self._job = Job("compare", run, request, step=index)
        side = "without" if trace.request.causal_mask else "with"
        text = f"Running step {index} {side} the causal mask…"
        self._store.set(status=Status(activity="running", text=text))

    def measure_prefix(self) -> None:
        """The prefix experiment on the step on screen; needs its model."""
        trace, index = self._store.state.trace, self._store.state.step_index
        if trace is None or index is None or not self._can_continue(trace):
            self._store.set(
                error="The prefix experiment needs a trace on screen and its model; press step."
            )
            return
        self.stop()
        chosen = trace.chosen_ids[:index]
        run = self._link.ask(m.PrefixExperiment(request=trace.request, chosen=chosen))
        self._job = Job("prefix", run, trace.request, step=index)
        self._store.set(
            status=Status(activity="running", text="Dropping the last token…"), prefix=None
        )

    def _can_continue(self, trace: Trace) -> bool:
        return self._loaded == _key(trace.request) and self._same_model(trace)

    # -- answers

    def _receive(self, event: m.Event) -> None:
        match event:
            case m.Lost():
                self._on_lost(event)
            case m.Hello():
                if self._store.state.status.activity == "starting":
                    self._store.set(status=Status(activity="idle"))
            case m.Tokens():
                self.prompt.answered(event)
            case m.Failed():
                self._on_failed(event)
            case _ if self._job is not None and event.run == self._job.run:
                self._on_answer(event, self._job)
            case _:
                pass  # stale

    def _on_answer(self, event: m.Event, job: Job) -> None:
        match event:
            case m.Progress():
                activity = self._store.state.status.activity
                self._store.set(
                    status=Status(activity=activity, text=event.text, fraction=event.fraction)
                )
            case m.Loaded():
                self._on_loaded(event, job)
            case m.Prompted():
                self._on_prompted(event, job)
            case m.Stepped():
                self._on_stepped(event, job)
            case m.Checked():
                self._on_checked(event)
            case m.Facts() if job.kind == "prefix":
                self._job = None
                self._store.set(prefix=event.facts, status=Status(activity="idle"))
                self._next_in_background()
            case m.Finished():
                self._on_finished(event, job)
            case _:
                pass

    def _on_lost(self, event: m.Lost) -> None:
        self._forget_engine()
        self._store.set(
            status=Status(activity="lost", text=event.sentence),
            error=event.sentence,
            error_details="",
        )

    def _on_loaded(self, event: m.Loaded, job: Job) -> None:
        self._job = None
        self._loaded = _key(job.request)
        after, self._after_load = self._after_load, None
        self._store.set(card=event.card, status=Status(activity="idle"))
        self.prompt.start()
        if after is not None and self._job is None:
            self.advance(after)

    def _on_prompted(self, event: m.Prompted, job: Job) -> None:
        state = self._store.state
        if job.kind != "advance" or state.card is None:
            return
        if not job.fresh and state.trace is not None:
            if [t.id for t in event.tokens] != [t.id for t in state.trace.prompt]:
                self.cancel()
                self._store.set(
                    error="This model reads the prompt as other tokens than the trace on screen "
                    "holds; press reset to begin a new run."
                )
            return
        if state.trace is not None:
            self._history.push("run", state, "trace")
        self._store.set(
            trace=Trace(request=job.request, card=state.card, prompt=event.tokens),
            can_undo=self._history.can_undo,
            can_redo=self._history.can_redo,
        )
        job.fresh = False

    def _on_stepped(self, event: m.Stepped, job: Job) -> None:
        state = self._store.state
        trace = state.trace
        if trace is None:
            return
        if job.kind == "recapture":
            self._swap_in(trace, job.step, event.step)
        elif job.kind == "compare":
            chosen = trace.chosen_ids[: job.step]
            self._store.set(comparison=Comparison(chosen, job.request, event.step))
        elif job.kind == "advance" and event.step.index == len(trace.steps):
            longer = replace(trace.appended(event.step, event.token), self_check=SelfCheck())
            keep = self._looked_at(state.selection)
            self._store.set(trace=budget.within(longer, self.budget_bytes, keep))
        elif job.kind == "advance":
            self.cancel()
            self._store.set(
                error="The engine answered with a step out of order; press step to go on from here."
            )

    def _swap_in(self, trace: Trace, index: int, fresh: Step) -> None:
        try:
            swapped = budget.with_records(trace, index, fresh)
        except ValueError as error:
            self._store.set(error=str(error))
            return
        keep = self._looked_at(self._store.state.selection, index)
        self._store.set(trace=budget.within(swapped, self.budget_bytes, keep))

    @staticmethod
    def _looked_at(selection: Selection, *more: int) -> set[int]:
        return {*more, *(() if selection.step is None else (selection.step,))}

    def _on_checked(self, event: m.Checked) -> None:
        trace = self._store.state.trace
        if trace is None:
            return
        checks = (*trace.self_check.checks, event.check)
        passed = None if all(c.passed for c in checks) else False
        self._store.set(trace=replace(trace, self_check=SelfCheck(passed=passed, checks=checks)))

    def _on_finished(self, event: m.Finished, job: Job) -> None:
        self._job = None
        trace = self._store.state.trace
        if job.kind == "advance" and trace is not None:
            if (
                event.reason == "steps"
                and job.queued
                and trace.request == self._store.state.request
            ):
                self._begin(job.queued)
                return
            trace = replace(trace, stop_reason=event.reason)
        elif job.kind == "check" and trace is not None:
            checks = trace.self_check.checks
            passed = all(c.passed for c in checks) if checks else None
            trace = replace(trace, self_check=SelfCheck(passed=passed, checks=checks))
        self._store.set(trace=trace, status=Status(activity="idle"))
        self._next_in_background()
        if job.kind == "advance" and job.endless:
            self.check()

    def _on_failed(self, event: m.Failed) -> None:
        if self.prompt.failed(event):
            return
        job = self._job
        if job is None or event.run != job.run:
            return
        self._job = None
        self._after_load = None
        quiet = job.kind == "check" and not job.asked
        changes = {} if quiet else {"error": event.sentence, "error_details": event.details}
        if job.kind == "load":
            self._wanted = False
            changes["card"] = None  # type: ignore[assignment]
        self._store.set(status=Status(activity="idle"), **changes)


def _key(request: RunRequest) -> tuple[str, str, str]:
    return (request.model, request.dtype, request.device)
