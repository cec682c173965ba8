"""A padded batch compared with each row run alone, correct and with deliberate mistakes.

The reference of a row is the row by itself: no padding, no cache, the same tokens.  What a mistake
does is measured on the model at hand, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, EngineError
from explorer.engine.experiments.loss import Scores, ranked, score
from explorer.engine.experiments.padded.batch_cache import ResultCache
from explorer.engine.experiments.padded.batch_decode import Alone, Decoded, Steps
from explorer.engine.experiments.padded.batch_pass import BatchPass
from explorer.engine.passes.layout import BatchLayout, lay_out_batch
from explorer.engine.passes.runner import Runner
from explorer.trace.batch import (
    MISTAKES,
    MOST_ROWS,
    BatchRequest,
    BatchResult,
    BatchRow,
    Mistake,
    Ranked,
    Reading,
    Verdict,
)
from explorer.trace.card import ModelCard
from explorer.trace.request import Side
from explorer.trace.rounding import logit_tolerance
from explorer.trace.step import Token

TOP = 10
Fed = frozenset[Mistake]  # the mistakes that change what is fed: positions, mask
_RIGHT: Fed = frozenset()
_VERDICTS: dict[Mistake, Verdict] = {
    "readout": "wrong readout",
    "positions": "wrong positions",
    "mask": "wrong mask",
}
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


def run(
    runner: Runner,
    request: BatchRequest,
    progress: Report,
    cancelled: Stop,
    memory: ResultCache | None = None,
) -> BatchResult:
    """Everything there is to say of this batch; `memory` is that of earlier ones on this model.

    BadInput for prompts or padding that can't be, EngineError if the model fails, Cancelled.
    """
    layout, tokens = _laid_out(runner, request)
    told = 0
    whole = 3 + request.steps + len(layout.rows) + request.loss

    def tell(words: str) -> None:
        nonlocal told
        progress(words, min(1.0, told / whole))
        told += 1

    steps = Steps(request, runner.loaded.card, BatchPass(runner, cancelled), layout, tell)
    return _Lab(runner, request, steps, tokens, memory or ResultCache()).result()


def padding_of(card: ModelCard) -> tuple[int, str]:
    """The id to pad with, and where it comes from, in words."""
    if card.pad_id is not None:
        return card.pad_id, card.pad_note
    if card.eos_ids:
        return card.eos_ids[0], "The model defines no padding token, so the end token is used."
    return 0, "The model defines no padding token, so id 0 is used."


def _laid_out(runner: Runner, request: BatchRequest) -> tuple[BatchLayout, list[tuple[Token, ...]]]:
    """The padded rows, and each prompt's tokens; BadInput for what can't run."""
    card = runner.loaded.card
    if not 1 <= len(request.prompts) <= MOST_ROWS:
        raise BadInput(
            f"A batch takes 1 to {MOST_ROWS} prompts, one per line, but there are "
            f"{len(request.prompts)}."
        )
    if request.steps < 1 or request.extra < 0:
        raise BadInput("A batch needs at least 1 step and 0 or more extra padding positions.")
    tokens = [
        runner.loaded.tokenizer.encode(prompt, request.chat).tokens for prompt in request.prompts
    ]
    pad_id, _ = padding_of(card)
    layout = lay_out_batch(
        [[token.id for token in row] for row in tokens], request.padding, request.extra, pad_id
    )
    for row in layout.rows:
        runner.require_ids(row.ids)
    if card.context and layout.slots > card.context:
        raise BadInput(
            f"The padded rows take {layout.slots:,} positions, but this model reads at "
            f"most {card.context:,}. Shorten the prompts or use less padding."
        )
    padded = any(row.padded for row in layout.rows)
    if padded and request.padding == "left" and _refused(card, "left_padding"):
        raise BadInput(f"{card.words('left_padding').capitalize()}; choose the right side.")
    return layout, tokens


def _refused(card: ModelCard, name: str) -> bool:
    """True if the self-test tried this on the model and it did not work."""
    if card.pad_id is None:  # it had nothing to pad with, so it did not try
        return False
    return any(c.name == name and not c.offered for c in card.capabilities)


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference in logits; EngineError where there is no number to compare."""
    worst = float(np.abs(one - other).max())
    if not np.isfinite(worst):
        raise EngineError(
            "The model's logits contain NaN or infinite values in this batch. Open the "
            "model as float32."
        )
    return worst


