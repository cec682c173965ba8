"""Experiments on a run: what is asked, and what is found; one request and one result for each.

What an engine answers is read by `read_result`: fields that are missing, of another type, out of
bounds or at odds with each other are a sentence, and nothing of them is drawn.
"""

from __future__ import annotations

from math import isfinite
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta

from explorer.trace.engine_request import Request
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy, PolicyName
from explorer.trace.request import RunRequest, Sampling

_MOST = 1 << 20  # entries of any list
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
AtLeastOne = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-6)]
Measure = Annotated[float, Meta(ge=0, le=1e39)]
Many = Meta(min_length=1, max_length=_MOST)
Some = Meta(max_length=_MOST)
Bytes = Annotated[bytes, Meta(max_length=1 << 24)]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what an experiment finds; it is whole, or was never made (ValueError)."""


class Experiment(Request, frozen=True, kw_only=True):
    """Base of what may be asked of a run; answered by Progress…, PartFacts…, Facts.

    The fields `chosen` and `sampling`, where there are any, are those of the step on screen.
    """

    RESULT: ClassVar[type[Result]]
    RUNNING: ClassVar[str]  # while it runs
    CANCELLED: ClassVar[str]  # once it was cancelled
    OF_PROMPT: ClassVar[bool] = False  # about the prompt alone, whatever was chosen after it
    OF_MODEL: ClassVar[bool] = False  # needs no prompt in the window, only its model
    IN_PARTS: ClassVar[bool] = False  # what is known of it so far is sent, and stays if cancelled

    request: RunRequest


R = TypeVar("R", bound=Result)


class UnfitAnswer(ValueError):
    """Why an engine's answer is no result, in one sentence; `details` for the log."""

    def __init__(self, details: str) -> None:
        super().__init__(
            "The engine's answer can't be shown: it is damaged, or of another version. Restart the "
            "engine and try again."
        )
        self.details = details


def read_result(found: object, kind: type[R]) -> R:
    """The answer to an experiment as its result; UnfitAnswer if it is none."""
    try:
        return msgspec.convert(found, kind)
    except (ValueError, TypeError, RecursionError) as error:  # also what __post_init__ refuses
        raise UnfitAnswer(f"{kind.__name__}: {error}") from error


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


# -- many draws


class DrawnToken(msgspec.Struct, frozen=True, kw_only=True):
    """One first token: how probable it is, and how often it was drawn."""

    id: Count
    raw: Bytes
    exact: Share  # after the sampling chain
    raw_probability: Share
    drawn: Count


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens that were drawn one after the other, and how often."""

    ids: Annotated[tuple[Count, ...], Many]
    raw: Bytes
    drawn: Count


class Draws(Result, frozen=True, kw_only=True):
    """The first `count` of the draws `asked` for, counted."""

    count: AtLeastOne
    asked: Count
    length: Count  # tokens a draw
    passes: Count
    distinct: Count
    first: Annotated[tuple[DrawnToken, ...], Some]
    continuations: Annotated[tuple[Continuation, ...], Some]  # the most frequent first

    def __post_init__(self) -> None:
        drawn = [one.drawn for one in self.first] + [one.drawn for one in self.continuations]
        _require(max(drawn, default=0) <= self.count, "more of one kind than draws")

    @property
    def miss(self) -> float | None:
        """Mean distance of share and probability over tokens expected at least once, if any."""
        likely = [one for one in self.first if one.exact * self.count >= 1]
        miss = [abs(one.drawn / self.count - one.exact) for one in likely]
        return sum(miss) / len(miss) if miss else None


class DrawMany(Experiment, frozen=True, kw_only=True):
    """Continue the same prefix `count` times by `length` tokens."""

    RESULT = Draws
    RUNNING = "Drawing…"
    CANCELLED = "Cancelled. The samples so far are kept."
    IN_PARTS = True

    chosen: tuple[int, ...] = ()
    count: int = 50
    length: int = 5
    sampling: Sampling = Sampling(greedy=False)


# -- the search for a better sequence


class FoundSequence(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens one after the other, with the model's own probability of all of them."""

    ids: Annotated[tuple[Count, ...], Many]
    raw: Annotated[tuple[Bytes, ...], Many]  # one entry a token
    log_probability: Annotated[float, Meta(ge=-1e6, le=1e-3)]  # nats
    probability: Share

    def __post_init__(self) -> None:
        _require(len(self.raw) == len(self.ids), "not one entry a token")

    @property
    def text(self) -> bytes:
        """All of its bytes."""
        return b"".join(self.raw)


