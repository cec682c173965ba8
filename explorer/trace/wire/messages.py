"""What the engine is asked and what it answers; plain data, the same in one process or two.

The engine keeps no run state that matters: every `Advance` names the whole context, and the cache
is only used as far as it holds a prefix of it.  So stepping back, branching and starting a new
engine after a crash are all the same request.
"""

from __future__ import annotations

from typing import Any

import msgspec

from explorer.trace.attention import LayerRecord
from explorer.trace.batch import BatchRequest, BatchResult
from explorer.trace.card import Check, ModelCard
from explorer.trace.chat import ChatParts, ChatTurn
from explorer.trace.cost.run_cost import Plan
from explorer.trace.engine_request import Request
from explorer.trace.experiments import AnyExperiment
from explorer.trace.inside.questions import AnyInside
from explorer.trace.request import CacheType, Form, RunRequest, Sampling, Stops
from explorer.trace.step import Step, Token
from explorer.trace.training.job import FindTrainings, SaveTrained, SteerTraining, Train
from explorer.trace.vocabulary import Vocabulary

PROTOCOL = 1
ALIVE_SECONDS = 5.0  # an engine says at least this often that it is there
HEARS_CLIENT = "client-alive"  # a feature of an engine: it takes ClientAlive
KEEPS_RECORDS = "keeps-records"  # another: it takes SendRecords, SendAtlas and `keep_bytes`


class Load(Request, frozen=True, kw_only=True):
    """Open a model; answered by Progress…, Loaded or Failed."""

    model: str
    dtype: str = "float32"
    device: str = "cpu"
    cache_type_k: CacheType = "f16"  # of a .gguf file that is opened as it is
    gpu_layers: int = 0  # of such a file
    form: Form = ""  # of a .gguf file
    threads: int = 0  # 0 = max(1, cores - 1)
    allow_code: bool = False  # the user said yes to the model's own program code, this once
    test_again: bool = False  # even if what works on this model is known from an earlier time
    keep: bool = False  # answer at once if this very model is loaded still
    anew: bool = False  # the user asks for it: even if llama.cpp has crashed on this file
    # Fingerprint of the run that is to go on: of several models of this name, this one.
    like: dict[str, Any] = msgspec.field(default_factory=dict)


class Tokenize(Request, frozen=True, kw_only=True):
    """The tokens of a run's prompt; answered by Tokens, also while a pass is running."""

    request: RunRequest


class Advance(Request, frozen=True, kw_only=True):
    """Run `steps` passes after `chosen`; answered by Planned, Prompted, Stepped…, Finished."""

    request: RunRequest
    chosen: tuple[int, ...] = ()
    steps: int = 1
    sampling: Sampling = Sampling()
    stops: Stops = Stops()
    ask_first: bool = False  # end with "plan" before a large run, having said Planned
    reuse: bool = False  # of a prompt that begins as the last one did, read the rest alone
    keep_bytes: int = 0  # queries and keys that the engine keeps until asked; 0: it sends them all


class Resample(Request, frozen=True, kw_only=True):
    """New sampling for the passes still to come of the Advance with this run number."""

    sampling: Sampling


class Recapture(Request, frozen=True, kw_only=True):
    """Run the pass after `chosen` again to record Q and K; answered by Stepped, Finished."""

    request: RunRequest
    chosen: tuple[int, ...]
    keep_bytes: int = 0  # as of Advance


class SendRecords(Request, frozen=True, kw_only=True):
    """One group of heads of one layer, of passes that the engine keeps; Records…, Finished.

    Answered beside whatever the engine runs.
    """

    kept: tuple[str, ...]
    layer: int
    group: int


class SendAtlas(Request, frozen=True, kw_only=True):
    """The small picture of every head, of passes that the engine keeps, the run's first to last.

    Answered by Progress…, Thumbnails; by Finished("gone") if it keeps one of them no longer.
    """

    kept: tuple[str, ...]


class CheckTrace(Request, frozen=True, kw_only=True):
    """Self-check of a run; answered by Checked…, Finished."""

    request: RunRequest
    chosen: tuple[int, ...] = ()


class RunBatch(Request, frozen=True, kw_only=True):
    """Run padded prompts together and each alone; answered by Progress…, Batched."""

    batch: BatchRequest


class ListVocabulary(Request, frozen=True, kw_only=True):
    """The bytes of every id of the loaded model; answered by Spelled."""


class MeasureTraffic(Request, frozen=True, kw_only=True):
    """The machine's memory-traffic bound, for the loaded model; Facts: fields of `Traffic`."""


class Inspect(Request, frozen=True, kw_only=True):
    """Facts of a model from its config alone; answered by Facts, also during a run."""

    model: str


class PlanModel(Request, frozen=True, kw_only=True):
    """What a model takes, from its config alone; Facts: fields of `ModelPlan`, also during a run.

    `model` may be a config.json file that has no weights beside it.
    """

    model: str
    tokens: int
    batch: int = 1
    dtype: str = "float32"
    gpus: int = 0  # 0 = this machine
    gpu_memory: int = 0  # bytes of each; 0 = not stated
    bytes_per_second: float = 0.0  # memory bandwidth of a device; 0 = not stated


class Bench(Request, frozen=True, kw_only=True):
    """Time the loaded model watched and unwatched; answered by Progress…, Facts."""


class FindModels(Request, frozen=True, kw_only=True):
    """Local models; answered by Facts with the fields of `found_models.Library`, also during a run.

    What is asked of the places where they lie is done first.
    """

    add_folder: str = ""
    remove_folder: str = ""
    clear_conversions: bool = False


class SearchHub(Request, frozen=True, kw_only=True):
    """Repositories of text models by a part of their name; answered by Facts: repos [str]."""

    repo: str


