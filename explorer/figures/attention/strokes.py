"""What is drawn on a map: the cells that a stroke passes, as few areas as they make up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from explorer.trace.interventions.cells import ALLOWED, CUT, of_head
from explorer.trace.interventions.kinds import MOST, Cells, Effect, Intervention, Span

Cell = tuple[int, int]  # query and key
Shape = Literal["cells", "rectangle", "rows", "columns", "diagonals", "outside"]
Reach = Literal["head", "layer", "all"]

AS_IT_IS, CUT_NOW, ALLOWED_NOW, CUT_NEXT, ALLOWED_NEXT, RESTORED_NEXT = range(6)
"""Of a cell: as the model has it, or changed in this run and the next, or only in the next."""


@dataclass(frozen=True, slots=True)
class MaskBrush:
    """What a stroke does, which cells it takes, and in which heads."""

    effect: Effect = "cut"
    shape: Shape = "cells"
    reach: Reach = "head"

    def areas(self, path: Sequence[Cell], layer: int, head: int) -> tuple[Cells, ...]:
        """What a stroke over these cells changes; () where no cell has its shape.

        Rows and columns go on for tokens that are still to come; so do diagonals.
        """
        queries = _span(query for query, _ in path)
        keys = _span(key for _, key in path)
        if self.shape == "cells":
            return tuple(
                self._area(layer, head, queries=rows, keys=columns)
                for rows, columns in rectangles(path)
            )
        if self.shape == "rectangle":
            return (self._area(layer, head, queries=queries, keys=keys),)
        if self.shape == "rows":
            return (self._area(layer, head, queries=queries),)
        if self.shape == "columns":
            return (self._area(layer, head, keys=keys),)
        first, last = _span(query - key for query, key in path)
        if last < 0:  # later than the query: no diagonal there has a name
            return ()
        back = (max(first, 0), MOST if self.shape == "outside" else last)
        return (self._area(layer, head, back=back),)

    def _area(self, layer: int, head: int, **spans: Span) -> Cells:
        return Cells(
            layer=None if self.reach == "all" else layer,
            head=head if self.reach == "head" else None,
            allowed=self.effect == "allow",
            restored=self.effect == "restore",
            **spans,
        )


def _span(numbers: Iterable[int]) -> Span:
    found = list(numbers)
    return min(found), max(found)


def rectangles(cells: Iterable[Cell]) -> list[tuple[Span, Span]]:
    """The cells as rectangles, each of rows that have the same run of keys."""
    done: list[tuple[Span, Span]] = []
    growing: dict[Span, Span] = {}  # rows by run of keys
    by_row: dict[int, set[int]] = {}
    for query, key in cells:
        by_row.setdefault(query, set()).add(key)
    for query in sorted(by_row):
        runs = _runs(sorted(by_row[query]))
        goes_on = {keys: rows for keys, rows in growing.items() if rows[1] == query - 1}
        done += [(rows, keys) for keys, rows in growing.items() if keys not in goes_on]
        ended = [keys for keys in goes_on if keys not in runs]
        done += [(goes_on[keys], keys) for keys in ended]
        growing = {keys: (goes_on.get(keys, (query, query))[0], query) for keys in runs}
    done += [(rows, keys) for keys, rows in growing.items()]
    return sorted(done)


def _runs(numbers: Sequence[int]) -> list[Span]:
    """Ascending numbers as (first, last) of those that follow each other."""
    found: list[Span] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def between(start: Cell, end: Cell) -> list[Cell]:
    """The cells on a straight line, `start` left out: the mouse skips some when it is fast."""
    steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    down, across = end[0] - start[0], end[1] - start[1]
    return [
        (start[0] + round(down * i / steps), start[1] + round(across * i / steps))
        for i in range(1, steps + 1)
    ]


@dataclass(frozen=True, slots=True)
class DrawnMask:
    """What the run on screen changes in the cells of one head, and what the next run will."""

    now: tuple[Intervention, ...]
    next: tuple[Intervention, ...]
    layer: int
    head: int
    causal: bool = True  # later keys are masked in any case

    def states(self, queries: Span, keys: Span, stride: int = 1) -> np.ndarray:
        """(Q, K) uint8, AS_IT_IS to RESTORED_NEXT.

        `queries` and `keys` are the first slot and the one after the last; with a `stride` each
        cell stands for that many each way, and shows one that is changed.
        """
        now, after = (
            of_head(asked, self.layer, self.head, queries, keys, stride)
            for asked in (self.now, self.next)
        )
        found: np.ndarray = np.zeros(now.shape, np.uint8)
        found[(after == CUT)] = CUT_NEXT
        found[(after == ALLOWED)] = ALLOWED_NEXT
        found[(after == now) & (now == CUT)] = CUT_NOW
        found[(after == now) & (now == ALLOWED)] = ALLOWED_NOW
        found[(now != 0) & (after == 0)] = RESTORED_NEXT
        if self.causal:
            down = queries[0] + stride * np.arange(found.shape[0])
            across = keys[0] + stride * np.arange(found.shape[1])
            later = across[None, :] > down[:, None] + stride - 1
            found[later & (now != ALLOWED) & (after != ALLOWED)] = AS_IT_IS
        return found

    def state(self, query: int, key: int) -> int:
        """Of one cell."""
        return int(self.states((query, query + 1), (key, key + 1))[0, 0])

    def emptied(self, first: int, last: int, slots: int) -> list[int]:
        """Queries from `first` to `last` that will have no key left among the `slots`."""
        states = of_head(self.next, self.layer, self.head, (first, last + 1), (0, slots))
        back = np.arange(first, last + 1)[:, None] - np.arange(slots)[None, :]
        masked = (back < 0) & self.causal
        open_ = np.where(masked, states == ALLOWED, states != CUT)
        return [first + int(row) for row in np.flatnonzero(~open_.any(axis=1))]

    @property
    def empty(self) -> bool:
        """True if neither run changes a cell of this head."""
        return not any(
            isinstance(one, Cells)
            and one.layer in (None, self.layer)
            and one.head in (None, self.head)
            for one in (*self.now, *self.next)
        )
