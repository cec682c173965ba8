"""What a cache would take at another dtype, batch or length: computed, never measured."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.figures.cost.cache import ELEMENT_BYTES, STATES, WINDOWED, bytes_per_layer, kinds_of
from explorer.trace.card import ModelCard

DTYPES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class CacheEstimate:
    """Bytes by the formula; windows and recurrent states taken into account."""

    keys_values: int
    states: int | None  # of recurrent layers: measured, times the batch; None = never measured
    as_mha: int | None  # keys and values if every query head had its own; None = no difference

    @property
    def total(self) -> int:
        """What is known, together."""
        return self.keys_values + (self.states or 0)


def what_if(
    card: ModelCard, dtype: str, batch: int, length: int, layer_bytes: tuple[int, ...] = ()
) -> CacheEstimate | None:
    """The cache of `batch` sequences of `length` tokens; None where no formula gives the bytes.

    `layer_bytes`: what was measured per layer in the loaded dtype, for the states among them.
    """
    own = ELEMENT_BYTES.get(card.dtype, 0)
    one = bytes_per_layer(card)
    size = ELEMENT_BYTES.get(dtype, 0)
    kinds = kinds_of(card)
    if not size or not own or (one is None and card.kv_bytes_per_token):
        return None
    kept = sum(_kept(card, layer, kind, length) for layer, kind in enumerate(kinds))
    keys_values = batch * kept * (one or 0) // own * size
    shared = card.kv_heads and not card.latent_width and card.heads > card.kv_heads
    return CacheEstimate(
        keys_values=keys_values,
        states=_states(kinds, batch, layer_bytes),
        as_mha=keys_values * card.heads // card.kv_heads if shared else None,
    )


def _kept(card: ModelCard, layer: int, kind: str, length: int) -> int:
    """Tokens of a sequence that a layer keeps: its own is read before the cache is cut again."""
    if kind in STATES:
        return 0
    window = card.windows[layer] if layer < len(card.windows) else 0
    return min(length, max(window - 1, 1)) if kind in WINDOWED and window else length


def _states(kinds: tuple[str, ...], batch: int, layer_bytes: tuple[int, ...]) -> int | None:
    if not any(kind in STATES for kind in kinds):
        return 0
    if len(layer_bytes) != len(kinds):
        return None
    pairs = zip(kinds, layer_bytes, strict=True)
    return batch * sum(count for kind, count in pairs if kind in STATES)
