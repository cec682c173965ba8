"""Boards of the logit lens for the scripted run, made without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from explorer.trace.inside.arrays import WHOLE, packed
from explorer.trace.inside.lens import LensBoard

ROWS = ("embedding", "0", "final")


def board(slots: Sequence[int], asked: int | None = None, best: int = 5) -> LensBoard:
    """Rows of two tokens each; from layer 0 on `best` is first in even slots, else in the last."""
    shape = len(ROWS), len(slots)
    ids = np.zeros((*shape, 2), np.int32)
    ids[..., 0], ids[..., 1] = 7, best
    ranks = np.ones(shape, np.int32)
    for place, slot in enumerate(slots):
        first = 1 if slot % 2 == 0 else 2
        ids[first:, place] = best, 7
        ranks[first:, place] = 0
    shares = np.broadcast_to(np.array([0.75, 0.25], np.float32), ids.shape)
    return LensBoard(
        rows=ROWS,
        slots=tuple(slots),
        asked=len(slots) if asked is None else asked,
        top=2,
        id_bytes=packed(ids, WHOLE),
        probability_bytes=packed(shares),
        entropy_bytes=packed(np.full(shape, 2.0)),
        kl_bytes=packed(np.array([[3.0], [1.0], [0.0]]) * np.ones(shape)),
        final_rank_bytes=packed(ranks, WHOLE),
        final_probability_bytes=packed(np.where(ranks == 0, 0.75, 0.25)),
        spelled_ids=(best, 7),
        spelled=(b" a", b"\n"),
        final_gap=0.0,
        tolerance=1e-4,
    )


def facts(slots: Sequence[int], **more: Any) -> dict[str, Any]:
    """The same as an engine tells it."""
    found: dict[str, Any] = msgspec.to_builtins(board(slots, **more), builtin_types=(bytes,))
    return found
