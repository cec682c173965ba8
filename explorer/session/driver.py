"""Turns wishes into requests to the engine, and its answers into state.

One job at a time has the engine; the self-check and the recapture of an old pass are jobs that
give way to the user's.  Answers with the number of a job that is over are dropped: whatever a
cancelled run still says is stale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from explorer.session import capture_budget
from explorer.session.connection import other_versions
from explorer.session.connection.engine_link import EngineLink, Post
from explorer.session.connection.ports import Engine
from explorer.session.engine_lease import EngineLease, Job, keys_of, with_key
from explorer.session.jobs.background import Background
from explorer.session.jobs.batches import Batches
from explorer.session.jobs.downloads import Downloads
from explorer.session.jobs.experiments import Experiments
from explorer.session.jobs.far_records import FarRecords
from explorer.session.jobs.live_tokens import NONE, LiveTokens, problem_of
from explorer.session.jobs.models import Models
from explorer.session.jobs.replay_check import Proof
from explorer.session.jobs.trainings import Trainings
from explorer.session.selection import Selection
from explorer.session.state import CodeQuestion, State, Status, model_key
from explorer.session.stopwatch import Stopwatch
from explorer.session.store import Store
from explorer.session.undo_history import History, UndoEntry
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.request import RunRequest
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m

_log = logging.getLogger(__name__)
ENDLESS = 1_000_000  # passes; the engine stops earlier by itself
CANCELLED: dict[str, str] = {
    "load": "Cancelled: the model was not opened.",
    "advance": "Cancelled. The run keeps its finished tokens.",
    "recapture": "Cancelled: the attention of this token was not recomputed.",
    "check": "Cancelled: the self-check did not finish.",
    "compare": "Cancelled: the comparison was not computed.",
    "batch": "Cancelled: the batch did not finish.",
    "proof": "Cancelled: the last token was not recomputed, and nothing was run.",
}
RUN_KEPT = "Your run is still here."
RESTART = "Restart the engine to continue."
GOES_ON = "Restart the engine: the run then continues after token {0:,}."
UNREAD = "Cancelled before the prompt was read."
UNREAD_EARLIER = "Cancelled before the prompt was read. The earlier run was restored."
RUNNING = "Running…"
KEEP_CHANGING = (
    "The model's files keep changing, even after reopening the model twice. Your run is still "
    "here. Wait until nothing writes to the files, then press Step."
)
_REOPENINGS = 2  # in a row, because files had changed
_SLOTS = 2048  # of the longest pass that is not done in chunks
_SLOW = 2e10  # multiplications and additions a second, of a small machine
_OPENINGS = 50  # whose cards are remembered
_AHEAD = 5  # quick taps that are remembered while a step runs; a held key must stop soon


@dataclass(frozen=True, slots=True)
class BrokenRun:
    """A run that lost its engine: it goes on with the next one, if nothing has changed."""

    request: RunRequest
    chosen: tuple[int, ...]
    steps: int  # still to be made
    kept: int | None  # they begin a branch after so many steps

    @property
    def done(self) -> int:
        """Steps after which it goes on."""
        return len(self.chosen) if self.kept is None else self.kept

    def fits(self, state: State) -> bool:
        """True if this very run is on screen, as it was."""
        trace = state.trace
        same = trace is not None and trace.chosen_ids == self.chosen
        return same and trace is not None and trace.request == state.request == self.request


class Driver:
    """Owns the link and the job; the only one who writes what the engine answers."""

    def __init__(
        self, store: Store, history: History, factory: Callable[[], Engine], post: Post
    ) -> None:
        self._history = history
        link = EngineLink(factory, post, self._receive, self._on_unresponsive)
        self._lease = EngineLease(store, link, dropped=self._on_dropped)
        self.proof = Proof(self._lease)
        self.background = Background(self._lease, self.proof)
        self.experiments = Experiments(self._lease)
        self.batches = Batches(self._lease, self.background)
        self.models = Models(self._lease)
        self.downloads = Downloads(self._lease)
        self.trainings = Trainings(store, factory, post, link)
        self.stopwatch = Stopwatch()
        self._wanted = False  # a model was asked for, and nothing spoke against it since
        self._after_load: int | None = None  # steps to run once the model is there
        self._act_after: UndoEntry | None = None  # the act that they belong to
        self._kept: int | None = None  # steps that the branch shares which the wished run begins
        self._broken: BrokenRun | None = None  # what ran when the engine was lost
        self._reopenings = 0  # since the last wish, because files had changed
        self._planned = 0  # steps of the run that waits for the user's word
        self._agreed: RunRequest | None = None  # the large run that was agreed to
        self._spelling = 0  # run number of the newest question for the vocabulary
        self._said = ""  # what was cancelled, to be said once the model of before is back
        self.far = FarRecords(self._lease, self.background.look_at)
        self.background.keep_bytes = self.proof.keep_bytes = lambda: self.far.keep_bytes
        self.prompt = LiveTokens(store, self._lease.link)

    # -- the engine's life

    def start(self) -> None:
        """A new engine; the model that was open is opened again."""
        self._forget_engine()
        broken, self._broken = self._broken, None
        self._lease.store.set(
            status=Status(activity="starting", text="Starting the engine…"),
            error="",
            host="",  # until it greets
            other_versions="",
        )
        self._lease.link.start()
        if self._wanted and self._lease.link.alive:
            self._reopen()
            if broken is not None and broken.fits(self._lease.store.state):
                self._wait_for_model(broken.steps, kept=broken.kept)

    def _on_unresponsive(self) -> None:
        """The engine does not obey a cancel: another takes its place, and what waits for it."""
        job, waiting, wanted = self._lease.job, self._after_load, self._wanted
        act, kept = self._act_after, self._kept
        loading = job if job is not None and job.kind == "load" else None
        if self.proof.waits_for(self._begin_planned):
            waiting = self._planned
        elif job is not None and job.kind == "advance":
            waiting, act, kept = self._still_to_run(job), job.act, job.kept
            self._take_back(job)
        self._wanted = False
        self.start()
        if wanted and self._lease.link.alive:
            if loading is None:
                self._reopen()
            else:
                self.load(loading.request, overtaken=loading.overtaken)
            if waiting is not None:
                self._wait_for_model(waiting, act, kept)
        self._lease.store.set(
            error="The engine did not stop on request, so it was restarted. Your run is still "
            "here. The model's tokenizer or chat template may never finish."
        )

    def _still_to_run(self, job: Job) -> int:
        """Steps of a run that has not ended, with those wished for meanwhile."""
        return ENDLESS if job.endless else max(1, self._planned + job.queued)

    def release(self, why: str) -> None:
        """End the engine to free its memory; the model that it holds is wanted again later."""
        wanted = self._wanted
        self._forget_engine()
        self._lease.link.close()
        self._wanted = wanted
        self._lease.store.set(status=Status(activity="lost", text=why, released=True), error="")

    @property
    def running(self) -> bool:
        """True if there is an engine to ask."""
        return self._lease.link.alive and self._lease.store.state.status.activity != "lost"

    @property
    def runs_or_will(self) -> bool:
        """True while steps are made, or wait for a model or for the proof of their run."""
        waiting = self._after_load is not None or self.proof.waits_for(self._begin_planned)
        return waiting or self._lease.store.state.busy

    def close(self) -> None:
        self.trainings.close()
        self._forget_engine()
        self._lease.link.close()

    def _forget_engine(self) -> None:
        if self._lease.job is not None and self._lease.job.begun is not None:
            self._bring_back(self._lease.job.begun, self._lease.job)
        self._lease.job = None
        self.proof.forget()
        self._lease.loaded = ()
        self._after_load = self._act_after = self._kept = None
        self.background.forget()
        self.models.forget()
        self.downloads.forget()
        self.trainings.forget()
        self.prompt.stop()
        self.far.forget()

    # -- requests

    def open(self, request: RunRequest, **how: bool) -> None:
        """Open the model that `request` names, with a new engine if there is none.

        `how` are fields of `messages.Load` for this one time.
        """
        if not self._lease.store.state.opened:  # nothing that could keep its place until then
            self._lease.store.set(request=request, card=None)
        if not self.running:
            self._wanted = False
            self.start()
        if self.running:
            self.load(request, **how)
        else:
            self._wanted = True

    def load(
        self, request: RunRequest, keep: bool = False, overtaken: bool = False, **how: bool
    ) -> None:
        """Open the model that `request` names; `keep` it as it is if it is loaded still.

        `overtaken`: the request of the state stays as it is, see `keep_request`.
        """
        job = self._lease.job
        held = bool(self._lease.loaded) or (job is not None and job.held)
        self.cancel()
        trace = self._lease.store.state.trace
        of_run = not keep and trace is not None and trace.request.model == request.model
        run = self._lease.link.ask(
            m.Load(
                like=trace.card.fingerprint if trace is not None and of_run else {},
                model=request.model,
                dtype=request.dtype,
                device=request.device,
                cache_type_k=request.cache_type_k,
                gpu_layers=request.gpu_layers,
                form=request.form,
                keep=keep,
                **how,
            )
        )
        self._lease.job = Job("load", run, request, keep=keep, overtaken=overtaken, held=held)
        self._lease.loaded = ()
        self._wanted = True
        self.prompt.stop()
        name = Path(request.model).name
        self._lease.store.set(status=Status(activity="loading", text=f"Opening {name}…"))

    def _reopen(self, keep: bool = False) -> None:
        """Open the model that was open once more; a run of another keeps its request."""
        state = self._lease.store.state
        if state.opened:
            asked = with_key(state.request, state.opened[0])
            self.load(asked, keep=keep, overtaken=state.reopens)
        else:
            self.load(state.request)

    def keep_request(self) -> None:
        """The run on screen has a request of its own: a load under way does not change it."""
        if self._lease.job is not None and self._lease.job.kind == "load":
            self._lease.job.overtaken = True

    def free_request(self) -> RunRequest:
        """The request for a new run on the model that is open, or is being opened."""
        state, job = self._lease.store.state, self._lease.job
        keys = state.opened
        if job is not None and job.kind == "load":
            job.overtaken = False
            keys = keys or (model_key(job.request),)
        if not keys or model_key(state.request) in keys:
            return state.request
        return with_key(state.request, keys[0])

    def _fall_back(self, job: Job, reopen: bool) -> str:
        """In place of a model that was not opened, the one before; its name, "" if none is open.

        `reopen` it at once, for the engine may hold it no longer; else the next step does.
        """
        store = self._lease.store
        works = store.state.opened
        self._wanted = False
        if not works:
            trace = store.state.trace
            opened_once = job.keep or (trace and trace.request.model == job.request.model)
            stays = job.overtaken or opened_once
            left = store.state.request.model if stays else ""
            request = msgspec.structs.replace(store.state.request, model=left)
            store.set(card=None, request=request)
            return ""
        if not job.overtaken:
            store.set(request=with_key(store.state.request, works[-1]))
        if reopen:
            self._reopen(keep=True)
        return "" if store.state.card is None else store.state.card.name

    def advance(self, steps: int, act: UndoEntry | None = None, kept: int | None = None) -> None:
        """Run `steps` passes; a lost engine is started first, a missing model opened first.

        Undo takes a run back with the `act` that it belongs to.  `kept`: they begin a branch after
        so many steps of the run on screen.
        """
        self._reopenings = 0
        self._lease.store.set(error="")
        self._advance(steps, act, kept)

    def _advance(self, steps: int, act: UndoEntry | None = None, kept: int | None = None) -> None:
        state = self._lease.store.state
        problem = problem_of(state.request)
        if problem or not state.request.model:
            self._lease.store.set(error=problem or "There is no model to run. Open a model first.")
            return
        if not self.running:
            self._broken = None  # so many steps are wished for now
            self.start()
            if not self.running:
                return
        if self._lease.job and self._lease.job.kind == "advance":
            if not self._lease.job.endless:
                self._lease.job.queued = min(self._lease.job.queued + steps, max(steps, _AHEAD))
            return
        if self.proof.waits_for(self._begin_planned):
            self._planned = min(self._planned + steps, max(steps, _AHEAD))
            return
        if self._lease.job is None or self._lease.job.kind != "load":
            self.cancel()
            if model_key(state.request) in self._lease.loaded:
                self._begin(steps, act, kept)
                return
            self.load(state.request)
        waiting = self._after_load or 0
        self._wait_for_model(min(waiting + steps, max(steps, waiting, _AHEAD)), act, kept)

    def _wait_for_model(
        self, steps: int, act: UndoEntry | None = None, kept: int | None = None
    ) -> None:
        """Run these steps once the model that is being opened is there."""
        self._after_load, self._act_after, self._kept = steps, act, kept
        status = self._lease.store.state.status
        self._lease.store.set(status=replace(status, step_waits=True))

    def _begin(self, steps: int, act: UndoEntry | None = None, kept: int | None = None) -> None:
        """Go on with the run on screen, once its model is proven, or begin another."""
        self._planned, self._kept = steps, kept
        state = self._lease.store.state
        if state.trace is not None and state.trace.request == state.request:
            self.proof.first(self._begin_planned)
        else:
            self._run(steps, act=act)

    def _begin_planned(self) -> None:
        self._run(self._planned)

    def run_again(self) -> None:
        """The run on screen once more from its prompt, as many steps, by the model of now."""
        trace = self._lease.store.state.trace
        if trace is not None and self._lease.holds(trace):
            self.cancel()
            self._lease.store.set(request=trace.request, error="")
            self._run(max(1, len(trace.steps)), anew=True)

    def _run(self, steps: int, anew: bool = False, act: UndoEntry | None = None) -> None:
        state = self._lease.store.state
        trace = state.trace
        fresh = anew or trace is None or trace.request != state.request
        kept, self._kept = self._kept, None
        if fresh or trace is None or kept is None or kept >= len(trace.steps):
            kept = None
        chosen = () if fresh or trace is None else trace.chosen_ids[:kept]
        self.stopwatch.begin()
        run = self._lease.link.ask(
            m.Advance(
                request=state.request,
                chosen=chosen,
                steps=steps,
                sampling=state.sampling,
                stops=state.stops,
                ask_first=state.request != self._agreed,
                reuse=state.reuse and fresh and not state.request.typed,
                keep_bytes=self.far.keep_bytes,
            )
        )
        self._planned = steps
        self._lease.job = Job(
            "advance",
            run,
            state.request,
            fresh=fresh,
            endless=steps >= ENDLESS,
            selection=state.selection,
            act=act,
            kept=kept,
        )
        self._history.end_gesture()
        selection = state.selection if kept else _latest(state.selection)
        self._lease.store.set(
            status=Status(activity="running", text=RUNNING),
            selection=selection,
            plan=None,
            drift=None,
        )

    def go_on(self) -> None:
        """Run what was planned, as the request now stands, without asking again."""
        self._agreed = self._lease.store.state.request
        self._lease.store.set(plan=None)
        self.advance(self._planned, kept=self._lease.store.state.branch_point)

    def resample(self) -> None:
        """The sampling of the state for the passes still to come."""
        if self._lease.job and self._lease.job.kind == "advance":
            self._lease.link.send(
                m.Resample(run=self._lease.job.run, sampling=self._lease.store.state.sampling)
            )

    def pause(self) -> None:
        """End the run, keeping its finished steps."""
        self._after_load = self._act_after = self._kept = None
        kind, reading = self._lease.job.kind if self._lease.job else "", self.reading is not None
        if kind in ("advance", "proof", "experiment"):
            self.cancel()
        if kind == "advance" and not reading:
            self.background.check()
        elif self._lease.job and self._lease.job.kind == "batch":
            self.cancel()

    def cancel(self) -> None:
        """End whatever has the engine; what it still says is stale."""
        self._after_load = self._act_after = self._kept = None
        self.background.forget()
        job = self._lease.drop_job()
        if job is not None and job.kind == "load":
            self._wanted = False

    def give_up(self) -> None:
        """End whatever has the engine because the user says so, and tell what was ended."""
        job, reading = self._lease.job, self.reading is not None
        self.cancel()
        if job is None or reading:  # that has its own words
            return
        words = job.experiment.CANCELLED if job.experiment else CANCELLED[job.kind]
        if job.kind == "load":
            name = self._fall_back(job, reopen=job.held and not job.keep)
            words = f"{words} {name} is still open." if name and self._lease.job else words
        self._said = words
        if self._lease.job is None:
            self._lease.store.set(status=Status(activity="idle", text=words))

    @property
    def reading(self) -> UndoEntry | None:
        """What undo knows a new run by while its prompt is read and no step of it is there."""
        return None if self._lease.job is None else self._lease.job.begun

    def _on_dropped(self, job: Job) -> None:
        if job.begun is not None:
            self._bring_back(job.begun, job)
            earlier = self._lease.store.state.trace is not None
            text = UNREAD_EARLIER if earlier else UNREAD
            self._lease.store.set(status=Status(activity="idle", text=text))

    def _bring_back(self, begun: UndoEntry, job: Job) -> None:
        """The run that `job` was to take the place of is on screen again."""
        job.begun = None
        self._history.forget(begun)
        before = {**begun.fields, "selection": job.selection}
        self._lease.store.set(**before, **self._history.shown)
        self.prompt.refresh()

    def stop(self) -> None:
        """End anything but a load: the user acts."""
        self._after_load = self._act_after = self._kept = None
        if self._lease.job and self._lease.job.kind != "load":
            self.cancel()

    # -- answers

    def _receive(self, event: m.Event) -> None:
        job = self._lease.job
        match event:
            case m.Lost():
                self._on_lost(event)
            case _ if self.downloads.answered(event):
                pass
            case m.Hello():
                elsewhere = self._lease.link.elsewhere
                self._lease.store.set(
                    host=(event.host or "?") if elsewhere else "",
                    other_versions=other_versions.difference(event.versions) if elsewhere else "",
                )
                if self._lease.store.state.status.activity == "starting":
                    self._lease.store.set(status=Status(activity="idle"))
            case _ if self.far.answered(event):
                pass
            case m.Tokens():
                self.prompt.answered(event)
            case m.Finished() if self.prompt.ended(event):
                pass
            case m.Spelled() if event.run == self._spelling:
                self._lease.store.set(vocabulary=event.vocabulary)
            case m.Facts() if self.models.answered(event) or self.trainings.answered(event):
                pass
            case m.Failed():
                self._on_failed(event)
            case _ if job is None or event.run != job.run:
                pass  # stale
            case m.Progress():
                status = self._lease.store.state.status
                self._lease.store.set(
                    status=replace(status, text=event.text, fraction=event.fraction)
                )
            case m.Loaded():
                self._on_loaded(event, job)
            case m.Planned():
                job.plan = event.plan
            case m.Prompted():
                self._on_prompted(event, job)
            case m.Stepped():
                self._on_stepped(event, job)
            case m.Checked():
                self.background.on_checked(event)
            case m.Facts() if job.experiment is not None:
                self.experiments.answered(event, job)
                self.background.go_on()
                if not job.asked:  # it had taken the turn of what else nobody asked for
                    self.background.check()
            case m.PartFacts() if job.experiment is not None:
                self.experiments.answered(event, job)
            case m.Batched():
                self.batches.answered(event)
            case m.Finished():
                self._on_finished(event, job)
            case _:
                pass

    def _on_lost(self, event: m.Lost) -> None:
        store, (steps, kept) = self._lease.store, self._steps_wanted()
        self._forget_engine()
        trace = store.state.trace
        if steps and trace is not None and trace.request == store.state.request:
            self._broken = BrokenRun(trace.request, trace.chosen_ids, steps, kept)
        stays = RUN_KEPT if trace is not None else ""
        done = 0 if self._broken is None else self._broken.done
        then = GOES_ON.format(done) if done else RESTART
        words = " ".join(filter(None, (event.sentence, stays, then)))
        store.set(
            status=Status(activity="lost", text=words),
            error=words,
        )

    def _steps_wanted(self) -> tuple[int, int | None]:
        """Steps that the run on screen is still to make, also after a load or its proof.

        And after how many of its steps they begin a branch, if they do.
        """
        job = self._lease.job
        if job is not None and job.kind == "advance":
            another = job.fresh or job.begun is not None  # not the run on screen
            return (0, None) if another else (self._still_to_run(job), job.kept)
        if self.proof.waits_for(self._begin_planned):
            return self._planned, self._kept
        return self._after_load or 0, self._kept

    def _on_loaded(self, event: m.Loaded, job: Job) -> None:
        self._lease.job = None
        store = self._lease.store
        self._lease.loaded = keys_of(job.request, event.card, store.state.trace)
        self._lease.link.layer_seconds = _layer_seconds(event.card)
        after, self._after_load = self._after_load, None
        act, self._act_after = self._act_after, None
        kept, self._kept = self._kept, None
        said, self._said = self._said, ""
        changes: dict[str, Any] = {
            "status": Status(activity="idle", text=said if job.keep else ""),
            "opened": self._lease.loaded,
            "no_room": False,
        }
        if not job.overtaken:
            changes["request"] = with_key(store.state.request, self._lease.loaded[-1])
        same = job.keep and event.card == store.state.card
        if not same:
            self.proof.forget()
            self._lease.opened = [*self._lease.opened[-_OPENINGS:], event.card]
            changes |= self.models.opened()
            changes |= {"card": event.card, "vocabulary": None, "batch": None}
            changes |= NONE
        store.set(**changes)
        waited_for = after is not None and after < ENDLESS
        if not waited_for and store.state.vocabulary is None:
            self._spelling = self._lease.link.ask(m.ListVocabulary())
        self.prompt.start()
        if after is not None and self._lease.job is None:
            self._advance(after, act, kept)
        else:
            self.models.measure()
        # The vocabulary takes a while: a first token that is waited for goes before it.
        if waited_for and store.state.vocabulary is None:
            self._spelling = self._lease.link.ask(m.ListVocabulary())

    def _on_prompted(self, event: m.Prompted, job: Job) -> None:
        state = self._lease.store.state
        if job.kind != "advance" or state.card is None:
            return
        if not job.fresh and state.trace is not None:
            if [t.id for t in event.tokens] != [t.id for t in state.trace.prompt]:
                self.cancel()
                self._lease.store.set(
                    error="This model splits the prompt into different tokens than this run. Press "
                    "Reset to start a new run."
                )
            elif not state.trace.steps:  # nothing in it yet is of another opening
                self._lease.store.set(trace=replace(state.trace, card=state.card))
            return
        job.begun = job.act or self._history.push(_act(job), state, "trace")
        text = f"Reading the prompt: {len(event.tokens):,} tokens…"
        self._lease.store.set(
            trace=Trace(
                request=job.request, card=state.card, prompt=event.tokens, turns=event.turns
            ),
            status=Status(activity="running", text=text),
            **self._history.shown,
        )
        job.fresh = False

    def _on_stepped(self, event: m.Stepped, job: Job) -> None:
        state = self._lease.store.state
        trace = state.trace
        if trace is None:
            return
        if job.kind == "proof":
            self.proof.on_stepped(event.step, trace)
        elif job.kind in ("recapture", "compare"):
            self.background.on_stepped(event.step, job, trace)
        elif job.kind == "advance" and event.step.index == _next_index(job, trace):
            self.stopwatch.arrived(event.step, self._lease.link.arrived_at)
            self._planned -= 1
            changes: dict[str, Any] = {}
            if job.kept is None:
                self._note_longer(job, len(trace.steps))
            else:  # undo brings the whole run back, and the step that was selected
                self._history.push(_act(job), state, "trace", "selection")
                trace = trace.truncated(job.kept)
                changes["selection"] = _latest(state.selection)
                job.kept, job.noted = None, True
            longer = replace(trace.appended(event.step, event.token), self_check=SelfCheck())
            keep = capture_budget.looked_at(state.selection.step)
            changes |= self._history.shown
            going = Status(activity="running", text=RUNNING)
            if state.status != going:  # the prompt was read, or a link that stalled works again
                changes["status"] = going
            limit = self.background.budget_bytes
            self._lease.store.set(trace=capture_budget.within(longer, limit, keep), **changes)
        elif job.kind == "advance":
            self.cancel()
            self._lease.store.set(
                error="The engine answered out of order. Your run is still here. Press Step to "
                "continue."
            )

    def _note_longer(self, job: Job, steps: int) -> None:
        """Undo takes back a step by itself, a run or an act as a whole."""
        whole = job.endless or job.act is not None
        if job.begun is None and not (whole and job.noted):
            self._history.push_longer(_act(job), steps)
        job.begun, job.noted = None, True

    def _on_finished(self, event: m.Finished, job: Job) -> None:
        if job.begun is not None and event.reason == "cancelled":
            self._bring_back(job.begun, job)
        self._lease.job = None
        trace = self._lease.store.state.trace
        if event.reason == "plan":
            self._lease.store.set(plan=job.plan, status=Status(activity="idle"))
            return
        if job.kind == "proof":
            self._lease.store.set(status=Status(activity="idle"))
            self.proof.finished()
            return
        if job.kind == "advance" and trace is not None:
            if (
                event.reason == "steps"
                and job.queued
                and trace.request == self._lease.store.state.request
            ):
                self._begin(job.queued)
                return
            trace = replace(trace, stop_reason=event.reason)
        elif job.kind == "check" and trace is not None:
            checks = trace.self_check.checks
            passed = all(c.passed for c in checks) if checks else None
            trace = replace(trace, self_check=SelfCheck(passed=passed, checks=checks))
        self._lease.store.set(trace=trace, status=Status(activity="idle"))
        if job.kind == "advance":
            self.models.measure()  # before what runs in the background could disturb it
        self.background.go_on()
        unchecked = trace is not None and trace.self_check.passed is None
        if job.kind == "advance" or (job.kind == "compare" and unchecked):
            self.background.check()  # a comparison had taken its turn

    def _on_failed(self, event: m.Failed) -> None:
        if any(
            asked(event)
            for asked in (self.prompt.failed, self.models.answered, self.trainings.answered)
        ):
            return
        job = self._lease.job
        if job is None or event.run != job.run:
            return
        waiting = None
        if self.proof.waits_for(self._begin_planned):
            waiting, job.kept = self._planned, self._kept
        if job.kind == "advance":
            waiting = self._still_to_run(job)
        self._after_load = self._act_after = self._kept = None
        if event.files_changed:
            self._lease.loaded = ()
            if waiting is not None and self._reopenings < _REOPENINGS:
                self._try_anew(job, waiting)
                return
        if job.begun is not None:
            self._bring_back(job.begun, job)
        self._lease.job = None
        quiet = job.kind in ("check", "experiment") and not job.asked
        self.experiments.failed(event.sentence, job)
        changes: dict[str, Any] = {} if quiet else {"error": event.sentence}
        if event.details:
            _log.warning("%s %s", event.sentence, event.details)
        if event.files_changed and waiting is not None:
            changes["error"] = KEEP_CHANGING
        if job.kind == "load":
            if model_key(job.request) in self._lease.store.state.opened:
                job.keep = True
                self._lease.store.set(opened=())  # it works no longer
            name = self._fall_back(job, reopen=True)
            if event.own_code:
                asked = CodeQuestion(job.request.model, event.own_code, event.sentence)
                changes = {"code_question": asked}
            elif name:
                changes["error"] = f"{event.sentence} {name} is still open."
            if not event.own_code:
                changes |= {"unopened": job.request.model, "no_room": event.no_room}
                changes["unopened_as"] = model_key(job.request)
        if self._lease.job is None:
            changes["status"] = Status(activity="idle")
        self._lease.store.set(**changes)

    def _try_anew(self, job: Job, steps: int) -> None:
        """Open the changed files, then run what was to be run: an act keeps its own request."""
        self._reopenings += 1
        self._take_back(job)
        self._lease.job = None
        self.load(self._lease.store.state.request)
        self._wait_for_model(steps, job.act, job.kept)

    def _take_back(self, job: Job) -> None:
        """A run that is to begin once more was not begun; an act keeps its own request."""
        if job.begun is not None and job.act is None:
            self._bring_back(job.begun, job)
        elif job.begun is not None:
            job.begun = None
            self._lease.store.set(trace=None)  # as the act left it


def _latest(selection: Selection) -> Selection:
    """Follow the latest step, at the same layer and head."""
    return replace(selection, step=None, query=None, key=None)


def _next_index(job: Job, trace: Trace) -> int:
    """Of the step that this run computes next."""
    return len(trace.steps) if job.kept is None else job.kept


def _layer_seconds(card: ModelCard) -> float:
    """How long a small machine may take for one layer of a long pass."""
    return 2 * _SLOTS * card.parameters / max(1, card.layers) / _SLOW


def _act(job: Job) -> str:
    """What undo calls it."""
    return "run" if job.endless else "step"
