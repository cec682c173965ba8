"""Which job has the engine, and what the engine holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec

from explorer.session.connection.engine_link import EngineLink
from explorer.session.selection import Selection
from explorer.session.state import ModelKey, Status, model_key
from explorer.session.store import Store
from explorer.session.transitions import without_strange
from explorer.session.undo_history import UndoEntry
from explorer.trace.card import ModelCard
from explorer.trace.cost.run_cost import Plan
from explorer.trace.experiments import Experiment
from explorer.trace.fingerprint import same_weights
from explorer.trace.request import Form, RunRequest, Sampling
from explorer.trace.trace import Trace
from explorer.trace.wire import messages as m


@dataclass(slots=True)
class Job:
    """What has the engine now."""

    kind: Literal[
        "load",
        "advance",
        "recapture",
        "check",
        "compare",
        "batch",
        "experiment",
        "proof",
    ]
    run: int
    request: RunRequest
    fresh: bool = False  # advance: a new trace takes the place of the one on screen
    begun: UndoEntry | None = None  # advance: the same as undo knows it, until its first step comes
    selection: Selection = field(default_factory=Selection)  # advance: what was looked at before
    act: UndoEntry | None = None  # advance: the act that it belongs to, if that is more than a run
    kept: int | None = None  # advance: steps that a branch shares, until its first step is there
    noted: bool = False  # advance: what undo takes back is remembered
    keep: bool = False  # load: the model that worked before, which may still be loaded
    overtaken: bool = False  # load: a run was opened meanwhile, and its own request stays
    held: bool = False  # load: the engine had a model when it began
    endless: bool = False  # advance: until something stops it
    queued: int = 0  # advance: steps wished for meanwhile
    step: int = 0  # recapture, compare: index of the step
    plan: Plan | None = None  # advance: what a large run will take
    asked: bool = False  # check, experiment: wished for by the user, not started by itself
    experiment: type[Experiment] | None = None
    chosen: tuple[int, ...] = ()  # experiment: tokens that stand before it
    sampling: Sampling = field(default_factory=Sampling)  # experiment: the settings of then


@dataclass(slots=True)
class EngineLease:
    """What the user's jobs and those in the background share: one engine, one job at a time."""

    store: Store
    link: EngineLink
    job: Job | None = None
    loaded: tuple[ModelKey, ...] = ()  # the keys of the model that the engine holds; () = none
    dropped: Callable[[Job], None] = lambda job: None  # told of each job that is ended early
    opened: list[ModelCard] = field(default_factory=list)  # in this session, the open one last
    # Cards of earlier openings of which one run gave the same numbers with the model open now.
    proven: list[ModelCard] = field(default_factory=list)

    def drop_job(self) -> Job | None:
        """End what has the engine; whatever it still says is stale."""
        job, self.job = self.job, None
        if job is not None:
            self.link.send(m.Cancel(run=job.run))
            self.store.set(status=Status(activity="idle"))
            self.dropped(job)
        return job

    def holds(self, trace: Trace) -> bool:
        """True if the engine holds the model of this trace, by its name and settings."""
        return model_key(trace.request) in self.loaded

    def can_continue(self, trace: Trace) -> bool:
        """True if the engine holds the very model that made this trace, opened then or proven."""
        return self.holds(trace) and self.same_model(trace)

    def same_model(self, trace: Trace) -> bool:
        """True if the model that is open made this trace, or gave its last step's numbers again.

        A name, a size or a hash of some blocks is no proof: what is written over a model's files
        keeps the first two, and may keep all three.  Only between openings of one session is the
        time of change believed, too.
        """
        card, of = self.store.state.card, trace.card
        if any(known is of for known in (card, *self.proven)):
            return True
        seen = any(known is of for known in self.opened)
        return card is not None and seen and card.fingerprint == of.fingerprint


def keys_of(request: RunRequest, card: ModelCard, trace: Trace | None) -> tuple[ModelKey, ...]:
    """The keys of a model that was opened for `request`; the last one fits the run on screen.

    The first one says how the model was opened, where it was asked for in its usual form.  A saved
    run names its model without the path by which the same files are opened here.
    """
    asked = model_key(request)
    key = asked._replace(form=cast(Form, card.form))
    keys = (key,) if asked == key else (key, asked, key)
    if trace is None or trace.request.model == key.model or trace.card.name != card.name:
        return keys
    same = same_weights(trace.card.fingerprint, card.fingerprint)
    return (*keys, key._replace(model=trace.request.model)) if same else keys


def with_key(request: RunRequest, key: ModelKey) -> RunRequest:
    """The request for the model of this key."""
    named = msgspec.structs.replace(request, **key._asdict())
    return without_strange(named, request)
