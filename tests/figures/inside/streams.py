"""Residual streams for the scripted run, made without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from explorer.trace.inside.arrays import packed
from explorer.trace.inside.stream import ResidualStream, StreamWrite

ROWS = ("embedding", "0", "final")
WRITES = (
    StreamWrite(layer=0, name="attn.o", kind="attention"),
    StreamWrite(layer=0, name="mlp.down", kind="mlp"),
    StreamWrite(layer=1, name="mlp.down", kind="mlp"),
    StreamWrite(layer=1, name="mlp.shared", kind="mlp"),
)


def found(slots: Sequence[int]) -> ResidualStream:
    """Two layers, the second without attention and with two MLPs; norms grow with the slot."""
    each = np.ones((1, len(slots))) * (1 + np.asarray(slots, float))
    return ResidualStream(
        rows=ROWS,
        slots=tuple(slots),
        writes=WRITES,
        norm_bytes=packed(np.array([[1.0], [10.0], [100.0]]) * each),
        cosine_bytes=packed(np.array([[-0.25], [0.5], [1.0]]) * np.ones_like(each)),
        write_norm_bytes=packed(np.array([[2.0], [8.0], [90.0], [4.0]]) * each),
        write_cosine_bytes=packed(np.array([[0.1], [0.2], [0.9], [-0.5]]) * np.ones_like(each)),
        gap=2e-7,
    )


def facts(slots: Sequence[int]) -> dict[str, Any]:
    """The same as an engine tells it."""
    told: dict[str, Any] = msgspec.to_builtins(found(slots), builtin_types=(bytes,))
    return told
