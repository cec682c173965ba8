"""Experiments on the run on screen: asked for one at a time, their results put into the state."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from explorer.session.engine_lease import EngineLease, Job
from explorer.session.state import Measured, Refusal, Status, model_key
from explorer.trace.experiments import Experiment, UnfitAnswer, read_result
from explorer.trace.wire import messages as m

_log = logging.getLogger(__name__)


class Experiments:
    """Knows none of them: what there is to know stands in `trace.experiments`."""

    def __init__(self, lease: EngineLease) -> None:
        self._lease, self._store, self._link = lease, lease.store, lease.link

    def run(self, kind: type[Experiment], settings: Mapping[str, Any], quiet: bool) -> None:
        """Begin; `settings` are fields of `kind`.  `quiet`: nobody asked, so no error is shown."""
        state = self._store.state
        trace, index = state.trace, state.step_index
        request = state.request if trace is None or kind.OF_MODEL else trace.request
        if kind.OF_PROMPT:
            prompted = kind.OF_MODEL or trace is not None or request.has_prompt
            ready = model_key(request) in self._lease.loaded and prompted
            needs = "This needs a prompt and its model. Open the model first."
        else:
            ready = trace is not None and index is not None and self._lease.can_continue(trace)
            needs = "This needs a run and its model. Open the model and press Step."
        if not ready:
            if not quiet:
                self._store.set(error=needs)
            return
        chosen = () if trace is None or kind.OF_PROMPT else trace.chosen_ids[:index]
        given: dict[str, Any] = {"chosen": chosen, "sampling": state.sampling}
        given = {name: value for name, value in given.items() if name in kind.__struct_fields__}
        self._lease.drop_job()
        run = self._link.ask(kind(request=request, **given, **settings))  # type: ignore[arg-type]
        self._lease.job = Job(
            "experiment", run, request, experiment=kind, chosen=chosen, asked=not quiet,
            sampling=state.sampling,
        )  # fmt: skip
        status = Status(activity="running", text=kind.RUNNING, fraction=0.0, experiment=kind)
        self._store.set(status=status, **({} if quiet else {"error": ""}))
        if kind.IN_PARTS:  # what was found before must not look like the first part
            self._keep(kind, None)

    def answered(self, event: m.Facts | m.PartFacts, job: Job) -> None:
        """The result is there, or what is known of it so far; one sentence if it is none."""
        assert job.experiment is not None
        ended: dict[str, Any] = {}
        if isinstance(event, m.Facts):
            self._lease.job = None
            ended = {"status": Status(activity="idle")}
        try:
            result = read_result(event.facts, job.experiment.RESULT)
        except UnfitAnswer as error:
            _log.warning("%s %s", error, error.details)
            self._store.set(error=str(error), **ended)
            return
        state = self._store.state
        card = None if state.trace is None else state.trace.card
        if job.experiment.OF_MODEL:
            card = state.card
        found = Measured(job.request, job.chosen, job.sampling, result, card)
        refused = {kind: why for kind, why in state.refused.items()
                   if kind is not job.experiment}  # fmt: skip
        self._keep(job.experiment, found, refused=refused, **ended)

    def failed(self, sentence: str, job: Job) -> None:
        """Keep why it failed, for the panel that wanted it."""
        trace = self._store.state.trace
        if job.experiment is not None and trace is not None:
            refusal = Refusal(job.request, trace.card, sentence)
            self._store.set(refused={**self._store.state.refused, job.experiment: refusal})

    def _keep(self, kind: type[Experiment], found: Measured[Any] | None, **more: Any) -> None:
        others = self._store.state.measured
        self._store.set(measured={**others, kind.RESULT: found}, **more)
