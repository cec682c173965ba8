"""A padded batch decoded step by step, and its rows by themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.experiments.loss import nats
from explorer.engine.experiments.padded.batch_pass import BatchPass
from explorer.engine.passes.layout import BatchLayout, Layout
from explorer.trace.batch import BatchRequest, Mistake
from explorer.trace.card import ModelCard

APART = (
    "This architecture can't decode exactly with right padding, so each row continued "
    "alone after the prefill."
)


@dataclass(slots=True)
class Decoded:
    """What a run of the batch gave."""

    prefill: np.ndarray  # (B, n, V) at `Steps.slots`
    read: list[list[np.ndarray]]  # per row and step: the logits (V,) that a token was picked from
    tokens: list[list[int]]  # per row: those tokens
    apart: str = ""

    @property
    def bytes(self) -> int:
        return self.prefill.nbytes + sum(one.nbytes for row in self.read for one in row)


@dataclass(frozen=True, slots=True)
class Alone:
    """What a row gives by itself."""

    logits: np.ndarray  # (steps, V), read where the batch was read
    nats: tuple[float, ...]  # surprisal of each of its tokens but the first; empty if not asked

    @property
    def bytes(self) -> int:
        return self.logits.nbytes + 8 * len(self.nats)


@dataclass(slots=True)
class Steps:
    """Prefill and decode of one batch, greedily."""

    request: BatchRequest
    card: ModelCard
    passes: BatchPass
    layout: BatchLayout
    tell: Callable[[str], None]  # what is being done, once a pass

    @property
    def slots(self) -> list[int]:
        """Where logits are taken in a prefill: each row's last token, and the last slot."""
        return sorted({*self.layout.readouts, self.layout.slots - 1})

    def at(self, prefill: np.ndarray, row: int, slot: int) -> np.ndarray:
        """(V,) logits of one slot out of a prefill."""
        return np.asarray(prefill[row, self.slots.index(slot)])

    def read_slot(self, row: int) -> int:
        """The slot that this request reads after the prefill."""
        last = self.layout.slots - 1
        return last if "readout" in self.request.wrong else self.layout.rows[row].readout

    def prefill(self, wrong: Collection[Mistake], cache: object = None) -> np.ndarray:
        """(B, n, V) at `slots`."""
        self.tell("Running the batch")
        return self.passes.logits(self.layout, self.slots, wrong, cache)

    def decode(
        self, wrong: Collection[Mistake], together: bool, prefill: np.ndarray | None = None
    ) -> Decoded:
        """All steps; `together` = the batch goes on as one, else each row by itself.

        `prefill` is what the first step gives, where that is known and no cache has to be filled.
        """
        cache = self.passes.cache() if self.request.steps > 1 and together else None
        if prefill is None or cache is not None:
            prefill = self.prefill(wrong, cache)
        rows = range(len(self.layout.rows))
        first = [self.at(prefill, row, self.read_slot(row)) for row in rows]
        decoded = Decoded(
            prefill, [[logits] for logits in first], [[int(logits.argmax())] for logits in first]
        )
        if together:
            self._go_on(self.layout, rows, decoded, wrong, cache)
        elif self.request.steps > 1:
            decoded.apart = APART
            for row in rows:
                self._go_on(self.row_alone(row), [row], decoded, (), None)
        return decoded

    def _go_on(
        self,
        layout: BatchLayout,
        rows: Sequence[int],
        decoded: Decoded,
        wrong: Collection[Mistake],
        cache: object,
    ) -> None:
        """Steps after the prefill; a row that gave an end token gets padding from then on."""
        for _ in range(1, self.request.steps):
            last = [decoded.tokens[row][-1] for row in rows]
            going = [token_id not in self.card.eos_ids for token_id in last]
            if not any(going) or (self.card.context and layout.slots >= self.card.context):
                return
            self.tell("Decoding")
            layout = layout.grown([i if on else None for i, on in zip(last, going, strict=True)])
            first = 0 if cache is None else layout.slots - 1
            logits = self.passes.logits(layout, [layout.slots - 1], wrong, cache, first)[:, 0]
            for row, on, mine in zip(rows, going, logits, strict=True):
                if on:
                    decoded.read[row].append(mine)
                    decoded.tokens[row].append(int(mine.argmax()))

    def row_alone(self, row: int, *more: int) -> BatchLayout:
        """A batch of this row's tokens and nothing else, `more` after them."""
        whole = self.layout.rows[row]
        real = (i for i, m in zip(whole.ids, whole.attention_mask, strict=True) if m)
        ids = (*real, *more)
        alone = Layout(ids, (1,) * len(ids), tuple(range(len(ids))))
        return BatchLayout((alone,), self.layout.pad_id)

    def alone(self, row: int, generated: Sequence[int]) -> Alone:
        """The row by itself in one pass, fed the tokens that the batch picked."""
        self.tell("Running each row alone")
        layout = self.row_alone(row, *generated[:-1])
        ids, last = layout.rows[0].ids, layout.slots - len(generated)  # the prompt's last slot
        read: list[np.ndarray] = []
        scored: list[float] = []
        first = 0 if self.request.loss else last
        for slots, logits in self.passes.in_spans(layout, range(first, layout.slots)):
            read += [mine for slot, mine in zip(slots, logits[0], strict=True) if slot >= last]
            targets = [ids[slot + 1] for slot in slots if slot < last]
            if targets:
                scored += nats(logits[0][: len(targets)], targets).tolist()
        return Alone(np.stack(read), tuple(scored))

    def continued_alone(
        self, row: int, generated: Sequence[int], alone: np.ndarray
    ) -> tuple[int, ...]:
        """What the row by itself goes on with, for as many steps as were asked for."""
        picked = [int(i) for i in alone.argmax(axis=-1)]
        pairs = enumerate(zip(picked, generated, strict=True))
        same = next((i for i, (mine, batch) in pairs if mine != batch), None)
        if same is None:
            return tuple(generated)
        tokens = [*generated[:same], picked[same]]
        while len(tokens) < self.request.steps and tokens[-1] not in self.card.eos_ids:
            layout = self.row_alone(row, *tokens)
            if self.card.context and layout.slots > self.card.context:
                break
            tokens.append(int(self.passes.logits(layout, [layout.slots - 1])[0, 0].argmax()))
        return tuple(tokens)
