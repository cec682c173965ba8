"""A board of cells, each with a word and a colour; rows from the bottom up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoardCell:
    """One cell; its colour is `level`: 0..1, on a signed board -1..1.  `marked`: underlined."""

    text: str
    level: float
    marked: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class CellsFigure:
    """What a board shows; cells and their words are made for those that are looked at."""

    rows: Sequence[str]  # names, from the bottom up
    columns: Sequence[str]
    cell: Callable[[int, int], BoardCell | None]  # of (row, column); None = not known
    words: Callable[[int, int], str]
    corner: str = ""  # what the columns are, and the rows
    signed: bool = False
    wide: float = 68.0  # pixels of a cell, at a zoom of 1


NO_CELLS = CellsFigure((), (), lambda row, column: None, lambda row, column: "")
