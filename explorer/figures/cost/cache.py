"""The KV cache as it was measured, layer by layer and step by step, beside the formula.

L: layers, S: steps.  Measured are the cache's own tensors; the formula is the card's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.figures.cost.context_use import context_use
from explorer.trace.card import ModelCard
from explorer.trace.step import Step
from explorer.trace.trace import Trace

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}
STATES = ("linear", "recurrent", "conv", "mlp", "moe")  # kinds that keep no keys and values
WINDOWED = ("sliding", "chunked")


@dataclass(frozen=True, slots=True)
class Held:
    """What the cache held after one step."""

    tokens: int
    evicted: int  # by the context policy
    by_kind: tuple[int, ...]  # bytes, in the order of `CacheFigure.kinds`
    step: Step = field(repr=False, compare=False)

    @property
    def total(self) -> int:
        """Bytes of all layers together."""
        return sum(self.by_kind)


@dataclass(frozen=True, slots=True, eq=False)
class CacheFigure:
    """What the cache held after one step, and how it grew until the last."""

    tokens: int  # that the cache holds
    evicted: int  # that the context policy evicted from it
    read: int  # by the step, turns that were left out not counted
    layer_bytes: np.ndarray  # (L,) int64, measured on the cache's tensors
    layer_kinds: tuple[str, ...]  # (L,) full, sliding, latent, …
    layer_formula: np.ndarray  # (L,) float64: with every token kept; NaN where no formula gives it
    kinds: tuple[str, ...]  # those that occur, in order
    growth: tuple[Held, ...]  # (S,)
    formula: str  # "2·30 layers·3 KV heads·64·4 bytes"; empty if layers differ
    formula_bytes_per_token: int
    mha_factor: float  # what every query head with keys of its own would take, times this; 1 = same
    limit: int  # tokens that the run may read under its policy; 0 = none is known
    off_reason: str  # why there is no cache; empty if there is one
    rank_bytes: tuple[int, ...] = ()  # of each process, where several share the model

    @property
    def measured_bytes(self) -> int:
        """All layers together."""
        return int(self.layer_bytes.sum())

    @property
    def formula_bytes(self) -> int:
        """2·L·H_kv·d_h·bytes × tokens."""
        return self.formula_bytes_per_token * self.tokens

    @property
    def state_bytes(self) -> int:
        """Of the measured bytes, those that no formula per token gives: recurrent states."""
        pairs = zip(self.layer_kinds, self.layer_bytes.tolist(), strict=False)
        return sum(count for kind, count in pairs if kind in STATES)

    @property
    def agrees(self) -> bool:
        """True if keys and values take exactly the formula's bytes."""
        return self.measured_bytes - self.state_bytes == self.formula_bytes

    @property
    def context_left(self) -> int | None:
        """Tokens that the run can still read; None if no limit is known."""
        return max(0, self.limit - self.read) if self.limit else None


def chart(trace: Trace, index: int, known: Sequence[Held] = ()) -> CacheFigure:
    """The cache after step `index`.

    `known` is the growth of an earlier figure, taken over as far as it is of the same steps.
    """
    step, card = trace.steps[index], trace.card
    layer_kinds = kinds_of(card)
    kinds = tuple(dict.fromkeys(layer_kinds))
    per_layer = bytes_per_layer(card)
    evicted = _evicted(trace, index)
    every = step.cache_tokens + evicted
    full = np.nan if per_layer is None else float(per_layer * every)
    read = trace.read_slots(index) - sum(end - first for first, end in step.left_out)
    return CacheFigure(
        tokens=step.cache_tokens,
        evicted=evicted,
        read=read,
        layer_bytes=np.array(step.cache_bytes_per_layer, np.int64),
        layer_kinds=layer_kinds,
        layer_formula=np.array([np.nan if kind in STATES else full for kind in layer_kinds]),
        kinds=kinds,
        growth=_growth(trace, layer_kinds, kinds, known),
        formula=formula_words(card),
        formula_bytes_per_token=card.kv_bytes_per_token,
        mha_factor=mha_factor(card),
        limit=context_use(trace.request, card, read).limit,
        off_reason="" if trace.request.uses_cache else trace.request.cache_reason,
        rank_bytes=tuple(rank.cache_bytes for rank in step.ranks),
    )


def kinds_of(card: ModelCard) -> tuple[str, ...]:
    """(L,) kinds of layers by what they cache: full, sliding, chunked, latent, linear, …"""
    kinds = card.layer_kinds or ("full",) * card.layers
    if not card.latent_width:
        return kinds
    return tuple("latent" if kind == "full" else kind for kind in kinds)


def bytes_per_layer(card: ModelCard) -> int | None:
    """Bytes one layer with keys and values keeps for a token; None where they differ."""
    size = ELEMENT_BYTES.get(card.dtype, 0)
    one = (card.latent_width or 2 * card.kv_heads * card.head_dim) * size
    return one if one and one * keeping(card) == card.kv_bytes_per_token else None


def keeping(card: ModelCard) -> int:
    """Layers that keep something for every token."""
    return sum(kind not in STATES for kind in kinds_of(card))


def mha_factor(card: ModelCard) -> float:
    """How many times the bytes multi-head attention would take: H / H_kv, 1 for a latent."""
    shared = bytes_per_layer(card) is not None and not card.latent_width
    return card.heads / card.kv_heads if shared and card.kv_heads else 1.0


def _growth(
    trace: Trace, layer_kinds: Sequence[str], kinds: Sequence[str], known: Sequence[Held]
) -> tuple[Held, ...]:
    place = {kind: i for i, kind in enumerate(kinds)}
    columns = [place[kind] for kind in layer_kinds]

    def held(step: Step) -> Held:
        sums = [0] * len(kinds)
        for layer, count in enumerate(step.cache_bytes_per_layer):
            sums[columns[layer] if layer < len(columns) else 0] += count
        return Held(step.cache_tokens, _evicted(trace, step.index), tuple(sums), step)

    return tuple(
        known[i] if i < len(known) and known[i].step is step else held(step)
        for i, step in enumerate(trace.steps)
    )


def _evicted(trace: Trace, index: int) -> int:
    """Slots that were read up to a step and that the context policy evicted from its cache."""
    if not (trace.request.context.keeps_last and trace.request.uses_cache):
        return 0
    return trace.read_slots(index) - trace.steps[index].cache_tokens


def formula_words(card: ModelCard) -> str:
    """The formula with this model's figures, or "" where it does not give its bytes per token."""
    size = ELEMENT_BYTES.get(card.dtype, 0)
    if bytes_per_layer(card) is None:
        return ""
    count = keeping(card)
    layers = "1 layer" if count == 1 else f"{count} layers"
    if card.latent_width:
        return f"{layers}·{card.latent_width} latent·{size} bytes"
    heads = "1 KV head" if card.kv_heads == 1 else f"{card.kv_heads} KV heads"
    return f"2·{layers}·{heads}·{card.head_dim}·{size} bytes"
