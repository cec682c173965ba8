"""The strongest reads of a map, as lines from token to token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.figures.attention.maps import Map

MOST = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Arcs:
    """Weakest first, so that the strong ones are drawn over them."""

    queries: np.ndarray  # (N,) slots
    keys: np.ndarray  # (N,)
    weights: np.ndarray  # (N,) float32, signed for a difference
    left_out: int  # cells that are read, with some weight, and have no arc


def strongest(whole: Map, token: int | None = None, most: int = MOST) -> Arcs:
    """The `most` largest weights, or those of what one token reads and is read by.

    Ties by place; a weight of 0 has no arc.
    """
    if token is not None:
        return _of_token(whole.weights, token, most)
    sizes = np.abs(whole.weights)
    count = int(np.count_nonzero(sizes))
    at = np.flatnonzero(sizes) if count <= 4 * most else _above(sizes, most)
    flat = sizes.reshape(-1)
    at = at[np.argsort(-flat[at], kind="stable")[:most]][::-1]
    queries, keys = np.divmod(at, sizes.shape[1])
    return Arcs(queries, keys, whole.weights.reshape(-1)[at], count - len(at))


def _of_token(weights: np.ndarray, token: int, most: int) -> Arcs:
    """What one token reads and is read by; what it reads of itself once."""
    others = np.delete(np.arange(len(weights)), token)
    queries = np.concatenate([np.full(weights.shape[1], token), others])
    keys = np.concatenate([np.arange(weights.shape[1]), np.full(len(others), token)])
    found = weights[queries, keys]
    at = np.flatnonzero(found)
    kept = at[np.argsort(-np.abs(found[at]), kind="stable")[:most]][::-1]
    return Arcs(queries[kept], keys[kept], found[kept], len(at) - len(kept))


def _above(sizes: np.ndarray, most: int) -> np.ndarray:
    """Places of at least `most` of the largest entries, and of few others.

    Row by row: one partition of millions of values would hold up everything else.
    """
    width = sizes.shape[1]
    limit = np.float32(0)
    found: list[np.ndarray] = []
    best = np.zeros(0, np.float32)
    for first in range(0, len(sizes), 64):
        part = sizes[first : first + 64].reshape(-1)
        at = np.flatnonzero(part > limit)
        found.append(at + first * width)
        best = np.concatenate([best, part[at]])
        if len(best) > most:
            best = np.partition(best, len(best) - most)[-most:]
            limit = np.nextafter(best[0], np.float32(0))  # what equals it stays
    return np.concatenate(found)
