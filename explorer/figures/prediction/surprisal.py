"""Surprisal and entropy of each token of a run, to colour the tokens by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from explorer.figures.batch.loss import NATS_PER_BIT
from explorer.trace.experiments import PromptScores
from explorer.trace.trace import Trace
from explorer.wording import exact_percent, information

By = Literal["surprisal", "entropy", "probability"]
_HUGE = math.log(1e12)  # mean surprisal, in nats, beyond which a perplexity says nothing more


@dataclass(frozen=True, slots=True)
class Surprisal:
    """The model's own distribution (softmax of the raw logits) at the place of one token."""

    nats: float  # surprisal of the token that stands there; inf for what was held impossible
    entropy_bits: float
    rank: int  # 0 = the model's favourite
    top: tuple[tuple[int, float], ...] = ()  # the model's own choices: id, probability

    @property
    def probability(self) -> float:
        return math.exp(-self.nats)


def foreseen(trace: Trace, scores: PromptScores | None) -> tuple[Surprisal | None, ...]:
    """One a slot; None where nothing is known: padding, the first token, a prompt not scored."""
    found: list[Surprisal | None] = [None] * len(trace.prompt)
    if scores is not None:
        rows = zip(
            scores.slots, scores.nats, scores.entropy_bits, scores.ranks, scores.top, strict=True
        )  # fmt: skip
        for slot, nats, bits, rank, top in rows:
            if 0 <= slot < len(found):
                found[slot] = Surprisal(nats, bits, rank, top)
    for step in trace.steps:
        p = step.draw.raw_probability
        nats = -math.log(p) if p > 0 else math.inf
        found.append(Surprisal(max(nats, 0.0), step.draw.entropy_bits, step.draw.rank))
    return tuple(found)


def in_words(trace: Trace, slot: int, one: Surprisal | None) -> str:
    """One token's surprisal, or why there is none; "" for padding."""
    if one is None:
        if trace.tokens[slot].origin == "padding":
            return ""
        if all(token.origin == "padding" for token in trace.tokens[:slot]):
            return "no surprisal: nothing comes before this token"
        return "no surprisal yet: the prompt has not been scored"
    words = (
        f"surprisal {information(one.nats)}, probability {exact_percent(one.probability)}, "
        f"rank {one.rank + 1:,}; entropy {information(one.entropy_bits * NATS_PER_BIT)}"
    )
    seen = already_seen(trace, slot)
    return f"{words} (causal mask off: the model could already see this token)" if seen else words


def already_seen(trace: Trace, slot: int) -> bool:
    """True if the model read this token of the prompt before it gave a probability to it."""
    return not trace.request.causal_mask and slot < len(trace.prompt)


def perplexity(nats: float) -> str:
    """e to a mean surprisal, in three digits, or in whole numbers from 100: "1.38", "10,722"."""
    if math.isinf(nats):
        return "∞"
    if nats > _HUGE:
        return f"> {round(math.exp(_HUGE)):,}"
    value = math.exp(nats)
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def levels(known: Sequence[Surprisal | None], by: By, vocabulary: int) -> tuple[float | None, ...]:
    """0..1 for the colours; surprisal and entropy reach 1 at a blind guess among V tokens."""
    blind = math.log(max(vocabulary, 2))
    return tuple(None if one is None else _level(one, by, blind) for one in known)


def _level(one: Surprisal, by: By, blind: float) -> float:
    if by == "probability":
        return min(1.0, one.probability)
    value = one.nats if by == "surprisal" else one.entropy_bits * NATS_PER_BIT
    return min(1.0, max(0.0, value / blind))


def scale(by: By, vocabulary: int) -> tuple[str, str]:
    """What the two ends of the colours stand for."""
    blind = math.log(max(vocabulary, 2))
    return {
        "surprisal": ("0", information(blind, ".1f")),
        "entropy": ("0", information(blind, ".1f")),
        "probability": ("0", "100 %"),
    }[by]
