"""Rows of tokens, column under column: what the padded grid and the loss view are drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from explorer.trace.step import Token

Mood = Literal["plain", "good", "bad", "muted"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the grid; `level` 0..1 colours it."""

    text: str
    tip: str = ""
    token: Token | None = None  # drawn as a token's box
    mood: Mood = "plain"
    level: float | None = None
    framed: bool = False


@dataclass(frozen=True, slots=True)
class GridLine:
    """One line of a block: its name on the left, then one cell a slot (None = blank)."""

    name: str
    cells: tuple[Cell | None, ...]
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """One bar: a token, and its probability."""

    label: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class GridChart:
    """A few bars under a heading; charts of a block stand side by side."""

    title: str
    short: str  # the heading where there is room for one line only
    mood: Mood
    shares: tuple[Share, ...]
    tip: str = ""


@dataclass(frozen=True, slots=True)
class GridBlock:
    """What is shown of one row of the batch."""

    title: str
    mood: Mood
    lines: tuple[GridLine, ...]
    charts: tuple[GridChart, ...] = ()
    notes: tuple[tuple[str, str], ...] = field(default=())  # name on the left, text
