"""Runs made of random queries and keys, shaped as the engine records them."""

from __future__ import annotations

import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.step import Draw, Step, Token
from explorer.trace.trace import Trace

DRAW = Draw(
    token_id=0, how="greedy", probability=1.0, raw_probability=0.5, rank=0, entropy_bits=1.0
)


def card(layers: int, heads: int, kv_heads: int, head_dim: int) -> ModelCard:
    return ModelCard(
        name="random",
        path="",
        architecture="llama",
        layers=layers,
        hidden_size=heads * head_dim,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab_size=16,
        context=4096,
        parameters=0,
        dtype="float32",
        device="cpu",
    )


class Run:
    """Builds a trace pass by pass; every option is per run, as it is in a model."""

    def __init__(
        self,
        *,
        layers: int = 2,
        heads: int = 4,
        kv_heads: int = 2,
        head_dim: int = 8,
        window: int = 0,
        sinks: bool = False,
        softcap: float = 0.0,
        absent: tuple[int, ...] = (),
        padding: int = 0,
        bits: bool = False,
        causal: bool = True,
        seed: int = 0,
        sharpness: float = 1.0,
    ) -> None:
        self.layers, self.heads, self.kv_heads, self.head_dim = layers, heads, kv_heads, head_dim
        self.window, self.softcap, self.absent, self.padding = window, softcap, absent, padding
        self.bits = bits or bool(padding) or bool(window)
        self.causal = causal
        self.rng = np.random.default_rng(seed)
        self.sharpness = sharpness
        self.sinks = self.rng.standard_normal(heads).astype(np.float32) if sinks else None

    def prefill(self, length: int, words: list[bytes] | None = None) -> Trace:
        """One pass over `length` slots, padding on the left included."""
        words = words or [f" w{i}".encode() for i in range(length)]
        tokens = tuple(
            Token(i, words[i % len(words)], "padding" if i < self.padding else "prompt")
            for i in range(length)
        )
        trace = Trace(
            request=RunRequest(prompt="random", causal_mask=self.causal),
            card=card(self.layers, self.heads, self.kv_heads, self.head_dim),
            prompt=tokens,
        )
        return self._with_step(trace, 0, length, "prefill" if self.causal else "recompute")

    def decode(self, trace: Trace, steps: int = 1) -> Trace:
        """`steps` passes over one slot each, reading older keys from the cache."""
        for _ in range(steps):
            trace = self._with_step(trace, trace.read_slots(len(trace.steps) - 1), 1, "decode")
        return trace

    def recompute(self, trace: Trace, steps: int = 1) -> Trace:
        """`steps` passes over everything."""
        for _ in range(steps):
            slots = trace.read_slots(len(trace.steps) - 1) + 1
            trace = self._with_step(trace, 0, slots, "recompute")
        return trace

    def _with_step(self, trace: Trace, first: int, count: int, phase: str) -> Trace:
        index = len(trace.steps)
        step = Step(
            index=index,
            phase=phase,  # type: ignore[arg-type]
            first_slot=first,
            token_ids=tuple(range(first, first + count)),
            position_ids=tuple(range(first, first + count)),
            readout=first + count - 1,
            logits=self.rng.standard_normal(16).astype(np.float32),
            draw=DRAW,
            sampling=Sampling(),
            forward_ms=1.0,
            layer_ms=np.ones(self.layers, np.float32),
            cache_tokens=first + count,
            layers=tuple(self._layer(layer, first, count) for layer in range(self.layers)),
            keys_from=0 if phase == "decode" else index,
        )
        return trace.appended(step, Token(index, f" t{index}".encode(), "generated"))

    def _layer(self, layer: int, first: int, count: int) -> LayerRecord:
        if layer in self.absent:
            return LayerRecord(layer=layer, kind="absent", reason="a recurrent layer")
        first_key = max(0, first + 1 - self.window) if self.window and count == 1 else 0
        queries = self.rng.standard_normal((count, self.heads, self.head_dim))
        keys = self.rng.standard_normal((count, self.kv_heads, self.head_dim))
        return LayerRecord(
            layer=layer,
            kind="qk",
            queries=(queries * self.sharpness).astype(np.float32),
            keys=keys.astype(np.float32),
            scaling=self.head_dim**-0.5,
            mask=self._mask(first, count, first_key),
            first_key=first_key,
            window=self.window,
            softcap=self.softcap,
            sinks=self.sinks,
        )

    def _mask(self, first: int, count: int, first_key: int) -> Mask:
        keys = first + count - first_key
        if not self.bits:
            plain = "causal" if self.causal and count > 1 else "none"
            return Mask(plain, count, keys)  # type: ignore[arg-type]
        query = np.arange(first, first + count)[:, None]
        key = np.arange(first_key, first + count)[None, :]
        allowed = np.ones((count, keys), bool)
        if self.causal:
            allowed &= key <= query
        if self.window:
            allowed &= np.abs(query - key) < self.window
        allowed &= key >= self.padding
        return Mask.of_bits(allowed)
