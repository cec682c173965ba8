"""The KV cache as it was measured, layer by layer and step by step, beside the formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.trace.card import ModelCard
from explorer.trace.trace import Trace

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}


@dataclass(frozen=True, slots=True)
class CacheFigure:
    """What the cache held after one step, and how it grew until the last."""

    tokens: int
    layer_bytes: np.ndarray  # (L,) int64, measured on the cache's tensors
    layer_kinds: tuple[str, ...]  # (L,) full, sliding, …; empty if not known
    growth_bytes: np.ndarray  # (steps,) int64, all layers together after each step
    growth_tokens: np.ndarray  # (steps,) int64
    formula: str  # "2·30 layers·3 KV heads·64·4 bytes"; empty if layers differ
    formula_bytes_per_token: int
    off_reason: str  # why there is no cache; empty if there is one

    @property
    def measured_bytes(self) -> int:
        """All layers together."""
        return int(self.layer_bytes.sum())

    @property
    def formula_bytes(self) -> int:
        """2·L·H_kv·d_h·bytes × tokens."""
        return self.formula_bytes_per_token * self.tokens

    @property
    def agrees(self) -> bool:
        """True if the measured bytes are exactly the formula's."""
        return self.measured_bytes == self.formula_bytes


def chart(trace: Trace, index: int) -> CacheFigure:
    """The cache after step `index`."""
    step = trace.steps[index]
    growth = [(s.cache_bytes, s.cache_tokens) for s in trace.steps]
    sizes, tokens = np.array(growth, np.int64).reshape(-1, 2).T
    return CacheFigure(
        tokens=step.cache_tokens,
        layer_bytes=np.array(step.cache_bytes_per_layer, np.int64),
        layer_kinds=trace.card.layer_kinds,
        growth_bytes=sizes,
        growth_tokens=tokens,
        formula=formula_words(trace.card),
        formula_bytes_per_token=trace.card.kv_bytes_per_token,
        off_reason="" if trace.request.uses_cache else trace.request.cache_reason,
    )


def formula_words(card: ModelCard) -> str:
    """The formula with this model's figures, or "" where it does not give its bytes per token."""
    size = ELEMENT_BYTES.get(card.dtype, 0)
    if 2 * card.layers * card.kv_heads * card.head_dim * size != card.kv_bytes_per_token:
        return ""
    heads = "1 KV head" if card.kv_heads == 1 else f"{card.kv_heads} KV heads"
    return f"2·{card.layers} layers·{heads}·{card.head_dim}·{size} bytes"


def verdict(figure: CacheFigure) -> str:
    """Whether measured and formula agree, in one line."""
    if figure.agrees:
        return "exactly as the formula says"
    difference = figure.measured_bytes - figure.formula_bytes
    side = "above" if difference > 0 else "below"
    text = f"{short_bytes(abs(difference))} {side} the formula"
    windowed = sum(kind in ("sliding", "chunked") for kind in figure.layer_kinds)
    if difference < 0 and windowed:
        layers = "1 layer keeps" if windowed == 1 else f"{windowed} layers keep"
        text += f": {layers} only a window"
    return text


def bytes_text(count: int) -> str:
    """Bytes in full and, from 1 KiB on, in the nearest binary unit: "552,960 bytes (540 KiB)"."""
    whole = f"{count:,} {'byte' if count == 1 else 'bytes'}"
    return whole if count < 1024 else f"{whole} ({short_bytes(count)})"


def short_bytes(count: float) -> str:
    """Bytes in the nearest binary unit, three significant digits: "540 KiB"."""
    value = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if value < 1000 or unit == "GiB":
            break
        value /= 1024
    return f"{value:,.0f} {unit}" if value >= 100 or unit == "bytes" else f"{value:.3g} {unit}"
