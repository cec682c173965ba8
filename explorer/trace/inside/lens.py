"""The logit lens: what is asked, and the board that is found.

Axes: R rows (the embedding, each layer's output, the last of them "final"), N slots that were asked
for, K most probable tokens.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from explorer.trace.experiments import Bytes, Count, Experiment, Measure, Result
from explorer.trace.inside.arrays import FLOAT, WHOLE, unpacked

MOST_LISTED = 1 << 20
Names = Annotated[tuple[Annotated[str, Meta(max_length=400)], ...], Meta(max_length=MOST_LISTED)]


class LensBoard(Result, frozen=True, kw_only=True):
    """What the model's own final norm and head make of the stream after each layer.

    A reading, not a belief: early layers were never trained to be read this way.  The last row is
    the model's real prediction.  `slots` may be the first of those asked for.
    """

    rows: Names  # R: "embedding", "0", …, "final"
    slots: Annotated[tuple[Count, ...], Meta(max_length=MOST_LISTED)]  # N
    asked: Count  # slots in all
    top: Count  # K
    id_bytes: Bytes  # (R, N, K) the most probable ids, the best first
    probability_bytes: Bytes  # (R, N, K) their probabilities
    entropy_bytes: Bytes  # (R, N) bits
    kl_bytes: Bytes  # (R, N) bits that the row wastes: KL(final ‖ row)
    final_rank_bytes: Bytes  # (R, N) rank of the final row's best token, 0 = the row's best
    final_probability_bytes: Bytes  # (R, N) what the row gives it
    spelled_ids: Annotated[tuple[Count, ...], Meta(max_length=MOST_LISTED)]  # all ids of the board
    spelled: Annotated[tuple[Bytes, ...], Meta(max_length=MOST_LISTED)]  # their bytes
    final_gap: Measure  # largest difference of the last row from the model's own logits
    tolerance: Measure  # of final_gap

    def __post_init__(self) -> None:
        cells = (self.entropy_bits, self.kl_to_final_bits, self.rank_of_final)
        if any(one.shape != self.ids.shape[:2] for one in (*cells, self.probability_of_final)):
            raise ValueError("not one figure a cell")
        if self.probabilities.shape != self.ids.shape:
            raise ValueError("not one probability a token")
        if len(self.spelled) != len(self.spelled_ids):
            raise ValueError("not one spelling an id")

    @property
    def ids(self) -> np.ndarray:
        """(R, N, K) int32."""
        return unpacked(self.id_bytes, WHOLE, len(self.rows), len(self.slots), self.top)

    @property
    def probabilities(self) -> np.ndarray:
        """(R, N, K) float32."""
        shape = len(self.rows), len(self.slots), self.top
        return unpacked(self.probability_bytes, FLOAT, *shape)

    @property
    def entropy_bits(self) -> np.ndarray:
        """(R, N) float32."""
        return self._board(self.entropy_bytes)

    @property
    def kl_to_final_bits(self) -> np.ndarray:
        """(R, N) float32; 0 in the last row."""
        return self._board(self.kl_bytes)

    @property
    def rank_of_final(self) -> np.ndarray:
        """(R, N) int32; 0 in the last row."""
        return self._board(self.final_rank_bytes, WHOLE)

    @property
    def probability_of_final(self) -> np.ndarray:
        """(R, N) float32."""
        return self._board(self.final_probability_bytes)

    def _board(self, data: bytes, kind: str = FLOAT) -> np.ndarray:
        return unpacked(data, kind, len(self.rows), len(self.slots))

    @property
    def spelling(self) -> dict[int, bytes]:
        """The bytes of every id on the board."""
        return dict(zip(self.spelled_ids, self.spelled, strict=True))


class ReadLens(Experiment, frozen=True, kw_only=True):
    """Read the stream after every layer through the model's own final norm and head."""

    RESULT = LensBoard
    RUNNING = "Reading the layers…"
    CANCELLED = "Cancelled. The positions so far are kept."
    IN_PARTS = True

    chosen: tuple[int, ...] = ()
    slots: tuple[int, ...] = ()  # empty = every token of the run
    top: int = 5
