"""Lengths and directions of the residual stream as they are read, some slots after others.

Axes: n slots of one portion, d the stream's width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.engine.callbacks import Report
from explorer.engine.inside.telling import Telling
from explorer.trace.inside.arrays import packed
from explorer.trace.inside.stream import ResidualStream, StreamWrite


@dataclass(slots=True)
class StreamReading:
    """What has been read so far; `add` tells `part` of it now and then."""

    asked: int  # slots
    progress: Report
    part: Callable[[ResidualStream], None]
    rows: tuple[str, ...] = ()
    writes: tuple[StreamWrite, ...] = ()
    gap: float = 0.0
    _slots: list[int] = field(default_factory=list)
    _found: list[tuple[np.ndarray, ...]] = field(default_factory=list)
    _telling: Telling = field(init=False)

    def __post_init__(self) -> None:
        self._telling = Telling(self.asked)

    def add(
        self,
        slots: Sequence[int],
        streams: Iterable[np.ndarray],
        added: Iterable[np.ndarray],
        final: np.ndarray,
        gap: float,
    ) -> None:
        """The stream before the first layer and after each, and every write; all (n, d)."""
        target = final.astype(np.float64)
        self._found.append((*_figures(streams, target), *_figures(added, target)))
        self._slots += slots
        self.gap = max(self.gap, gap)
        done = len(self._slots)
        self.progress("Reading the residual stream", done / self.asked)
        if self._telling.due(done):
            self.part(self.result())

    def result(self) -> ResidualStream:
        """Everything so far."""
        arrays = [packed(np.concatenate(parts, 1)) for parts in zip(*self._found, strict=True)]
        return ResidualStream(
            rows=self.rows,
            slots=tuple(self._slots),
            writes=self.writes,
            norm_bytes=arrays[0],
            cosine_bytes=arrays[1],
            write_norm_bytes=arrays[2],
            write_cosine_bytes=arrays[3],
            gap=self.gap,
        )


def _figures(vectors: Iterable[np.ndarray], final: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """((R, n) lengths, (R, n) cosines with `final` (n, d))."""
    whole, lengths, cosines = np.linalg.norm(final, axis=-1), [], []
    for vector in vectors:  # one by one: all of them in float64 would be large
        wide = vector.astype(np.float64)
        length = np.linalg.norm(wide, axis=-1)
        size = np.maximum(length * whole, 1e-30)
        lengths.append(length)
        cosines.append(((wide * final).sum(-1) / size).clip(-1, 1))
    return np.stack(lengths), np.stack(cosines)
