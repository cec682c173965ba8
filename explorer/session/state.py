"""Everything the window shows, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple

import msgspec

from explorer.figures.attention.atlas import Atlas
from explorer.lessons.scene import Scene
from explorer.session.branches import Branch, Branches, same_root
from explorer.session.selection import Selection, Shown, resolve
from explorer.trace.batch import BatchResult
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.chat import ChatParts, ChatTurn
from explorer.trace.comparison import Comparison, Of, made_for
from explorer.trace.cost.memory_bandwidth import Traffic
from explorer.trace.cost.model_plan import ModelPlan
from explorer.trace.cost.run_cost import Plan
from explorer.trace.experiments import Experiment, R, Result
from explorer.trace.files.saved_extras import SavedExtras
from explorer.trace.files.saved_view import SavedView
from explorer.trace.fingerprint import same_weights
from explorer.trace.found_models import Library, Offer, Recipe
from explorer.trace.request import CacheType, Dtype, Form, RunRequest, Sampling, Stops
from explorer.trace.step import Draw, Step, Token
from explorer.trace.trace import Trace
from explorer.trace.training.run import TrainingLab
from explorer.trace.vocabulary import Vocabulary

Reading = tuple[object, ...]
"""What decides a prompt's tokens: see `reading`."""
Company = Literal["", "linked", "free"]
Activity = Literal["starting", "idle", "loading", "running", "checking", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What the engine is doing, in words; fraction None = no known end."""

    activity: Activity = "starting"
    text: str = ""
    fraction: float | None = None
    experiment: type[Experiment] | None = None  # the one under way
    step_waits: bool = False  # for the model that is being opened
    released: bool = False  # lost: it was ended to free its memory, and `text` says why


@dataclass(frozen=True, slots=True)
class Fetching:
    """What is on its way from an engine on another machine; layer -1: pictures of all heads."""

    layer: int = -1
    heads: tuple[int, int] = (0, 0)  # the first and the last


@dataclass(frozen=True)
class Saved:
    """What was last written or opened, and where it is."""

    trace: Trace | None  # None = a batch alone
    path: str
    beside: SavedExtras = field(default_factory=SavedExtras)

    @cached_property
    def choices(self) -> frozenset[tuple[int, int]]:
        """Every choice of a token that the file holds."""
        siblings = (one.trace for one in self.beside.branches)
        traces = (trace for trace in (self.trace, *siblings) if trace is not None)
        return frozenset(_choice(step) for trace in traces for step in trace.steps)


@dataclass(frozen=True, slots=True)
class SceneMade:
    """What scenes made by themselves, and can make again at any time: it needs no saving."""

    draws: Mapping[int, Draw] = field(default_factory=dict)  # by identity, kept so that it lasts
    batch: BatchResult | None = None

    def chose(self, step: Step) -> bool:
        """True if a scene made this choice."""
        return id(step.draw) in self.draws

    def with_run(self, trace: Trace) -> SceneMade:
        """With every choice of a run; itself if it has them all."""
        new = {id(step.draw): step.draw for step in trace.steps if not self.chose(step)}
        return replace(self, draws={**self.draws, **new}) if new else self

    def with_batch(self, batch: BatchResult | None) -> SceneMade:
        """With this batch in place of an earlier one."""
        return self if batch is self.batch else replace(self, batch=batch)


def _choice(step: Step) -> tuple[int, int]:
    """Identities of what a step was chosen from and how; its records come and go."""
    return id(step.logits), id(step.draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The last step of a run, computed again by the model that is open now, came out otherwise."""

    card: ModelCard  # of the run
    same_files: bool  # the files are the same as far as they were compared
    apart: float  # largest difference of the logits; inf where they can't be compared
    limit: float  # what rounding explains
    token: Token  # that the step chose
    probability: float  # of it, by the recorded logits
    probability_now: float

    def fits(self, trace: Trace | None) -> bool:
        """True if it is about the run on screen."""
        return trace is not None and trace.card is self.card


@dataclass(frozen=True, slots=True)
class Measured(Generic[R]):
    """The result of an experiment on one prefix; `fits` says whether that is on screen."""

    request: RunRequest
    chosen: tuple[int, ...]  # tokens chosen before it
    sampling: Sampling
    result: R
    card: ModelCard | None = None  # of the run it was made for; None = any

    def fits(self, trace: Trace | None, index: int | None) -> bool:
        """True if step `index` of `trace` stands behind the same prefix, on the same model."""
        return (
            index is not None
            and trace is not None
            and self.request == trace.request
            and self.chosen == trace.chosen_ids[:index]
            and made_for(self.card, trace)
        )

    def fits_prompt(self, trace: Trace | None) -> bool:
        """True if `trace` begins with the same prompt on the same model; the cache may differ."""
        if trace is None or not made_for(self.card, trace):
            return False
        return msgspec.structs.replace(trace.request, cache=self.request.cache) == self.request


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an experiment failed on a run; one that nobody asked for is not shown."""

    request: RunRequest
    card: ModelCard
    sentence: str


@dataclass(frozen=True, slots=True)
class DownloadState:
    """One repository of the Hub, as far as it was asked about."""

    repo: str = ""
    stage: str = ""  # "", searching, looking, offered, fetching, done
    found: tuple[str, ...] | None = None  # repositories that a search found; None = no search
    text: str = ""  # what is being fetched
    fraction: float | None = None
    offer: Offer | None = None
    problem: str = ""  # one sentence
    target: str = ""  # what opens it, once it is there

    @property
    def busy(self) -> bool:
        return self.stage in ("searching", "looking", "fetching")


@dataclass(frozen=True, slots=True)
class CodeQuestion:
    """A model that opens only if its own program code may run."""

    model: str
    files: tuple[str, ...]
    refused: str  # the sentence to show if it may not


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneProgress:
    """A scene that is being put in place, or the last one that was."""

    scene: Scene
    words: str = ""  # what is being done now
    done: int = 0  # parts begun
    of: int = 1  # parts at most
    finished: bool = False  # it is in place: the view can be put back
    problem: str = ""  # why it is not, as one sentence

    @property
    def going(self) -> bool:
        """True until it is in place, or is known not to be."""
        return not (self.finished or self.problem)


@dataclass(frozen=True, slots=True)
class LessonPlace:
    """The lesson that is open, and its page."""

    name: str
    title: str
    page: int  # from 0
    pages: int


def reading(request: RunRequest) -> Reading:
    """What decides a prompt's tokens: model, text and how it is read, or a conversation."""
    return request.model, *request.source


class ModelKey(NamedTuple):
    """What must be loaded for a request: its fields of these names."""

    model: str
    dtype: Dtype
    device: str
    cache_type_k: CacheType
    gpu_layers: int
    form: Form


def model_key(request: RunRequest) -> ModelKey:
    """What must be loaded for this request."""
    return ModelKey(*(getattr(request, field) for field in ModelKey._fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Request + sampling + trace + selection + model card + status + error."""

    request: RunRequest = field(default_factory=RunRequest)
    sampling: Sampling = field(default_factory=Sampling)
    stops: Stops = field(default_factory=Stops)
    trace: Trace | None = None
    host: str = ""  # of an engine on another machine: that machine's name
    other_versions: str = ""  # of libraries there, as a sentence
    fetching: Fetching | None = None
    far_atlas: tuple[tuple[str, ...], Atlas] | None = None  # drawn there; names of its passes
    selection: Selection = field(default_factory=Selection)
    card: ModelCard | None = None  # None until a model is loaded (a trace carries its own)
    opened: tuple[ModelKey, ...] = ()  # how the model that `card` describes was asked for
    vocabulary: Vocabulary | None = None  # of the model that `card` describes
    recipe: Recipe | None = None  # of the model that `card` describes, once it was asked for
    recipe_problem: str = ""  # why there is none
    model_plan: ModelPlan | None = None  # the last one that was asked for, of whatever model
    model_plan_problem: str = ""
    planning: bool = False  # one is being worked out
    traffic: Traffic | None = None  # the machine's bound, for the model that `card` describes
    library: Library | None = None  # models found on the engine's disk
    finding: bool = False  # they are being looked for
    library_problem: str = ""
    unopened: str = ""  # the model that could not be opened, until one is opened again
    unopened_as: ModelKey | None = None  # how it was asked for
    no_room: bool = False  # because it does not fit into the memory that is free
    code_question: CodeQuestion | None = None  # to be answered before the model is opened
    download: DownloadState = field(default_factory=DownloadState)
    training: TrainingLab = field(default_factory=TrainingLab)
    branches: Branches = field(default_factory=Branches)
    branch_names: Mapping[int, str] = field(default_factory=dict)  # given by the user
    forgotten: frozenset[int] = frozenset()  # branches given up; undo brings them back
    undo_bytes: int = 0  # held by what can be undone or redone, and by nothing else
    reuse: bool = True  # a conversation goes on from the cache of the run before
    status: Status = field(default_factory=Status)
    error: str = ""  # one sentence with a next step; empty = none
    prompt_tokens: tuple[Token, ...] = ()  # live tokens of request.prompt
    prompt_parts: ChatParts | None = None  # of the live tokens, in a chat
    prompt_turns: tuple[ChatTurn, ...] = ()  # likewise
    chat_parts: Mapping[Reading, ChatParts] = field(default_factory=dict)  # of prompts read lately
    prompt_problem: str = ""
    prompt_note: str = ""  # what is worth knowing of the live tokens
    comparing: bool = False  # both sides of a comparison are wished for
    compare_of: Of = "mask"  # which
    comparison: Comparison | None = None  # the other side of the last step compared
    # Results of experiments by their type, the last of each: see `measured_of`.
    measured: Mapping[type[Result], Measured[Any] | None] = field(default_factory=dict)
    refused: Mapping[type[Experiment], Refusal] = field(default_factory=dict)  # the last of each
    scene: SceneProgress | None = None  # the last one that was asked for
    scene_made: SceneMade = field(default_factory=SceneMade)
    lesson: LessonPlace | None = None  # the one that is open
    batch: BatchResult | None = None  # the last padded batch, on the model that is open
    plan: Plan | None = None  # a large run waits for the user's word: go_on or drop_plan
    self_check: SelfCheck = field(default_factory=SelfCheck)
    painted: int = 0  # counts up when the display time of a step becomes known (stopwatch)
    company: Company = ""  # another session is shown beside this one: linked to it, or free
    saved: Saved | None = None
    drift: Drift | None = None  # a run that can't go on: look_only or run_again
    seen: SavedView | None = None  # how the session opened last was looked at when it was saved
    can_undo: bool = False
    can_redo: bool = False
    undo_kind: str = ""  # of act that undo takes back; empty = there is none
    redo_kind: str = ""
    undo_number: int = 0  # the same on both sides if that act was made on both; 0 = on this alone
    redo_number: int = 0

    @property
    def atlas_from_engine(self) -> Atlas | None:
        """Pictures of all heads of the step on screen, if its records are not here."""
        shown = self.shown
        if shown is None or self.far_atlas is None:
            return None
        kept, atlas = self.far_atlas
        return atlas if kept == tuple(one.kept_as for one in shown.passes) else None

    def measured_of(self, kind: type[R]) -> Measured[R] | None:
        """The last result of this type, whatever it was measured on."""
        return self.measured.get(kind)

    def result(self, kind: type[R]) -> R | None:
        """The last result of this type, if it is of the step on screen."""
        found = self.measured_of(kind)
        fits = found is not None and found.fits(self.trace, self.step_index)
        return found.result if found is not None and fits else None

    def result_of_prompt(self, kind: type[R]) -> R | None:
        """The same of a type that is about the prompt alone."""
        found = self.measured_of(kind)
        return found.result if found is not None and found.fits_prompt(self.trace) else None

    def refusal(self, kind: type[Experiment]) -> str:
        """Why the last experiment of this kind failed on the run on screen; "" if it didn't."""
        found, trace = self.refused.get(kind), self.trace
        if found is None or trace is None or found.request != trace.request:
            return ""
        return found.sentence if made_for(found.card, trace) else ""

    @property
    def step_index(self) -> int | None:
        """The selected step's index, or None if nothing has run."""
        if self.trace is None or not self.trace.steps:
            return None
        last = len(self.trace.steps) - 1
        return last if self.selection.step is None else min(self.selection.step, last)

    @property
    def shown(self) -> Shown | None:
        """What the selection means in the run on screen; None if nothing has run."""
        if self.trace is None or (step := self.step_index) is None:
            return None
        found = self.comparison
        wanted = found is not None and found.of == self.compare_of
        return resolve(self.trace, step, self.selection, found if wanted else None)

    @property
    def looks_back(self) -> bool:
        """True while an earlier step than the latest is selected."""
        index = self.step_index
        return index is not None and self.trace is not None and index < len(self.trace.steps) - 1

    @property
    def branch_point(self) -> int | None:
        """How many steps the branch shares that the next step begins; None if it begins none.

        One begins where an earlier step is selected and the sampling settings are not those of the
        latest step.
        """
        if self.trace is None or self.step_index is None or not self.looks_back:
            return None
        if self.request_changed or self.sampling == self.trace.steps[-1].sampling:
            return None
        return self.step_index + 1

    @property
    def reopens(self) -> bool:
        """True if a step opens a model first: the open one, or its dtype, is not asked for.

        So it is after a saved run was opened: its request is its own.
        """
        return bool(self.opened) and model_key(self.request) not in self.opened

    @property
    def other_model(self) -> bool:
        """True if a model is open, and the request is for another one."""
        return bool(self.opened) and self.request.model not in {key.model for key in self.opened}

    @property
    def next_card(self) -> ModelCard | None:
        """The card of the model that the next step uses; None if it is not known."""
        if not self.other_model:
            return self.card
        named = self.trace is not None and self.trace.request.model == self.request.model
        return self.trace.card if self.trace is not None and named else None

    @property
    def tree(self) -> tuple[Branch, ...]:
        """The branches beside the trace on screen, but those given up, by the names they go by."""
        if self.trace is None:
            return ()
        return tuple(
            replace(branch, name=self.branch_names.get(branch.number, branch.name))
            for branch in self.branches.beside(self.trace)
            if branch.number not in self.forgotten
        )

    @property
    def model_is_free(self) -> bool:
        """True if a model is open and does nothing that the user waits for."""
        return self.card is not None and self.status.activity in ("idle", "checking")

    @property
    def model_of_run(self) -> bool:
        """True if the open model made the trace on screen, and is open as it was then."""
        if self.trace is None or self.card is None:
            return False
        same = same_weights(self.card.fingerprint, self.trace.card.fingerprint)
        return same and model_key(self.trace.request) in self.opened

    @property
    def names(self) -> Vocabulary | None:
        """The vocabulary of the trace on screen, if its model is the one that is open."""
        if self.trace is None or self.card is None:
            return None
        same = same_weights(self.card.fingerprint, self.trace.card.fingerprint)
        return self.vocabulary if same else None

    @property
    def floor(self) -> Traffic | None:
        """The machine's bound for the model of the trace on screen, if that is open as it was."""
        if self.trace is None or self.card is None:
            return None
        here, there = self.card, self.trace.card
        same = all(getattr(here, name) == getattr(there, name) for name in _BOUND_BY)
        same = same and same_weights(here.fingerprint, there.fingerprint)
        return self.traffic if same else None

    @property
    def unsaved(self) -> bool:
        """True if the trace on screen, a branch of it or the last batch is in no file.

        What a scene made by itself is not counted.
        """
        runs = [] if self.trace is None else [self.trace, *(one.trace for one in self.tree)]
        # Traces only grow, and a choice that is changed makes another step: the last one tells.
        lasts = [run.steps[-1] for run in runs if run.steps]
        ends = [_choice(step) for step in lasts if not self.scene_made.chose(step)]
        new_batch = self.batch is not None and self.batch is not self.scene_made.batch
        if self.saved is None:
            return bool(ends) or new_batch
        new_batch = new_batch and self.batch is not self.saved.beside.batch
        return new_batch or not self.saved.choices.issuperset(ends)

    @property
    def file(self) -> str:
        """The file that what is on screen was saved to or opened from; empty if there is none."""
        if self.saved is None:
            return ""
        written = self.saved.trace
        same = self.trace is None or written is None or same_root(written, self.trace)
        return self.saved.path if same else ""

    @property
    def busy(self) -> bool:
        """True while a pass or a load is under way."""
        return self.status.activity in ("loading", "running")

    @property
    def request_changed(self) -> bool:
        """True if the trace on screen was made with another request than the one set now."""
        return self.trace is not None and self.trace.request != self.request


_BOUND_BY = ("dtype", "device")  # what a step reads, and from where
