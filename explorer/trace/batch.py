"""A padded batch: the request, and the results compared with each row run alone."""

from __future__ import annotations

from typing import Literal

import msgspec

from explorer.trace.request import Side
from explorer.trace.step import Token

Mistake = Literal["positions", "mask", "readout"]
Verdict = Literal["right", "wrong readout", "wrong positions", "wrong mask"]

MISTAKES: tuple[Mistake, ...] = ("readout", "positions", "mask")
MOST_ROWS = 16


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Several prompts in one pass, padded on one side to the same length."""

    prompts: tuple[str, ...]
    padding: Side = "left"
    extra: int = 0  # padding slots beyond what the longest prompt asks for
    steps: int = 1  # passes; the first is the prefill
    wrong: tuple[Mistake, ...] = ()
    """positions: none are passed; mask: all ones; readout: the last slot, whatever it holds."""
    loss: bool = False  # score every token of every row, too
    chat: bool = False  # each prompt is one user message, put through the chat template


class Ranked(msgspec.Struct, frozen=True):
    """One next token and its probability by the raw logits."""

    token: Token
    probability: float


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The next-token distribution read off one slot after the prefill."""

    slot: int
    top: tuple[Ranked, ...]
    max_abs_diff: float  # of its logits against those of the row run alone


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """How well the slot `slot` predicted the token in the slot after it."""

    slot: int
    nats: float  # surprisal of that token; NaN where the model gave no number
    rank: int  # 0 = the model's favourite
    top: tuple[Ranked, ...] = ()  # of real predictions only


class BatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the batch: what was fed and what was read, beside the row alone.

    A prediction is *real* if both the slot it is read off and the slot after it hold tokens of
    the prompt.
    """

    prompt: str
    tokens: tuple[Token, ...]  # (T,) padding included
    real: tuple[int, ...]  # (T,) 1 = a token of the prompt
    attention_mask: tuple[int, ...]  # (T,) as the model was given it
    position_ids: tuple[int, ...]  # (T,) slot numbers where none were passed
    readout: int  # slot that was read in this run
    last_real: int  # slot that should be read
    at_last_real: Reading
    at_last_slot: Reading  # logits[:, -1]
    alone: tuple[Ranked, ...]
    max_abs_diff_vs_alone: float  # at the slots that were read, over all steps
    step_diffs: tuple[float, ...]
    verdict: Verdict
    immune: bool = False  # a mistake was made, and this row does not show it
    effects: dict[Mistake, float] = {}  # each mistake by itself, at the prefill
    generated: tuple[Token, ...] = ()
    generated_alone: tuple[Token, ...] = ()
    scored: tuple[Scored, ...] = ()  # (T - 1,) predictions of the next slot, padding included
    unshifted_nats: tuple[float, ...] = ()  # (T,) of each slot's own token: labels not shifted
    alone_nats: tuple[float, ...] = ()  # the real predictions, from the row run alone


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that ran; T slots, B rows."""

    request: BatchRequest
    model: str
    pad: Token
    pad_note: str  # where the padding token comes from, in words
    tolerance: float  # largest difference in logits that counts as equal
    rows: tuple[BatchRow, ...]
    vocabulary: int = 0  # V; 0 = not stated
    decoded_apart: str = ""  # why rows went on each by itself after the prefill; empty = together

    @property
    def slots(self) -> int:
        """T: the length of every row after padding."""
        return len(self.rows[0].tokens)
