"""Where tokens stand: slots, padding, attention mask, positions and readout, made in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from explorer.engine.errors import BadInput
from explorer.engine.passes.context.dropped_turns import oldest_turns
from explorer.engine.text.encoding import Encoded
from explorer.trace.chat import ChatTurn
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.request import RunRequest, Side
from explorer.trace.step import Origin, Token
from explorer.trace.wire.bounds import MOST_PADDING
from explorer.trace.wire.messages import Prompted


@dataclass(frozen=True, slots=True)
class Layout:
    """One sequence as it is fed, T slots long."""

    ids: tuple[int, ...]
    attention_mask: tuple[int, ...]  # 1 = a real token, 0 = padding
    position_ids: tuple[int, ...]  # cumsum(mask) - 1 + offset; 0 at padding
    offset: int = 0
    whole: Layout | None = None  # the run's slots, where turns were left out of them
    places: tuple[int, ...] = ()  # (T,) which of those these are; empty = all
    begins: int = 0  # index of the step that reads them first

    @property
    def readout(self) -> int:
        """The last slot that holds a real token: where the next token is read off."""
        slot = len(self.attention_mask) - 1
        while not self.attention_mask[slot]:
            slot -= 1
        return slot

    def first(self, slots: int) -> Layout:
        """The first `slots` slots alone."""
        return replace(
            self,
            ids=self.ids[:slots],
            attention_mask=self.attention_mask[:slots],
            position_ids=self.position_ids[:slots],
            places=self.places[:slots],
        )

    def without(self, first: int, end: int, begins: int) -> Layout:
        """Without the slots `first` to `end`, from step `begins` on; positions are counted anew."""
        places = (*range(first), *range(end, len(self.ids)))
        mask = tuple(self.attention_mask[slot] for slot in places)
        ids = tuple(self.ids[slot] for slot in places)
        counted = positions(mask, self.offset)
        return Layout(ids, mask, counted, self.offset, self, places, begins)

    @property
    def before_gap(self) -> int:
        """How many slots stand before those that were left out."""
        gaps = (i for i, place in enumerate(self.places) if place != i)
        return next(gaps, len(self.ids))

    def place(self, slot: int) -> int:
        """Where one of these slots stands in the run; the slot after the last as well."""
        if not self.places:
            return slot
        return self.places[slot] if slot < len(self.places) else self.places[-1] + 1

    def grown(self, token_id: int, real: bool = True) -> Layout:
        """With one more slot, for the next token or for padding."""
        position = sum(self.attention_mask) + self.offset if real else 0
        return replace(
            self,
            ids=(*self.ids, token_id),
            attention_mask=(*self.attention_mask, int(real)),
            position_ids=(*self.position_ids, position),
        )

    def followed_by(self, chosen: Sequence[int]) -> Layout:
        """With one more slot for each of the tokens chosen so far."""
        if not chosen:
            return self
        seen, count = sum(self.attention_mask) + self.offset, len(chosen)
        return replace(
            self,
            ids=(*self.ids, *chosen),
            attention_mask=(*self.attention_mask, *[1] * count),
            position_ids=(*self.position_ids, *range(seen, seen + count)),
        )

    @property
    def padded(self) -> bool:
        """True if any slot is padding."""
        return not all(self.attention_mask)

    def real_ids(self) -> list[int]:
        """Every id but the padding's: what a repetition penalty looks at."""
        return [i for i, real in zip(self.ids, self.attention_mask, strict=True) if real]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it is fed: laid out once, and handed down."""

    request: RunRequest
    tokens: tuple[Token, ...]  # padding included, in slot order
    layout: Layout
    turns: tuple[ChatTurn, ...] = ()  # of a conversation
    note: str = ""  # what is worth knowing of its tokens
    oldest: tuple[tuple[int, int], ...] = ()  # slots of turns that may be left out later

    def event(self, run: int) -> Prompted:
        """What is said of it before the first pass of that run."""
        return Prompted(run=run, tokens=self.tokens, turns=self.turns, note=self.note)

    def asked_as(self, request: RunRequest) -> Prompt:
        """The same text and padding in a request that differs in something else."""
        return self if request is self.request else replace(self, request=request)


def lay_out_prompt(
    encoded: Encoded,
    request: RunRequest,
    pad_id: int | None,
    token: Callable[[int, Origin], Token],
) -> Prompt:
    """The prompt's tokens with the padding asked for; `token` spells the padding's id.

    BadInput as of `lay_out`.
    """
    layout = lay_out([one.id for one in encoded.tokens], (), request, pad_id)
    real = iter(encoded.tokens)
    slots = zip(layout.ids, layout.attention_mask, strict=True)
    fed = tuple(next(real) if valid else token(i, "padding") for i, valid in slots)
    moved = layout.attention_mask.index(1)
    turns = tuple(turn.moved(moved) for turn in encoded.turns)
    note = " ".join(filter(None, (encoded.problem, encoded.note)))
    drops = request.context.name == "drop-turns" and not layout.padded
    oldest = oldest_turns(request.messages, turns) if drops else ()
    return Prompt(request, fed, layout, turns, note, oldest)


def lay_out(
    prompt_ids: Sequence[int], chosen: Sequence[int], request: RunRequest, pad_id: int | None
) -> Layout:
    """The prompt with its padding, then the tokens chosen so far.

    BadInput if there is no real token, or padding is asked for and no pad token is known.
    """
    if not prompt_ids:
        raise BadInput("The prompt is empty. Type at least one character, then run again.")
    pads = request.pad if request.padding else 0
    require_padding(pads)
    if pads and pad_id is None:
        raise BadInput("This model defines no padding token. Run it without padding.")
    filler = [pad_id or 0] * pads
    zeros, ones = [0] * pads, [1] * len(prompt_ids)
    if request.padding == "right":
        ids, mask = [*prompt_ids, *filler], ones + zeros
    else:
        ids, mask = [*filler, *prompt_ids], zeros + ones
    mask = mask + [1] * len(chosen)
    offset = request.position_offset
    return Layout((*ids, *chosen), tuple(mask), positions(mask, offset), offset)


@dataclass(frozen=True, slots=True)
class BatchLayout:
    """Rows of one length, each with a mask, positions and readout of its own."""

    rows: tuple[Layout, ...]
    pad_id: int

    @property
    def slots(self) -> int:
        """The length of every row."""
        return len(self.rows[0].ids)

    @property
    def readouts(self) -> tuple[int, ...]:
        """Per row: the last slot that holds a real token."""
        return tuple(row.readout for row in self.rows)

    def grown(self, chosen: Sequence[int | None]) -> BatchLayout:
        """With the next token of each row; None = this row has ended and gets padding."""
        rows = (
            row.grown(self.pad_id if token_id is None else token_id, token_id is not None)
            for row, token_id in zip(self.rows, chosen, strict=True)
        )
        return BatchLayout(tuple(rows), self.pad_id)


def lay_out_batch(
    prompts: Sequence[Sequence[int]], side: Side, extra: int, pad_id: int
) -> BatchLayout:
    """Every prompt padded on one side to the longest and `extra` slots more.

    BadInput naming the row if one has no tokens.
    """
    empty = next((row for row, ids in enumerate(prompts, 1) if not ids), None)
    if empty is not None:
        raise BadInput(f"Prompt {empty} has no tokens. Type some text there.")
    require_padding(extra)
    slots = max(len(ids) for ids in prompts) + extra
    rows = (
        lay_out(ids, (), RunRequest(padding=side, pad=slots - len(ids)), pad_id) for ids in prompts
    )
    return BatchLayout(tuple(rows), pad_id)


def require_padding(slots: int) -> None:
    """BadInput for more padding than any model reads; asked before a list so long is made."""
    if slots > MOST_PADDING:
        raise BadInput(f"{slots:,} padding tokens are too many. The maximum is {MOST_PADDING:,}.")


def positions(mask: Sequence[int], offset: int = 0) -> tuple[int, ...]:
    """cumsum(mask) - 1 + offset for real tokens; a legal 0 at padding."""
    result, seen = [], offset
    for real in mask:
        seen += real
        result.append(seen - 1 if real else 0)
    return tuple(result)


def require_ids(ids: Iterable[int], width: int) -> None:
    """BadInput for a token that a model of `width` ids has not: tokenizers may know more."""
    wrong = next((i for i in ids if not 0 <= i < width), None)
    if wrong is not None:
        raise BadInput(f"There is no token {wrong}: this model's ids end at {width - 1}.")


def require_context(layout: Layout, context: int, policy: ContextPolicy) -> None:
    """BadInput if a sequence takes more positions than the model reads, or more tokens than a run.

    A context of 0 is not known.
    """
    slots = len(layout.ids)
    context = 0 if policy.moves_sinks else context
    if context and slots + layout.offset > context:
        after = f" after {layout.offset:,}" if layout.offset else ""
        raise BadInput(
            f"The prompt takes {slots:,} positions{after}, but this model reads at most "
            f"{context:,}. Shorten it."
        )
    limit = policy.limit(0)
    if limit and slots > limit:
        raise BadInput(
            f"The text takes {slots:,} tokens, and the limit of this run is {limit:,}. Shorten "
            "it, or choose another context policy."
        )


def chosen_slots(layout: Layout, asked: Sequence[int]) -> tuple[int, ...]:
    """The slots asked for, in order; every real token if none are named.  BadInput beyond them."""
    if not asked:
        return tuple(slot for slot, real in enumerate(layout.attention_mask) if real)
    for slot in asked:
        if not 0 <= slot < len(layout.ids):
            raise BadInput(
                f"There is no position {slot}. The run has {len(layout.ids):,} so far, counted "
                "from 0."
            )
    return tuple(sorted(set(asked)))
