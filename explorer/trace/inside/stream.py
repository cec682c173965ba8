"""The residual stream: what is asked, and what each part was found to write to it.

Axes: R rows (the embedding, each layer's output, the last of them "final"), N slots, W writes.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from explorer.trace.experiments import Bytes, Count, Experiment, Measure, Result
from explorer.trace.inside.arrays import FLOAT, unpacked
from explorer.trace.inside.lens import MOST_LISTED, Names

WriteKind = Literal["attention", "mixer", "mlp", "other"]  # mixer: recurrent or convolutional


class StreamWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a layer that adds to the stream."""

    layer: Count
    name: Annotated[str, Meta(max_length=400)]  # of the module inside its layer
    kind: WriteKind


class ResidualStream(Result, frozen=True, kw_only=True):
    """How long the stream is after each layer, and what was added to it there.

    `slots` may be the first of those asked for.
    """

    rows: Names  # R
    slots: Annotated[tuple[Count, ...], Meta(max_length=MOST_LISTED)]  # N
    writes: Annotated[tuple[StreamWrite, ...], Meta(max_length=MOST_LISTED)]  # W, in order
    norm_bytes: Bytes  # (R, N) length of the stream
    cosine_bytes: Bytes  # (R, N) with the last layer's output
    write_norm_bytes: Bytes  # (W, N)
    write_cosine_bytes: Bytes  # (W, N) with the last layer's output
    gap: Measure  # largest of (layer's change - its writes), by the largest entry of that change

    def __post_init__(self) -> None:
        shapes = {self.norms.shape, self.cosines.shape}
        written = {self.write_norms.shape, self.write_cosines.shape}
        if len(shapes) > 1 or len(written) > 1:
            raise ValueError("not one figure a cell")

    @property
    def norms(self) -> np.ndarray:
        """(R, N) float32."""
        return unpacked(self.norm_bytes, FLOAT, len(self.rows), len(self.slots))

    @property
    def cosines(self) -> np.ndarray:
        """(R, N) float32, -1 to 1; 0 where a vector is zero."""
        return unpacked(self.cosine_bytes, FLOAT, len(self.rows), len(self.slots))

    @property
    def write_norms(self) -> np.ndarray:
        """(W, N) float32."""
        return unpacked(self.write_norm_bytes, FLOAT, len(self.writes), len(self.slots))

    @property
    def write_cosines(self) -> np.ndarray:
        """(W, N) float32, -1 to 1; 0 where a vector is zero."""
        return unpacked(self.write_cosine_bytes, FLOAT, len(self.writes), len(self.slots))


class ReadStream(Experiment, frozen=True, kw_only=True):
    """Length and direction of the residual stream, and what each part adds to it."""

    RESULT = ResidualStream
    RUNNING = "Reading the residual stream…"
    CANCELLED = "Cancelled. The positions so far are kept."
    IN_PARTS = True

    chosen: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()  # empty = every token of the run