@dataclass(slots=True)
class _Lab:
    """One batch while it is measured."""

    runner: Runner
    request: BatchRequest
    steps: Steps
    tokens: list[tuple[Token, ...]]
    memory: ResultCache
    limit: float = 0.0

    @property
    def layout(self) -> BatchLayout:
        return self.steps.layout

    @property
    def fed(self) -> Fed:
        """The mistakes of this request that change what is fed."""
        return frozenset(m for m in self.request.wrong if m != "readout")

    def result(self) -> BatchResult:
        card = self.runner.loaded.card
        # First, for the scores hold the logits of the prefill, too.
        scores = self._scores() if self.request.loss else [Scores()] * len(self.layout.rows)
        decoded = self._decoded(
            self.request.padding == "left" or not _refused(card, "right_padding")
        )
        self.limit = logit_tolerance(card.dtype, self._prefill(_RIGHT))
        rows = range(len(self.layout.rows))
        alone = [self._alone(row, decoded.tokens[row]) for row in rows]
        built = [self._row(row, decoded, alone[row], scores[row]) for row in rows]
        pad_id, note = padding_of(card)
        return BatchResult(
            request=self.request,
            model=card.name,
            pad=self.runner.loaded.tokenizer.token(pad_id, "padding"),
            pad_note=note,
            tolerance=self.limit,
            rows=tuple(built),
            vocabulary=card.vocab_size,
            decoded_apart=decoded.apart,
        )

    # -- what takes passes, asked of the memory first

    def _prefill(self, fed: Fed, made: np.ndarray | None = None) -> np.ndarray:
        """(B, n, V) at the slots of `steps`; `made` is what it gave, if it has just been run."""
        return self.memory.get(
            ("prefill", self.layout, fed),
            lambda: self.steps.prefill(fed) if made is None else made,
            lambda logits: logits.nbytes,
        )

    def _scores(self) -> list[Scores]:
        return self.memory.get(
            ("scores", self.layout, self.fed),
            self._score,
            lambda scores: sum(400 * len(one.shifted) for one in scores),
        )

    def _score(self) -> list[Scores]:
        """Every slot's prediction; on the way the prefill is seen."""
        self.steps.tell("Scoring every token")
        seen: list[np.ndarray] = []

        def spans() -> Iterator[tuple[range, np.ndarray]]:
            for slots, logits in self.steps.passes.in_spans(
                self.layout, range(self.layout.slots), self.fed
            ):
                wanted = [slot - slots.start for slot in self.steps.slots if slot in slots]
                seen.append(logits[:, wanted])
                yield slots, logits

        scores = score(self.layout.rows, spans(), self.runner.loaded.tokenizer.token)
        self._prefill(self.fed, np.concatenate(seen, axis=1))
        return scores

    def _decoded(self, together: bool) -> Decoded:
        one_pass = self.request.steps == 1
        key = ("decoded", self.layout, self.fed, "readout" in self.request.wrong,
               self.request.steps, together)  # fmt: skip
        decoded = self.memory.get(
            key,
            lambda: self.steps.decode(
                self.fed, together, self._prefill(self.fed) if one_pass else None
            ),
            lambda decoded: decoded.bytes,
        )
        self._prefill(self.fed, decoded.prefill)
        return decoded

    def _alone(self, row: int, generated: Sequence[int]) -> Alone:
        # The token picked last is not fed to anything.
        key = ("alone", self.steps.row_alone(row), tuple(generated[:-1]), self.request.loss)
        return self.memory.get(
            key, lambda: self.steps.alone(row, generated), lambda alone: alone.bytes
        )

    def _continued_alone(
        self, row: int, generated: Sequence[int], alone: np.ndarray
    ) -> tuple[int, ...]:
        key = ("goes on", self.steps.row_alone(row), tuple(generated), self.request.steps)
        return self.memory.get(
            key, lambda: self.steps.continued_alone(row, generated, alone), lambda ids: 8 * len(ids)
        )

    # -- what was found of one row

    def _effects(self, row: int, alone: np.ndarray) -> dict[Mistake, float]:
        """What each mistake by itself does to this row's prefill, logits (V,) alone beside it.

        BadInput where even the right way of padding moves this model's logits.
        """
        slot, last = self.layout.rows[row].readout, self.layout.slots - 1
        right = self._prefill(_RIGHT)
        gap, side = _gap(self.steps.at(right, row, slot), alone), self.request.padding
        if gap > self.limit:
            raise BadInput(
                f"This architecture changes its results with {side} padding: prompt "
                f"{row + 1} is off by {gap:.2g}. Choose {_OTHER[side]} padding."
            )
        return {
            "readout": _gap(self.steps.at(right, row, last), alone),
            "positions": _gap(
                self.steps.at(self._prefill(frozenset({"positions"})), row, slot), alone
            ),
            "mask": _gap(self.steps.at(self._prefill(frozenset({"mask"})), row, slot), alone),
        }

    def _verdict(self, row: int, effects: dict[Mistake, float], worst: float) -> Verdict:
        """Of several mistakes the first that breaks the row by itself."""
        if worst <= self.limit:
            return "right"
        made = [m for m in MISTAKES if m in self.request.wrong]
        if not made:
            raise EngineError(
                f"On this architecture, prompt {row + 1} decoded in the batch differs "
                f"from the prompt run alone by {worst:.2g}. Use one step, or "
                f"{_OTHER[self.request.padding]} padding."
            )
        return _VERDICTS[next((m for m in made if effects[m] > self.limit), made[0])]

    def _row(self, row: int, decoded: Decoded, itself: Alone, scores: Scores) -> BatchRow:
        layout, wrong, slots = self.layout.rows[row], self.request.wrong, self.layout.slots
        alone = itself.logits
        diffs = tuple(map(_gap, decoded.read[row], alone))
        effects = self._effects(row, alone[0])
        verdict = self._verdict(row, effects, max(diffs))
        generated = decoded.tokens[row]
        return BatchRow(
            prompt=self.request.prompts[row],
            tokens=self._fed_tokens(row),
            real=layout.attention_mask,
            attention_mask=(1,) * slots if "mask" in wrong else layout.attention_mask,
            position_ids=tuple(range(slots)) if "positions" in wrong else layout.position_ids,
            readout=self.steps.read_slot(row),
            last_real=layout.readout,
            at_last_real=self._reading(row, layout.readout, alone[0]),
            at_last_slot=self._reading(row, slots - 1, alone[0]),
            alone=self._ranked(alone[0]),
            max_abs_diff_vs_alone=max(diffs),
            step_diffs=diffs,
            verdict=verdict,
            immune=bool(wrong) and verdict == "right",
            effects=effects,
            generated=self._spelled(generated),
            generated_alone=self._spelled(self._continued_alone(row, generated, alone)),
            scored=scores.shifted,
            unshifted_nats=scores.unshifted_nats,
            alone_nats=itself.nats,
        )

    def _fed_tokens(self, row: int) -> tuple[Token, ...]:
        layout, real = self.layout.rows[row], iter(self.tokens[row])
        pad = self.runner.loaded.tokenizer.token(self.layout.pad_id, "padding")
        return tuple(next(real) if valid else pad for valid in layout.attention_mask)

    def _reading(self, row: int, slot: int, alone: np.ndarray) -> Reading:
        logits = self.steps.at(self._prefill(self.fed), row, slot)
        return Reading(slot=slot, top=self._ranked(logits), max_abs_diff=_gap(logits, alone))

    def _ranked(self, logits: np.ndarray) -> tuple[Ranked, ...]:
        return ranked(logits, TOP, self.runner.loaded.tokenizer.token)

    def _spelled(self, ids: Sequence[int]) -> tuple[Token, ...]:
        return tuple(self.runner.loaded.tokenizer.token(i, "generated") for i in ids)
