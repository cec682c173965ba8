"""Experiments that take many passes: draws, the search for better, the cache on and off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer.session.engine_lease import EngineLease, Job
from explorer.session.state import CacheRuns, Experiment, Status, model_key
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.wire import messages as m


class Experiments:
    """Asks for them, one at a time, and puts their figures into the state."""

    def __init__(self, lease: EngineLease) -> None:
        self._lease = lease

    def draw_many(self, count: int, length: int) -> None:
        """Continue the prefix of the step on screen many times, with the settings of now."""
        sampling = self._lease.store.state.sampling
        self._ask(
            "draws",
            lambda request, chosen: m.DrawMany(
                request=request, chosen=chosen, count=count, length=length, sampling=sampling
            ),
        )

    def search(self, length: int, width: int, passes: int) -> None:
        """Look for a sequence more probable than the greedy one."""
        self._ask(
            "search",
            lambda request, chosen: m.SearchSequences(
                request=request, chosen=chosen, length=length, width=width, passes=passes
            ),
        )

    def read_slot(self, slot: int) -> None:
        """Read the keys and values of one position off the cache."""
        self._ask(
            "slot", lambda request, chosen: m.ReadSlot(request=request, chosen=chosen, slot=slot)
        )

    def cache_runs(self, tokens: int) -> None:
        """Generate `tokens` tokens from the prompt on screen, with the cache and without."""
        state = self._lease.store.state
        trace = state.trace
        request = state.request if trace is None else trace.request
        if model_key(request) not in self._lease.loaded or not (trace or request.prompt):
            self._lease.store.set(
                error="The cache experiment needs a prompt and its model. Open the model first."
            )
            return
        self._lease.drop_job()
        run = self._lease.link.ask(m.CacheExperiment(request=request, tokens=tokens))
        self._lease.job = Job("cache runs", run, request)
        text = "Generating with and without the cache…"
        self._lease.store.set(status=Status(activity="running", text=text, fraction=0.0), error="")

    def score_prompt(self) -> None:
        """Score the prompt on screen, token by token; nothing without its model."""
        trace = self._lease.store.state.trace
        if trace is None or not self._lease.can_continue(trace):
            return
        self._lease.drop_job()
        run = self._lease.link.ask(m.ScorePrompt(request=trace.request))
        self._lease.job = Job("scores", run, trace.request)
        status = Status(activity="running", text="Scoring the prompt…", fraction=0.0)
        self._lease.store.set(status=status)

    def _ask(
        self,
        kind: str,
        made: Callable[[RunRequest, tuple[int, ...]], m.DrawMany | m.SearchSequences | m.ReadSlot],
    ) -> None:
        state = self._lease.store.state
        trace, index = state.trace, state.step_index
        if trace is None or index is None or not self._lease.can_continue(trace):
            self._lease.store.set(
                error="This needs a run and its model. Open the model and press Step."
            )
            return
        self._lease.drop_job()
        run = self._lease.link.ask(made(trace.request, trace.chosen_ids[:index]))
        self._lease.job = Job(kind, run, trace.request, step=index, sampling=state.sampling)  # type: ignore[arg-type]
        words = {"draws": "Drawing…", "search": "Searching…", "slot": "Reading the cache…"}[kind]
        status = Status(activity="running", text=words, fraction=0.0, experiment=kind)
        # Draws come in bit by bit: those of before must not look like the first of them.
        before = {"draws": None} if kind == "draws" else {}
        self._lease.store.set(status=status, error="", **before)

    def answered_in_part(self, event: m.PartFacts, job: Job) -> None:
        """Some of the draws are there; they stay if the rest is cancelled."""
        self._lease.store.set(draws=self._found(event.facts, job))

    def answered(self, event: m.Facts, job: Job) -> None:
        """The figures are there."""
        self._lease.job = None
        if job.kind == "cache runs":
            found_runs = _cache_runs(job.request, event.facts, self._card)
            self._lease.store.set(cache_runs=found_runs, status=Status(activity="idle"))
            return
        if job.kind == "scores":
            scores = Experiment(job.request, (), job.sampling, event.facts, self._card)
            self._lease.store.set(scores=scores, status=Status(activity="idle"))
            return
        idle = Status(activity="idle")
        field = {"draws": "draws", "search": "found", "slot": "slot_read"}[job.kind]
        self._lease.store.set(**{field: self._found(event.facts, job)}, status=idle)

    @property
    def _card(self) -> ModelCard | None:
        """Of the run that the figures are made for."""
        trace = self._lease.store.state.trace
        return None if trace is None else trace.card

    def _found(self, facts: dict[str, Any], job: Job) -> Experiment:
        trace = self._lease.store.state.trace
        chosen = () if trace is None else trace.chosen_ids[: job.step]
        return Experiment(job.request, chosen, job.sampling, facts, self._card)


def _cache_runs(request: RunRequest, facts: dict[str, Any], card: ModelCard | None) -> CacheRuns:
    cached, uncached = facts["cached"], facts["uncached"]
    return CacheRuns(
        request,
        bool(facts["same_tokens"]),
        tuple(cached["positions"]),
        tuple(uncached["positions"]),
        tuple(cached["ms"]),
        tuple(uncached["ms"]),
        card,
    )
