"""What a column chart draws: the columns, what they are made of, and what is computed for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PySide6.QtGui import QColor

from explorer.ui.look.theme import Theme


@dataclass(frozen=True, slots=True, eq=False)
class StripPart:
    """One part of every column, stacked on those before it."""

    heights: np.ndarray  # (N,) float64
    colour: str = ""  # theme attribute; "" = the colour of the column's kind
    strength: float = 1.0  # 0..1: how much of the colour, the card's own being the rest

    def ink(self, theme: Theme, kind: str) -> QColor:
        """The colour it is drawn in."""
        return mixed(theme, self.colour or kind, self.strength)


@dataclass(frozen=True, slots=True, eq=False)
class StripColumns:
    """What is drawn.  `kinds` picks a colour (theme attribute) and a shape for each column."""

    values: np.ndarray  # (N,) float64
    kinds: Sequence[str] = ()  # (N,) theme colour names; shorter = the first for all
    parts: Sequence[StripPart] = ()  # what the columns are made of, from the bottom up; empty = one
    hollow: frozenset[int] = frozenset()  # drawn as outlines: not to be compared with the others
    cap: float | None = None  # higher columns are cut there, visibly
    level: float | None = None  # a line across, in the colour of computed figures
    level_words: str = ""  # what that line is, in its colour above the columns
    marks: np.ndarray | None = None  # (N,) float64, a dash across each column; NaN = none
    names: Sequence[str] = field(default=())  # (N,) under the columns; empty = their numbers


def mixed(theme: Theme, colour: str, strength: float) -> QColor:
    """A colour of the theme, weakened towards the card behind it."""
    full = QColor(getattr(theme, colour))
    if strength >= 1:
        return full
    card = QColor(theme.card)
    parts = ((c.red(), c.green(), c.blue()) for c in (full, card))
    return QColor(*(round(b + (a - b) * strength) for a, b in zip(*parts, strict=True)))
