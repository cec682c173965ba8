"""Tokens, and one forward pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from explorer.trace.attention import LayerRecord
from explorer.trace.request import Sampling

Origin = Literal["prompt", "generated", "forced", "padding"]
Phase = Literal["prefill", "decode", "recompute"]
NAMED = 100  # most probable tokens that a step has with their bytes


class Token(msgspec.Struct, frozen=True):
    """One vocabulary entry at one slot: its exact bytes, and where it came from."""

    id: int
    raw: bytes
    origin: Origin = "prompt"
    special: bool = False  # a control token such as <|im_end|>, not text that looks like one

    @property
    def text(self) -> str:
        """The bytes as UTF-8; half characters become U+FFFD (show `raw` instead)."""
        return self.raw.decode("utf-8", errors="replace")


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """How one token was picked from a distribution."""

    token_id: int
    how: Literal["greedy", "drawn", "forced"]
    probability: float  # after the sampling chain; 1 when greedy
    raw_probability: float  # softmax of the raw logits
    rank: int  # 0 = the model's favourite
    entropy_bits: float  # of the raw distribution
    u: float | None = None  # the uniform number used; None for greedy or forced

    @property
    def entropy_nats(self) -> float:
        """The same in the window's unit."""
        return self.entropy_bits * math.log(2)


class RankShare(msgspec.Struct, frozen=True):
    """What one of several processes did of a pass, where they share a model (torchrun)."""

    cache_bytes: int  # of its part of the KV cache, after the pass
    forward_ms: float
    waiting_ms: float  # of it, until the others had come as far


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """One forward pass and the token picked from it."""

    index: int
    phase: Phase
    first_slot: int  # slot of the first token this pass read
    token_ids: tuple[int, ...]  # (Q,) read by this pass
    position_ids: tuple[int, ...]  # (Q,) as given to the model
    readout: int  # slot whose logits are `logits`
    logits: np.ndarray  # (V,) float32, raw
    draw: Draw
    sampling: Sampling  # in force when the token was picked
    forward_ms: float
    layer_ms: np.ndarray  # (L,) float32
    # Inside layer_ms, (L,) float32; NaN where the layer has no such module of its own.
    attention_ms: np.ndarray | None = None
    mlp_ms: np.ndarray | None = None
    # Beside the layers; None where the model has no such module of its own.
    embedding_ms: float | None = None
    norm_ms: float | None = None  # the final norm
    head_ms: float | None = None
    capture_ms: float = 0.0  # copying Q and K out, outside forward_ms
    pick_ms: float = 0.0  # picking the token and naming the most probable, likewise
    engine_ms: float | None = None  # the whole step in the engine; None = not measured
    warm_up: bool = False  # first pass after loading: not the model's own speed
    cache_tokens: int = 0  # slots in the cache after the pass
    cache_bytes_per_layer: tuple[int, ...] = ()  # measured on the cache's tensors
    top: tuple[Token, ...] = ()  # the NAMED most probable ids with their bytes
    layers: tuple[LayerRecord, ...] = ()
    hidden: np.ndarray | None = None  # (Q, d) final hidden states, float32
    keys_from: int = 0  # index of the first step whose keys this pass could read
    left_out: tuple[tuple[int, int], ...] = ()  # slots from..to of turns that it did not read
    rebuilt_tokens: int = 0  # slots prefilled again first because the cache was gone
    note: str = ""
    ranks: tuple[RankShare, ...] = ()  # by rank; empty where one process ran the model
    kept_as: str = ""  # what the engine calls the records that it keeps of this pass

    @property
    def positions_processed(self) -> int:
        """Slots this pass ran through the model."""
        return len(self.token_ids)

    @property
    def rest_ms(self) -> float:
        """Of forward_ms: masks, positions and what else is in no part that has a clock."""
        parts = (self.embedding_ms, self.norm_ms, self.head_ms)
        known = float(self.layer_ms.sum(dtype=np.float64)) + sum(ms or 0.0 for ms in parts)
        return max(0.0, self.forward_ms - known)

    @property
    def cache_bytes(self) -> int:
        """All layers together, after the pass."""
        return sum(self.cache_bytes_per_layer)
