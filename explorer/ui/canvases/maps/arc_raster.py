"""Thousands of arcs as one picture of levels: drawn by numpy, not line by line."""

from __future__ import annotations

import numpy as np

_STEPS = 2048  # of a quarter turn: finer than any screen
_TURN = np.linspace(0, np.pi / 2, _STEPS, dtype=np.float32)
_COSINE, _SINE = np.cos(_TURN), np.sin(_TURN)
_LOOP = 3.0  # pixels: half the width of a token's arc to itself
_TALLEST = 1.4  # height of an arc by half its width, where there is room
_MANY = 1000  # arcs from which on single pixels may be missing: nobody can tell


def rasterise(
    starts: np.ndarray,
    ends: np.ndarray,
    levels: np.ndarray,
    widths: np.ndarray,
    shape: tuple[int, int],
) -> np.ndarray:
    """(height, width) uint8: half ellipses over the lower edge, 0 where there is none.

    `starts` and `ends` are pixels along that edge, `widths` whole pixels; where arcs cross the
    highest of their `levels` is seen, so arcs of one width must come lowest level first.
    """
    height, width = shape
    image = np.zeros(shape, np.uint8)
    if not len(starts) or not height or not width:
        return image
    middle = ((starts + ends) / 2).astype(np.float32)
    across = np.maximum(np.abs(ends - starts) / 2, _LOOP).astype(np.float32)
    seen = min(float(across.max()), width / 2.0)
    high = np.minimum(across * min(_TALLEST, (height - 4) / seen), height - 3)
    high = np.maximum(high, min(5.0, height - 3)).astype(np.float32)
    dense = 1.6 if len(starts) < _MANY else 1.15  # points per pixel of the longer half axis
    counts = np.ceil(dense * np.maximum(np.minimum(across, 2 * width), high))
    counts = np.clip(counts, 4, _STEPS).astype(np.int32)
    inside = float((middle - across).min()) >= 0 and float((middle + across).max()) < width - 1
    for pen in np.flatnonzero(np.bincount(widths)):
        which = np.flatnonzero(widths == pen)
        x, y = _points(middle[which], across[which], high[which], counts[which])
        thin = np.zeros(shape, np.uint8)
        level = np.repeat(levels[which], 2 * counts[which])
        _put(thin.reshape(-1), x, height - 1 - y, level, shape, inside)
        np.maximum(image, _widened(thin, int(pen)), out=image)
    return image


def _widened(image: np.ndarray, pen: int) -> np.ndarray:
    """Every pixel as a square of `pen` pixels about it, the highest level on top.

    Whole-picture work: writing each point of an arc once for each pixel of the pen took five
    times as long.
    """
    for axis, forward in ((0, -1), (1, 1)):  # up, and to the right
        wide = image.copy()
        for shift in range(-((pen - 1) // 2), pen // 2 + 1):
            ahead, behind = slice(abs(shift), None), slice(None, -abs(shift))
            to, of = (ahead, behind) if shift * forward > 0 else (behind, ahead)
            if shift and axis == 0:
                np.maximum(wide[to], image[of], out=wide[to])
            elif shift:
                np.maximum(wide[:, to], image[:, of], out=wide[:, to])
        image = wide
    return image


def _points(
    middle: np.ndarray, across: np.ndarray, high: np.ndarray, counts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(P,) whole pixels: x, and how high above the edge; both halves of each arc in turn."""
    begin = np.cumsum(counts) - counts
    place = np.arange(int(counts.sum()), dtype=np.int32) - np.repeat(begin.astype(np.int32), counts)
    turn = (place * np.repeat((_STEPS - 1) / (counts - 1).astype(np.float32), counts)).astype(
        np.int32
    )
    centre = np.repeat(middle + np.float32(0.5), counts)
    half = np.repeat(across, counts) * _COSINE[turn]
    x = np.empty((len(turn), 2), np.int32)
    x[:, 0], x[:, 1] = centre - half, centre + half
    y = (np.repeat(high, counts) * _SINE[turn] + np.float32(0.5)).astype(np.int32)
    return x.reshape(-1), np.repeat(y, 2)


def _put(
    image: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    level: np.ndarray,
    shape: tuple[int, int],
    inside: bool,
) -> None:
    """Write points; of those on one pixel the last stays."""
    height, width = shape
    if not inside:
        seen = np.flatnonzero((x >= 0) & (x < width) & (y >= 0) & (y < height))
        x, y, level = x[seen], y[seen], level[seen]
    image[y * np.int32(width) + x] = level
