"""Which cells of a large map are seen where: zoom, pan, and the cells behind each pixel.

Lengths are in pixels of the plot, cells in rows and columns; no Qt in here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.figures.drawing.pooling import farthest, maxima, pool_columns, pool_rows

_STRIDES = (1, 2, 3, 4, 5, 7)


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """Levels with `stride` × `stride` cells in one, the largest (of a difference: change) kept."""

    levels: np.ndarray
    stride: int


def smaller(levels: np.ndarray, least: int = 512, signed: bool = False) -> tuple[Pooled, ...]:
    """A map at half, a quarter, … of its size, while that is over half of `least`; () if small.

    Made where maps are worked out, so that painting one of thousands of tokens takes no longer
    than painting a small one.
    """
    found: list[Pooled] = []
    stride = 1
    while max(levels.shape) > least:
        levels = farthest(levels, _halved) if signed else _halved(levels)
        stride *= 2
        found.append(Pooled(levels, stride))
    return tuple(found)


def _halved(levels: np.ndarray) -> np.ndarray:
    return pool_columns(pool_rows(levels, 0, 2), 0, 2)


@dataclass
class CellView:
    """A window of `width` × `height` pixels onto rows × columns square cells."""

    rows: int = 0
    columns: int = 0
    width: float = 0.0
    height: float = 0.0
    largest: float = 56.0  # pixels per cell at most
    scale: float = 1.0  # pixels per cell
    left: float = 0.0  # first column in view, may be inside a cell
    top: float = 0.0  # first row in view
    fitted: bool = True  # follows the size of plot and map

    def set_size(self, width: float, height: float, largest: float) -> None:
        """The plot has another size."""
        self.width, self.height, self.largest = max(width, 1.0), max(height, 1.0), largest
        self._settle()

    def set_cells(self, rows: int, columns: int) -> None:
        """The map has another shape; a zoomed view stays where it is."""
        if (rows, columns) != (self.rows, self.columns):
            self.rows, self.columns = rows, columns
            self._settle()

    @property
    def fit_scale(self) -> float:
        """Pixels per cell at which everything is in view."""
        if not self.rows or not self.columns:
            return 1.0
        scale = min(self.width / self.columns, self.height / self.rows, self.largest)
        return float(int(scale)) if scale >= 12 else scale

    def fit(self) -> None:
        """Show everything."""
        self.fitted = True
        self._settle()

    def zoom(self, factor: float, x: float, y: float) -> None:
        """Zoom by a factor; the cell under (x, y) stays there."""
        scale = min(max(self.scale * factor, self.fit_scale), max(self.largest, self.fit_scale))
        column, row = self.left + x / self.scale, self.top + y / self.scale
        self.fitted = scale <= self.fit_scale * 1.001
        self.scale = scale
        self.left, self.top = column - x / scale, row - y / scale
        self._settle()

    @property
    def part(self) -> tuple[float, float, float] | None:
        """How many times larger than the whole, first column and row in view; None = the whole."""
        return None if self.fitted else (self.scale / self.fit_scale, self.left, self.top)

    def show_part(self, zoom: float, left: float, top: float) -> None:
        """Show such a part, in a plot of any size."""
        self.fitted = zoom <= 1.001
        self.scale, self.left, self.top = self.fit_scale * zoom, left, top
        self._settle()

    def pan(self, dx: float, dy: float) -> None:
        """Move the map by so many pixels."""
        self.left -= dx / self.scale
        self.top -= dy / self.scale
        self._settle()

    def reveal(self, row: int, column: int) -> None:
        """Bring a cell into view."""
        for name, at, span in (("top", row, self.height), ("left", column, self.width)):
            first = getattr(self, name)
            room = span / self.scale
            if at < first:
                setattr(self, name, float(at))
            elif at + 1 > first + room:
                setattr(self, name, at + 1 - room)
        self._settle()

    def _settle(self) -> None:
        if self.fitted:
            self.scale, self.left, self.top = self.fit_scale, 0.0, 0.0
            return
        self.scale = min(max(self.scale, self.fit_scale), max(self.largest, self.fit_scale))
        self.left = min(max(self.left, 0.0), max(0.0, self.columns - self.width / self.scale))
        self.top = min(max(self.top, 0.0), max(0.0, self.rows - self.height / self.scale))

    @property
    def drawn_width(self) -> float:
        """Pixels that cells fill, from the left."""
        return min(self.width, (self.columns - self.left) * self.scale)

    @property
    def drawn_height(self) -> float:
        """Pixels that cells fill, from the top."""
        return min(self.height, (self.rows - self.top) * self.scale)

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """(row, column) under a pixel of the plot."""
        if not (0 <= x < self.drawn_width and 0 <= y < self.drawn_height):
            return None
        row, column = int(self.top + y / self.scale), int(self.left + x / self.scale)
        return (row, column) if row < self.rows and column < self.columns else None

    def x_of(self, column: float) -> float:
        """Where a column begins."""
        return (column - self.left) * self.scale

    def y_of(self, row: float) -> float:
        """Where a row begins."""
        return (row - self.top) * self.scale

    def pixels(
        self, levels: np.ndarray, ratio: float, pooled: Sequence[Pooled] = (), signed: bool = False
    ) -> np.ndarray:
        """(height, width) device pixels of a (rows, columns) array of levels.

        Where several cells share a pixel the largest shows, or of a difference (`signed`) the one
        farthest from zero: no hot cell is ever lost.  `pooled` holds the same levels made ever
        smaller; the smallest is used whose cells are not larger than a pixel.
        """
        cell = self.scale * ratio  # device pixels
        left, top, size = self.left, self.top, (self.rows, self.columns)
        for one in reversed(pooled):
            if cell * one.stride <= 1:
                levels, cell = one.levels, cell * one.stride
                left, top, size = left / one.stride, top / one.stride, levels.shape
                break
        down = _starts(top, cell, self.drawn_height * ratio, size[0])
        across = _starts(left, cell, self.drawn_width * ratio, size[1])
        if not len(down) or not len(across):
            return np.zeros((0, 0), levels.dtype)
        if cell >= 1:
            return np.ascontiguousarray(levels[down][:, across])
        bottom = min(size[0], int(np.ceil(top + self.drawn_height * ratio / cell)))
        right = min(size[1], int(np.ceil(left + self.drawn_width * ratio / cell)))

        def shrink(array: np.ndarray) -> np.ndarray:
            return maxima(maxima(array, down - down[0], axis=0), across - across[0], axis=1)

        seen = levels[down[0] : bottom, across[0] : right]
        return np.ascontiguousarray(farthest(seen, shrink) if signed else shrink(seen))

    def stride(self, axis_room: float) -> int:
        """Every how many cells a label of that many pixels fits: 1, 2, 3, 4, 5, 7, 10, 20, …"""
        decade = 1
        while True:
            for step in _STRIDES:
                if step * decade * self.scale >= axis_room:
                    return step * decade
            decade *= 10


def _starts(first: float, scale: float, length: float, cells: int) -> np.ndarray:
    """(pixels,) first cell of each device pixel."""
    count = max(int(np.ceil(length - 1e-6)), 0)
    cell = (first + np.arange(count) / scale).astype(np.intp)
    return np.minimum(cell, cells - 1)
