"""Padded batches: asked for by the user, answered into the state beside the trace."""

from __future__ import annotations

from explorer.session.engine_lease import EngineLease, Job
from explorer.session.jobs.background import Background
from explorer.session.jobs.live_tokens import encoding_problem
from explorer.session.state import Status, model_key
from explorer.trace.batch import BatchRequest
from explorer.trace.wire import messages as m


class Batches:
    """Starts them and puts their results into the state; the trace on screen stays."""

    def __init__(self, lease: EngineLease, background: Background) -> None:
        self._lease, self._store, self._link = lease, lease.store, lease.link
        self._background = background

    def run(self, batch: BatchRequest) -> None:
        """Padded prompts together and each alone, in place of any other job: `state.batch`."""
        state = self._store.state
        request = state.request
        problem = next(filter(None, map(encoding_problem, batch.prompts)), "")
        if not problem and model_key(request) not in self._lease.loaded:
            problem = "A batch needs an open model. Open one, then run the batch again."
            if state.reopens:
                problem = (
                    "This run was made with a different model. Open its model or reset the run, "
                    "then run the batch again."
                )
        if problem:
            self._store.set(error=problem)
            return
        self._background.give_way()
        self._lease.job = Job("batch", self._link.ask(m.RunBatch(batch=batch)), request)
        self._store.set(
            status=Status(activity="running", text="Running the batch…"),
            error="",
        )

    def answered(self, event: m.Batched) -> None:
        """The batch is done."""
        self._lease.job = None
        self._store.set(batch=event.result, status=Status(activity="idle"))
        self._background.go_on()
