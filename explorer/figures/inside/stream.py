"""The residual stream in figures: how long it is, what is added to it, and where both point.

Axes: R rows (the embedding first, "final" last), W writes in the order in which they are added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import log
from typing import Literal

import numpy as np

from explorer.figures.inside import columns
from explorer.trace.inside.stream import ResidualStream, StreamWrite
from explorer.trace.trace import Trace

Part = tuple[str, int]  # a kind of write, and which of that kind in its layer; ("", 0): the stream
Measure = Literal["norm", "cosine"]
STREAM: Part = ("", 0)


@dataclass(frozen=True, slots=True, eq=False)
class StreamColumn:
    """What was measured at one token."""

    norms: np.ndarray  # (R,) of the stream
    cosines: np.ndarray  # (R,) with the last layer's output
    write_norms: np.ndarray  # (W,)
    write_cosines: np.ndarray  # (W,)
    chosen: tuple[int, ...]  # tokens that had been generated when it was read


@dataclass(frozen=True, eq=False)
class StreamColumns:
    """All that has been read of one run."""

    rows: tuple[str, ...] = ()
    writes: tuple[StreamWrite, ...] = ()
    columns: Mapping[int, StreamColumn] = field(default_factory=dict)  # by slot
    gap: float = 0.0  # largest part of a layer's change that its writes don't make up

    def with_result(self, found: ResidualStream, chosen: tuple[int, ...]) -> StreamColumns:
        """With these columns too, read when `chosen` had been generated."""
        same = (self.rows, self.writes) in (((), ()), (found.rows, found.writes))
        before = self if same else StreamColumns()
        norms, cosines = found.norms, found.cosines
        write_norms, write_cosines = found.write_norms, found.write_cosines
        fresh = {
            slot: StreamColumn(
                norms[:, n], cosines[:, n], write_norms[:, n], write_cosines[:, n], chosen
            )
            for n, slot in enumerate(found.slots)
        }
        return StreamColumns(
            found.rows, found.writes, {**before.columns, **fresh}, max(before.gap, found.gap)
        )

    def true_of(self, trace: Trace, step: int) -> tuple[StreamColumn | None, ...]:
        """As `columns.true_of`."""
        return columns.true_of(self.columns, trace, step)

    @property
    def layers(self) -> int:
        """Layers that the rows are of."""
        return max(0, len(self.rows) - 1)

    @cached_property
    def parts(self) -> dict[Part, dict[int, int]]:
        """What writes in the layers, in their order: the place of each layer's write."""
        found: dict[Part, dict[int, int]] = {}
        counts: Counter[tuple[int, str]] = Counter()
        for place, write in enumerate(self.writes):
            part = (write.kind, counts[write.layer, write.kind])
            counts[write.layer, write.kind] += 1
            found.setdefault(part, {})[write.layer] = place
        return found

    def by_layer(self, column: StreamColumn, part: Part, measure: Measure) -> np.ndarray:
        """(R,) of the stream, else (L,) with NaN in layers that have no such part."""
        if part == STREAM:
            return column.norms if measure == "norm" else column.cosines
        figures = column.write_norms if measure == "norm" else column.write_cosines
        found = np.full(self.layers, np.nan)
        for layer, place in self.parts.get(part, {}).items():
            found[layer] = figures[place]
        return found


@dataclass(frozen=True, slots=True)
class Colours:
    """From figures to levels: cosines as they are, norms on a logarithmic scale."""

    measure: Measure
    low: float = 1.0
    high: float = 1.0

    def level(self, value: float) -> float:
        """-1 to 1 of a cosine, 0 to 1 of a norm."""
        if self.measure == "cosine":
            return value
        if self.high <= self.low or value <= 0:
            return 1.0 if value >= self.high > 0 else 0.0
        return min(1.0, max(0.0, log(value / self.low) / log(self.high / self.low)))


def colours_of(figures: Sequence[np.ndarray], measure: Measure) -> Colours:
    """Those that hold every figure of a board."""
    if measure == "cosine" or not figures:
        return Colours(measure)
    whole = np.concatenate([one.ravel() for one in figures])
    known = whole[whole > 0]  # NaN is not
    if not len(known):
        return Colours(measure)
    return Colours(measure, float(known.min()), float(known.max()))


def table(
    known: StreamColumns, slots: Iterable[tuple[int, StreamColumn | None]]
) -> Iterator[Sequence[object]]:
    """Every figure of these slots: the stream after each row, and each write."""
    yield "position", "layer", "part", "module", "norm", "cosine_with_final"
    for slot, column in slots:
        if column is None:
            continue
        for row, name in enumerate(known.rows):
            yield slot, name, "stream", "", float(column.norms[row]), float(column.cosines[row])
        for place, write in enumerate(known.writes):
            norm, cosine = column.write_norms[place], column.write_cosines[place]
            yield slot, write.layer, write.kind, write.name, float(norm), float(cosine)
