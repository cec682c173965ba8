"""A whole run: what was asked, what the model is, every token, every step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np

from explorer.trace import attention
from explorer.trace.attention import LayerRecord
from explorer.trace.card import ModelCard, SelfCheck
from explorer.trace.chat import ChatTurn
from explorer.trace.interventions.kinds import MOST_SOURCE, OtherRun
from explorer.trace.joined_keys import joined
from explorer.trace.request import RunRequest
from explorer.trace.step import Draw, Step, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Append-only: `appended` and `truncated` give new views, nothing is rewritten."""

    request: RunRequest
    card: ModelCard
    prompt: tuple[Token, ...]  # as fed, padding included, in slot order
    steps: tuple[Step, ...] = ()
    chosen: tuple[Token, ...] = ()  # chosen[i] was picked from steps[i]
    stop_reason: str = ""
    turns: tuple[ChatTurn, ...] = ()  # of the prompt, where it is a conversation
    self_check: SelfCheck = field(default_factory=SelfCheck)

    @property
    def model_name(self) -> str:
        """What the model goes by where its path says nothing: a path is of one machine."""
        asked, name = self.request.model, self.card.name
        is_path = asked != name and (set(asked) & {"/", "\\", "~"} or not asked.strip("."))
        return bare_name(name if is_path else asked)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every token in slot order; the last one chosen has not been read yet."""
        return self.prompt + self.chosen

    @property
    def reused_tokens(self) -> int:
        """Slots of the prompt that were in the cache of an earlier run, and not read again."""
        return self.steps[0].first_slot if self.steps else 0

    @property
    def chosen_ids(self) -> tuple[int, ...]:
        """Ids picked so far, one a step."""
        return tuple(token.id for token in self.chosen)

    @property
    def prompt_tokens(self) -> int:
        """Real prompt tokens, padding not counted."""
        return sum(token.origin != "padding" for token in self.prompt)

    def appended(self, step: Step, token: Token) -> Trace:
        """With one more step and the token picked from it."""
        return replace(
            self, steps=(*self.steps, step), chosen=(*self.chosen, token), stop_reason=""
        )

    def truncated(self, steps: int) -> Trace:
        """The first `steps` steps only; the arrays are shared."""
        return replace(self, steps=self.steps[:steps], chosen=self.chosen[:steps], stop_reason="")

    def forced(self, token: Token, draw: Draw) -> Trace:
        """With the last step's token replaced by the user's."""
        last = replace(self.steps[-1], draw=draw)
        return replace(
            self, steps=(*self.steps[:-1], last), chosen=(*self.chosen[:-1], token), stop_reason=""
        )

    def read_slots(self, step: int) -> int:
        """Slots that exist once step `step` has run: its K for a full-attention layer."""
        return self.steps[step].first_slot + self.steps[step].positions_processed

    def context_ids(self, step: int) -> tuple[int, ...]:
        """Ids that stand before the token picked by step `step`, padding left out."""
        prompt = (token.id for token in self.prompt if token.origin != "padding")
        return (*prompt, *(token.id for token in self.chosen[:step]))

    def record(self, step: int, layer: int) -> LayerRecord:
        """The attention record of one layer in one pass.  IndexError if there is none."""
        return self.steps[step].layers[layer]

    def keys(self, step: int, layer: int) -> np.ndarray:
        """(K, H_kv, d_h) in storage dtype: every key the kernel saw, older passes included."""
        this = self.steps[step]
        whole = joined(self.steps, this.keys_from, step, layer)
        first = this.layers[layer].first_key - self.first_kept(step, layer)
        return whole[max(first, 0) :]

    def first_kept(self, step: int, layer: int) -> int:
        """The slot of the first key that the passes of the run keep for this one.

        A prefill that read on from the cache of another run keeps keys of slots before its own.
        """
        return first_kept(self.steps[self.steps[step].keys_from], layer)

    def weights(
        self, step: int, layer: int, head: int, rows: slice = slice(None), *, masked: bool = True
    ) -> np.ndarray:
        """(rows, K) float32 weights of one head in one pass; ValueError with the reason if none."""
        record = self.record(step, layer)
        if record.kind != "qk":
            return attention.weights(record, np.empty(0), head, rows)
        return attention.weights(record, self.keys(step, layer), head, rows, masked=masked)


def first_kept(begin: Step, layer: int) -> int:
    """The slot of the first key that a layer keeps of the pass `begin`, a cache's first."""
    keys = begin.layers[layer].keys
    return (
        begin.first_slot
        + begin.positions_processed
        - (begin.positions_processed if keys is None else len(keys))
    )


def bare_name(name: str) -> str:
    """The last part of an absolute path, of any system; "organisation/model" is a name."""
    if not (PurePosixPath(name).is_absolute() or PureWindowsPath(name).is_absolute()):
        return name
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def source_of(trace: Trace) -> OtherRun:
    """What a patch can be taken from: all that a run has read; ValueError in words if it can't.

    The token chosen last has not been read, so it has no activations.
    """
    request = trace.request
    if not trace.steps:
        raise ValueError("This run has read nothing yet, so there is nothing to patch from.")
    if any(token.origin == "padding" for token in trace.prompt):
        raise ValueError("This run is padded. Patch from a run without padding.")
    if any(step.left_out for step in trace.steps):
        raise ValueError("Turns were left out of this run. Patch from a run that reads them all.")
    if request.context.moves_sinks:
        raise ValueError("This run counts distances in its cache. Patch from a run without.")
    if request.position_offset:
        raise ValueError(
            "This run's positions are moved. Patch from a run that begins at position 0."
        )
    slots = trace.read_slots(len(trace.steps) - 1)
    if slots > MOST_SOURCE:
        raise ValueError(
            f"This run has {slots:,} tokens. A patch is taken from at most {MOST_SOURCE:,}."
        )
    ids = tuple(token.id for token in trace.tokens[:slots])
    return OtherRun.of(ids, request.causal_mask, request.changes)