class SearchResult(Result, frozen=True, kw_only=True):
    """The greedy sequence and the most probable one found."""

    length: Count
    width: Count
    passes: Count
    greedy: FoundSequence
    best: FoundSequence
    beats_greedy: bool
    proven: bool  # nothing of this length is more probable than `best`
    bound: Share  # else nothing exceeds this

    def __post_init__(self) -> None:
        _require(self.greedy.probability > 0, "a greedy sequence that can't be")


class SearchSequences(Experiment, frozen=True, kw_only=True):
    """Look for `length` tokens more probable than greedy's."""

    RESULT = SearchResult
    RUNNING = "Searching…"
    CANCELLED = "Cancelled: the search did not finish."

    chosen: tuple[int, ...] = ()
    length: int = 4
    width: int = 4  # of the beam
    passes: int = 200  # at most


# -- the last token dropped


class Shifts(msgspec.Struct, frozen=True, kw_only=True):
    """How far the earlier positions moved: the largest change, by the RMS of what changed."""

    layers: Annotated[tuple[Measure, ...], Many]  # one a decoder layer's output
    logits: Measure
    logits_abs: Measure  # the largest change itself

    @property
    def largest(self) -> float:
        return max(*self.layers, self.logits)


class PrefixShift(Result, frozen=True, kw_only=True):
    """The same tokens with and without the last one, under the mask and without it."""

    tokens: Count
    note: str
    why: str  # there is no `unmasked`
    masked: Shifts
    unmasked: Shifts | None

    def __post_init__(self) -> None:
        same = self.unmasked is None or len(self.unmasked.layers) == len(self.masked.layers)
        _require(same, "the two ways have different layers")


class PrefixExperiment(Experiment, frozen=True, kw_only=True):
    """Drop the last token, masked and unmasked: how far do earlier positions move?"""

    RESULT = PrefixShift
    RUNNING = "Removing the last token…"
    CANCELLED = "Cancelled: the test did not finish."

    chosen: tuple[int, ...] = ()


# -- the prompt, scored


class PromptScores(Result, frozen=True, kw_only=True):
    """Surprisal, entropy and rank of each prompt token but the first, without padding."""

    slots: Annotated[tuple[Count, ...], Some]
    nats: Annotated[tuple[Annotated[float, Meta(ge=-1e-3)], ...], Some]  # surprisal; inf = p is 0
    entropy_bits: Annotated[tuple[Annotated[float, Meta(ge=0, le=64)], ...], Some]
    ranks: Annotated[tuple[Count, ...], Some]
    top: Annotated[tuple[tuple[tuple[Count, Share], ...], ...], Some]  # (id, probability)
    passes: Count

    def __post_init__(self) -> None:
        others = (self.nats, self.entropy_bits, self.ranks, self.top)
        same = all(len(other) == len(self.slots) for other in others)
        _require(same, "not one entry a token in each list")


class ScorePrompt(Experiment, frozen=True, kw_only=True):
    """Surprisal, entropy and rank of each prompt token, without padding."""

    RESULT = PromptScores
    RUNNING = "Scoring the prompt…"
    CANCELLED = "Cancelled: the prompt was not scored."
    OF_PROMPT = True


