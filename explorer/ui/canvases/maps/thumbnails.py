"""Thumbnails of every head, put on one sheet of levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtGui import QImage

from explorer.figures.attention.atlas import LEVELS, Atlas
from explorer.figures.attention.difference import MIDDLE, WIDE_MIDDLE
from explorer.figures.attention.map_blocks import READ
from explorer.figures.drawing.colour_scale import Scale, row_tops, scaled
from explorer.figures.drawing.pooling import farthest, maxima
from explorer.ui.canvases.maps.lut_image import FIRST_LEVEL, picture


@dataclass(frozen=True, slots=True)
class SheetPlan:
    """How thumbnails are to look: everything but the figures."""

    size: tuple[int, int]  # height and width of one in device pixels
    step: tuple[int, int]  # the same with the gap to the next
    shape: tuple[int, int]  # rows and columns
    order: Sequence[tuple[int, int]] | None  # of the heads; None = as they come
    scale: Scale  # each head to its own largest weight, by row, …
    table: tuple[int, ...]  # colour of each level
    ratio: float  # device pixels to a point

    def sheet(self, atlas: Atlas) -> Sheet:
        """All thumbnails in one picture, gaps between them clear; in any thread."""
        levels = atlas.levels
        if self.order is not None:
            levels = reordered(levels, self.order, self.shape)
        drawn = sheet(levels, self.size, self.step, scale=self.scale, signed=atlas.signed)
        # Clear: gaps, absent cells and absent heads show the surface beneath.
        image = picture(drawn, [0, *self.table[1:]])
        image.setDevicePixelRatio(self.ratio)
        return Sheet(self, image)


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Thumbnails as they are painted, and how that was done."""

    plan: SheetPlan
    image: QImage


def sheet(
    levels: np.ndarray,
    size: tuple[int, int],
    step: tuple[int, int],
    *,
    scale: Scale = "fixed",
    signed: bool = False,
) -> np.ndarray:
    """(rows · step, columns · step) uint8 levels, what lies between thumbnails absent.

    `levels` is (rows, columns, n, n) as the figures give them; `size` and `step` are the height
    and width of a thumbnail without and with its gap, in device pixels; `signed` levels are those
    of a difference, with zero in the middle.
    """
    height, width = max(size[0], 1), max(size[1], 1)
    if signed:
        fitted = farthest(levels, lambda array: _fit(array, height, width))
        shown = _shown_signed(fitted, scale)
    else:
        shown = _shown(_fit(levels, height, width), scale)
    rows, columns = shown.shape[:2]
    result = np.zeros((rows, step[0], columns, step[1]), np.uint8)
    result[:, :height, :, :width] = shown.transpose(0, 2, 1, 3)
    return result.reshape(rows * step[0], columns * step[1])


def reordered(
    levels: np.ndarray, order: Sequence[tuple[int, int]], shape: tuple[int, int]
) -> np.ndarray:
    """(rows, columns, n, n): the heads in their new places, the rest absent."""
    result = np.zeros((shape[0] * shape[1], *levels.shape[2:]), levels.dtype)
    layers, heads = np.array(order, np.intp).reshape(-1, 2).T
    result[: len(order)] = levels[layers, heads]
    return result.reshape(*shape, *levels.shape[2:])


def _fit(levels: np.ndarray, height: int, width: int) -> np.ndarray:
    """(L, H, height, width): thumbnails at their size on screen, maxima kept where they shrink."""
    size = levels.shape[2]
    down, across = np.arange(height) * size // height, np.arange(width) * size // width
    wide = maxima(levels, across, 3) if width < size else levels.take(across, 3)
    return maxima(wide, down, 2) if height < size else wide.take(down, 2)


def _shown(levels: np.ndarray, scale: Scale) -> np.ndarray:
    """uint16 levels of the figures as uint8 levels of the colour table."""
    weights = levels.astype(np.float32) - READ
    weights *= np.float32(1 / LEVELS)
    found = _scaled(np.maximum(weights, 0, out=weights), scale) * np.float32(255 - FIRST_LEVEL)
    return np.where(levels < READ, levels, np.rint(found) + FIRST_LEVEL).astype(np.uint8)


def _shown_signed(levels: np.ndarray, scale: Scale) -> np.ndarray:
    """The same for a difference: WIDE_MIDDLE becomes MIDDLE."""
    change = levels.astype(np.float32) - WIDE_MIDDLE
    change[levels < READ] = 0
    change *= np.float32(1 / (WIDE_MIDDLE - READ))
    found = _scaled(change, scale) * np.float32(MIDDLE - FIRST_LEVEL)
    return np.where(levels < READ, levels, np.rint(found) + MIDDLE).astype(np.uint8)


def _scaled(weights: np.ndarray, scale: Scale) -> np.ndarray:
    """(L, H, height, width) shares; `max` is the largest weight of each head."""
    top: float | np.ndarray = 1.0
    if scale == "row":
        top = row_tops(weights)
    elif scale == "max":
        top = row_tops(weights.reshape(*weights.shape[:2], -1))[..., None]
    return scaled(weights, scale, top)
