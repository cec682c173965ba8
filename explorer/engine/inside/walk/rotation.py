"""How RoPE turned a head's vectors: which entries make a pair, and by what angle each turned.

Found by trying the known ways to pair entries on the vectors before and after.  One way is right
if in every head the same angles make the one into the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from explorer.trace.inside.arrays import packed
from explorer.trace.inside.walk import PAIRINGS, Pairing, Turn, pair_places

_NEAR = {"float32": 1e-4, "float64": 1e-4}  # of the largest entry; other dtypes round more
_ROUNDED = 2e-2
_LEAST = 1e-6  # an angle below it turns nothing


def frequencies_in(model: Any) -> list[np.ndarray]:
    """(pairs,) float64 each: radians a position, from every table of them that a model keeps."""
    found = [
        buffer.detach().double().cpu().numpy()
        for name, buffer in model.named_buffers()
        if name.endswith("inv_freq") and buffer.ndim == 1
    ]
    return [one for i, one in enumerate(found) if not any(_same(one, two) for two in found[:i])]


def found_turn(
    before: np.ndarray,
    after: np.ndarray,
    position: int,
    tables: Sequence[np.ndarray],
    dtype: str = "float32",
) -> Turn | None:
    """How (H, d) `before` became `after`; None if no way to pair entries explains it.

    `tables`: frequencies that the model keeps.  One that gives these angles is named with them.
    """
    near = _NEAR.get(dtype, _ROUNDED)
    old, new = (np.asarray(one, np.float64) for one in (before, after))
    for pairing, start, pairs in _ways(old.shape[1], [len(table) for table in tables]):
        angles, factor, gap = _fitted(old, new, pairing, start, pairs)
        if gap > near or not np.abs(angles).max(initial=0.0) > _LEAST:
            continue
        known = next((one for one in tables if _gives(one, angles, position, near)), None)
        return Turn(
            pairing=pairing,
            start=start,
            position=position,
            angles=packed(angles),
            frequencies=b"" if known is None else packed(known),
            factor=factor,
            gap=gap,
        )
    return None


def _ways(width: int, known: Sequence[int]) -> Iterator[tuple[Pairing, int, int]]:
    """(pairing, first entry, pairs): all of a head, or a part at its start or at its end."""
    counts = [count for count in dict.fromkeys(known) if 0 < 2 * count <= width]
    for pairs in [*counts, *(n for n in range(width // 2, 0, -1) if n not in counts)]:
        for pairing in PAIRINGS:
            for start in dict.fromkeys((0, width - 2 * pairs)):
                yield pairing, start, pairs


def _fitted(
    old: np.ndarray, new: np.ndarray, pairing: Pairing, start: int, pairs: int
) -> tuple[np.ndarray, float, float]:
    """((pairs,) angles, common factor of the lengths, largest miss relative to the largest entry).

    Entries outside the pairs have to be as they were.
    """
    was, now = pair_places(pairing, start, pairs)
    a = old[:, was[0]] + 1j * old[:, was[1]]  # (H, pairs)
    b = new[:, now[0]] + 1j * new[:, now[1]]
    turned = (b * a.conj()).sum(0)
    angles = np.angle(turned)
    size = float((np.abs(a) ** 2).sum())
    factor = float(np.abs(turned).sum()) / max(1e-30, size)
    made = a * factor * np.exp(1j * angles)
    outside = np.ones(old.shape[1], bool)
    outside[now.ravel()] = False
    rest = old[:, outside] - new[:, outside]
    miss = max(float(np.abs(made - b).max(initial=0.0)), float(np.abs(rest).max(initial=0.0)))
    return angles, factor, miss / max(1e-30, float(np.abs(new).max(initial=0.0)))


def _gives(table: np.ndarray, angles: np.ndarray, position: int, near: float) -> bool:
    """True if position × frequency is each angle, whole turns left out."""
    if len(table) != len(angles):
        return False
    off = angles - position * table
    off = np.abs((off + np.pi) % (2 * np.pi) - np.pi)
    return bool(off.max(initial=0.0) < 10 * near + 1e-6 * position)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool((one == other).all())