class LookOnHub(Request, frozen=True, kw_only=True):
    """What a download would fetch; answered by Facts with the fields of `found_models.Offer`."""

    repo: str
    form: str = ""  # one of the offer's; empty = the first


class Download(Request, frozen=True, kw_only=True):
    """Fetch a model from the Hub; answered by Progress…, Facts, also during a run."""

    repo: str
    form: str = ""  # one of the offer's; empty = the first


class Cancel(Request, frozen=True, kw_only=True):
    """End the run of this number within one layer's time; it answers Finished("cancelled")."""


class ClientAlive(Request, frozen=True, kw_only=True):
    """The client is there; an engine that hears nothing for `seconds` from now on ends itself.

    Sent every few seconds to an engine on another machine that has HEARS_CLIENT among its features:
    a line that is lost in between need not end for it.
    """

    seconds: float


class Quit(Request, frozen=True, kw_only=True):
    """Leave the process."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of what the engine says."""

    run: int = 0


class Hello(Event, frozen=True, kw_only=True):
    """First frame of a connection."""

    protocol: int = PROTOCOL
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    host: str = ""  # name of the machine; older engines do not say it
    features: tuple[str, ...] = ()  # what not every engine of this protocol does


class Alive(Event, frozen=True, kw_only=True):
    """Sent every few seconds whatever the engine does: a long load or pass is not a stall."""


class Progress(Event, frozen=True, kw_only=True):
    """What is being done, and how far (0..1, None = not known)."""

    text: str
    fraction: float | None = None

    def __post_init__(self) -> None:
        """A little beyond the ends is rounding; ValueError for what is no share at all."""
        if self.fraction is None or 0 <= self.fraction <= 1:
            return
        if not -1 <= self.fraction <= 2:
            raise ValueError(f"a progress of {self.fraction} is no share")
        msgspec.structs.force_setattr(self, "fraction", min(max(self.fraction, 0.0), 1.0))


class Loaded(Event, frozen=True, kw_only=True):
    card: ModelCard


class Tokens(Event, frozen=True, kw_only=True):
    """The tokens of a text typed in the prompt, and what is wrong with it, if anything."""

    text: str
    tokens: tuple[Token, ...]
    problem: str = ""  # one sentence: bytes that the vocabulary cannot spell, …
    note: str = ""  # sentences worth knowing, where nothing is wrong
    parts: ChatParts | None = None  # of a chat prompt
    turns: tuple[ChatTurn, ...] = ()  # of a conversation


class Prompted(Event, frozen=True, kw_only=True):
    """The prompt as it is fed, padding included, before the first pass."""

    tokens: tuple[Token, ...]
    turns: tuple[ChatTurn, ...] = ()  # of a conversation
    note: str = ""  # sentences worth knowing about the tokens


class Planned(Event, frozen=True, kw_only=True):
    """Before the first pass of a large run: what it will take."""

    plan: Plan


class Stepped(Event, frozen=True, kw_only=True):
    """One pass is done; `step` travels as a header and arrays (see `packing`)."""

    step: Step
    token: Token


class Records(Event, frozen=True, kw_only=True):
    """A part of what the engine keeps of one pass; None: it keeps that pass no longer."""

    kept: str
    layer: int
    group: int
    record: LayerRecord | None


class Thumbnails(Event, frozen=True, kw_only=True):
    """Small pictures of all heads; see `figures.attention.atlas`."""

    shape: tuple[int, int, int, int]  # of the levels: layers, heads, rows, columns
    heads: tuple[int, ...]
    reasons: tuple[str, ...]
    slots: int
    stride: int
    levels: bytes  # uint16, C order, by zlib


class Checked(Event, frozen=True, kw_only=True):
    check: Check


class Batched(Event, frozen=True, kw_only=True):
    result: BatchResult


class Facts(Event, frozen=True, kw_only=True):
    """What was asked for, by its fields; of an experiment those of its result."""

    facts: dict[str, Any]


class PartFacts(Event, frozen=True, kw_only=True):
    """What is known so far, true by itself; Facts will follow."""

    facts: dict[str, Any]


class Spelled(Event, frozen=True, kw_only=True):
    """The whole vocabulary; travels as arrays."""

    vocabulary: Vocabulary


class Finished(Event, frozen=True, kw_only=True):
    """Done; of Advance, why: steps, end token, stop string, length, context, cancelled, plan."""

    reason: str = ""


class Failed(Event, frozen=True, kw_only=True):
    """One sentence with a next step; `bad_input` is the user's to mend."""

    sentence: str
    bad_input: bool = True
    details: str = ""  # for the log
    own_code: tuple[str, ...] = ()  # files that the model wants to run: Load must allow it
    files_changed: bool = False  # the open model's weight files were written since: Load it again
    no_room: bool = False  # the model to be opened does not fit into the memory that is free


class Lost(Event, frozen=True, kw_only=True):
    """The engine's process is gone (made by the client, never sent)."""

    sentence: str
    unreadable: bool = False  # it was there, and its answers were none


ENDS = (
    Finished,
    Failed,
    Loaded,
    Facts,
    Batched,
    Tokens,
    Spelled,
    Thumbnails,
)  # the last answer to a request


AnyRequest = (
    Load
    | Tokenize
    | Advance
    | Resample
    | Recapture
    | SendRecords
    | SendAtlas
    | CheckTrace
    | AnyExperiment
    | AnyInside
    | ListVocabulary
    | RunBatch
    | MeasureTraffic
    | Bench
    | Inspect
    | PlanModel
    | FindModels
    | SearchHub
    | LookOnHub
    | Download
    | Train
    | SteerTraining
    | SaveTrained
    | FindTrainings
    | Cancel
    | ClientAlive
    | Quit
)