# -- the cache, on and off


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One entry a step: slots run through the model, and the time that took."""

    positions: Annotated[tuple[Count, ...], Some]
    ms: Annotated[tuple[Annotated[float, Meta(ge=0, le=1e15)], ...], Some]


class CacheComparison(Result, frozen=True, kw_only=True):
    """The same greedy generation with and without the cache, step by step."""

    prompt: Count
    tokens: AtLeastOne
    ids: Annotated[tuple[Count, ...], Some]
    same_tokens: bool
    cached: Way
    uncached: Way

    def __post_init__(self) -> None:
        ways = (self.cached, self.uncached)
        lists = (self.ids, *(way.positions for way in ways), *(way.ms for way in ways))
        _require({len(one) for one in lists} == {self.tokens}, "not one entry a step")


class CacheExperiment(Experiment, frozen=True, kw_only=True):
    """The same greedy generation with the cache and without."""

    RESULT = CacheComparison
    RUNNING = "Generating with and without the cache…"
    CANCELLED = "Cancelled: the cache comparison did not finish."
    OF_PROMPT = True

    tokens: int = 20


# -- keys and values of one position


class HeadNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """(heads, width) numbers as little-endian float32 bytes."""

    heads: Count
    width: Count
    numbers: Bytes

    def __post_init__(self) -> None:
        _require(len(self.numbers) == 4 * self.heads * self.width, "not the numbers of its shape")


EVICTED = "evicted: the context policy keeps other tokens"
GONE = "this layer keeps only a window, and the position is outside it"
LEFT_OUT = "not in the cache: its turn was left out"


class LayerRead(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer keeps of a position, or the reason why it keeps nothing."""

    key: HeadNumbers | None = None
    value: HeadNumbers | None = None
    reason: str = ""


class PositionRead(Result, frozen=True, kw_only=True):
    """Keys and values of one slot, as the cache holds them; one entry a layer."""

    slot: Count
    layers: Annotated[tuple[LayerRead, ...], Meta(min_length=1, max_length=100_000)]


class ReadSlot(Experiment, frozen=True, kw_only=True):
    """Keys and values of one slot, as the cache holds them after `chosen`."""

    RESULT = PositionRead
    RUNNING = "Reading the cache…"
    CANCELLED = "Cancelled: the values were not read."

    chosen: tuple[int, ...] = ()
    slot: int = 0


# -- a list of prompts

MOST_PROMPTS = 1000


class ScoredPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt of a list: what the model would say next, and how well it foresaw the text.

    `answer`: the probability of the whole answer that was given with it, token after token; None
    where there was none, or `problem` says why it is not known.  0 tokens: it was not run.
    """

    prompt: str
    tokens: Count
    id: Count  # of the most likely next token
    raw: Bytes
    probability: Share
    mean_nats: Annotated[float, Meta(ge=-1e-3)] | None  # surprisal; None of one token
    answer: Share | None
    ms: Measure  # of the pass
    problem: str


class PromptTable(Result, frozen=True, kw_only=True):
    """The prompts of a list, in its order, as far as they were run."""

    asked: Count
    rows: Annotated[tuple[ScoredPrompt, ...], Meta(max_length=MOST_PROMPTS)]

    def __post_init__(self) -> None:
        _require(len(self.rows) <= self.asked, "more rows than prompts")


class ScorePrompts(Experiment, frozen=True, kw_only=True):
    """One pass over each prompt of a list, read as the next run would be: raw or as a chat.

    Each has an answer beside it, empty where there is none.
    """

    RESULT = PromptTable
    RUNNING = "Running the prompts…"
    CANCELLED = "Cancelled: the prompts after the last row were not run."
    OF_PROMPT = True
    IN_PARTS = True
    OF_MODEL = True

    prompts: Annotated[tuple[tuple[str, str], ...], Meta(max_length=MOST_PROMPTS)] = ()


# -- the inputs of a padded batch


InputVerdict = Literal["right", "attention_mask", "position_ids", "both", "neither"]
"""Which input is wrong: correcting it gives the row's own logits; neither: correcting does not."""
Ids = Annotated[tuple[Count, ...], Many]


class InputRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row as it was given, beside its tokens run alone."""

    verdict: InputVerdict
    readout: Count  # the last slot with a token: where the next one is to be read off
    attention_mask: Ids  # as it should be
    position_ids: Ids  # likewise
    first_wrong_mask: Count | None = None  # slot where the given one differs
    first_wrong_position: Count | None = None
    difference: Measure  # of the logits at `readout` from those of the row alone
    last_slot_difference: Measure  # of those at the last slot
    next_id: Count  # the most likely token at `readout`
    next_id_alone: Count


class InputsChecked(Result, frozen=True, kw_only=True):
    """Every row of a batch, and how far rounding alone may move logits."""

    rows: Annotated[tuple[InputRow, ...], Many]
    tolerance: Measure


class CheckInputs(Experiment, frozen=True, kw_only=True):
    """Are these the inputs that give each row the logits it has alone?  Rows of one length.

    Empty `attention_mask`: all ones; empty `position_ids`: none are passed.
    """

    RESULT = InputsChecked
    RUNNING = "Comparing each row with itself alone…"
    CANCELLED = "Cancelled: the inputs were not checked."
    OF_PROMPT = True

    input_ids: tuple[tuple[int, ...], ...] = ()
    attention_mask: tuple[tuple[int, ...], ...] = ()
    position_ids: tuple[tuple[int, ...], ...] = ()


# -- one text under two context policies


class PolicySide(msgspec.Struct, frozen=True, kw_only=True):
    """A text read under one policy."""

    name: PolicyName
    kept: Count  # tokens by the policy; 0 = the model's context
    sinks: Count
    distances: Literal["text", "cache"]
    nats: Annotated[tuple[Annotated[float, Meta(ge=-1e-3)], ...], Some]  # surprisal by token
    cache_bytes: Count  # measured on its tensors; 0 without a cache
    # Mean over layers, heads and tokens that attend; None where no map is exact.
    first_attention: Share | None

    @property
    def policy(self) -> ContextPolicy:
        """The one it was read under."""
        return ContextPolicy(
            name=self.name, tokens=self.kept, sinks=self.sinks, distances=self.distances
        )


class PolicyComparison(Result, frozen=True, kw_only=True):
    """The same tokens under two policies; surprisal of every token but the first."""

    tokens: Count
    slots: Annotated[tuple[Count, ...], Some]  # of the tokens that `nats` are of
    first_keys: Count  # how many first tokens `first_attention` is the attention to
    sides: tuple[PolicySide, PolicySide]

    def __post_init__(self) -> None:
        same = all(len(side.nats) == len(self.slots) for side in self.sides)
        _require(same, "not one entry a token on each side")

    def mean(self, side: int, begin: int) -> float | None:
        """Mean surprisal, in nats, of the tokens from slot `begin` on; None if there are none.

        Of those where it is finite: how many are not, `infinite` says.
        """
        some = [nats for nats in self._from(side, begin) if isfinite(nats)]
        return sum(some) / len(some) if some else None

    def infinite(self, side: int, begin: int) -> int:
        """How many tokens from slot `begin` on had a probability of 0."""
        return sum(not isfinite(nats) for nats in self._from(side, begin))

    def _from(self, side: int, begin: int) -> list[float]:
        pairs = zip(self.slots, self.sides[side].nats, strict=True)
        return [nats for slot, nats in pairs if slot >= begin]


class ComparePolicies(Experiment, frozen=True, kw_only=True):
    """Read the run's text so far under two context policies, each with a cache of its own."""

    RESULT = PolicyComparison
    RUNNING = "Reading the text under both policies…"
    CANCELLED = "Cancelled: the policies were not compared."

    chosen: tuple[int, ...] = ()
    policies: tuple[ContextPolicy, ContextPolicy] = (USUAL, USUAL)


AnyExperiment = (
    DrawMany
    | SearchSequences
    | PrefixExperiment
    | ScorePrompt
    | CacheExperiment
    | ReadSlot
    | ScorePrompts
    | CheckInputs
    | ComparePolicies
)
