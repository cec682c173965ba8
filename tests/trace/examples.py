"""Small steps and traces made by hand, for tests of what carries them."""

from __future__ import annotations

import numpy as np

from explorer.trace.attention import LayerRecord, Mask
from explorer.trace.request import Sampling
from explorer.trace.step import Draw, Step, Token


def layer(index: int, queries: int, **more: object) -> LayerRecord:
    """A layer with GQA whose numbers depend on its index."""
    rng = np.random.default_rng(index)
    return LayerRecord(
        layer=index,
        kind="qk",
        queries=rng.standard_normal((queries, 4, 8)).astype(np.float32),
        keys=rng.standard_normal((queries, 2, 8)).astype(np.float32),
        scaling=0.25,
        **more,  # type: ignore[arg-type]
    )


def step(index: int = 0, queries: int = 3, layers: tuple[LayerRecord, ...] | None = None) -> Step:
    """A step with two attention layers sharing one mask, and one without attention."""
    mask = Mask.of_bits(np.tri(queries, dtype=bool))
    kept = layers or (
        layer(0, queries, mask=mask),
        LayerRecord(layer=1, kind="absent", reason="recurrent"),
        layer(2, queries, mask=mask, sinks=np.arange(4, dtype=np.float32), window=5),
    )
    return Step(
        index=index,
        phase="prefill",
        first_slot=0,
        token_ids=tuple(range(queries)),
        position_ids=tuple(range(queries)),
        readout=queries - 1,
        logits=np.arange(10, dtype=np.float32),
        draw=Draw(
            token_id=9,
            how="drawn",
            probability=0.5,
            raw_probability=0.25,
            rank=0,
            entropy_bits=1.5,
            u=0.125,
        ),
        sampling=Sampling(greedy=False, temperature=0.7, seed=3),
        forward_ms=12.5,
        layer_ms=np.array([1, 2, 3], np.float32),
        cache_tokens=queries,
        cache_bytes_per_layer=(96, 0, 96),
        layers=kept,
        hidden=np.ones((queries, 16), np.float32),
        top=(Token(9, b"\xf0\x9f"), Token(8, b" a", "generated", True)),
    )
