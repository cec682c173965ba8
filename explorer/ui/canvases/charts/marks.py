"""What can be drawn in a chart: columns, lines, bands, notes, and all of a figure together.

N: places along the x axis.  Colours are names of the theme's attributes, so that a change of theme
changes them.  Values are those of the axes, never pixels or logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PySide6.QtGui import QColor

from explorer.ui.canvases.charts.axis import Axis
from explorer.ui.look.theme import Theme

Dots = Literal["", "square", "round", "ring"]
Look = Literal["filled", "hatched", "outline"]


@dataclass(frozen=True, slots=True)
class Paint:
    """A colour, weakened towards the card behind it where `strength` is below 1."""

    colour: str
    strength: float = 1.0

    def of(self, theme: Theme) -> QColor:
        """As it looks in a theme."""
        full = QColor(getattr(theme, self.colour))
        if self.strength >= 1:
            return full
        card = QColor(theme.card)
        parts = ((c.red(), c.green(), c.blue()) for c in (full, card))
        return QColor(*(round(b + (a - b) * self.strength) for a, b in zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """Upright bars of one colour; from `base` to `top` each."""

    name: str
    x: np.ndarray  # (N,) middles
    base: np.ndarray  # (N,)
    top: np.ndarray  # (N,)
    paint: Paint
    width: float = 1.0  # of the room a bar has, on the x axis
    look: Look = "filled"  # an outline is dashed


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Points joined by a line."""

    name: str
    x: np.ndarray  # (N,)
    y: np.ndarray  # (N,) NaN: a gap
    paint: Paint
    width: float = 1.5  # pixels at a zoom of 1; 0 = dots alone
    dots: Dots = ""
    dashed: bool = False
    pairs: bool = False  # each two points are a line of their own
    read: bool = True  # False: an aid to the eye, which no legend and no reading names


@dataclass(frozen=True, slots=True)
class Band:
    """A part of the x axis in a colour, behind everything."""

    first: float
    end: float
    colour: str


@dataclass(frozen=True, slots=True)
class Note:
    """Words at a point: to its left or right, above or below it."""

    x: float
    y: float
    words: str
    colour: str
    left: bool = False
    below: bool = False


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One row of a legend: a colour and its word."""

    words: str
    colour: str  # theme attribute
    strength: float = 1.0
    look: Literal["filled", "outline", "line", "square", "round", "ring"] = "filled"


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """All that a chart draws."""

    x: Axis
    y: Axis
    places: np.ndarray  # (N,) along x, rising: where the cursor can stand
    x_range: tuple[float, float]  # all of it, in values
    y_range: tuple[float, float]
    bars: Sequence[Bars] = ()
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    notes: Sequence[Note] = ()
    legend: Sequence[LegendEntry] = ()
    marked: tuple[float, float] | None = None  # a part of the x axis that is selected
    top: float | None = None  # how high the values go, if that is beyond `y_range`


def legend_of(*lines: Line) -> list[LegendEntry]:
    """One row for each line that is to be read."""
    return [
        LegendEntry(line.name, line.paint.colour, line.paint.strength, line.dots or "line")
        for line in lines
        if line.read
    ]
