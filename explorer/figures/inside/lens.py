"""The logit lens as a board: columns that were read at any time, for as long as they are true.

Axes: R rows (the embedding first, "final" last), K tokens of a cell, the best first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, log2
from typing import Literal

import numpy as np

from explorer.figures.inside import columns
from explorer.trace.inside.lens import LensBoard
from explorer.trace.step import Token
from explorer.trace.trace import Trace

By = Literal["probability", "rank", "entropy", "kl"]


@dataclass(frozen=True, slots=True, eq=False)
class LensColumn:
    """What one token's stream reads as, after every layer."""

    ids: np.ndarray  # (R, K) int32
    shares: np.ndarray  # (R, K) float32, their probabilities
    entropy_bits: np.ndarray  # (R,)
    kl_bits: np.ndarray  # (R,) KL(final ‖ row)
    final_rank: np.ndarray  # (R,) of the final choice; 0 = the row's best
    final_share: np.ndarray  # (R,) what the row gives to the final choice
    chosen: tuple[int, ...]  # tokens that had been generated when it was read

    @property
    def final_id(self) -> int:
        """What the model really finds most probable."""
        return int(self.ids[-1, 0])

    def level(self, row: int, by: By, vocabulary: int) -> float:
        """0 to 1: the colour of a cell.  Ranks are on a logarithmic scale, the best is 1."""
        most = log2(max(vocabulary, 2))
        if by == "probability":
            return float(self.shares[row, 0])
        if by == "rank":
            return max(0.0, 1 - log2(1 + float(self.final_rank[row])) / most)
        bits = self.entropy_bits[row] if by == "entropy" else self.kl_bits[row]
        return min(1.0, float(bits) / most)


@dataclass(frozen=True, slots=True, eq=False)
class LensColumns:
    """All that has been read of one run."""

    rows: tuple[str, ...] = ()
    columns: Mapping[int, LensColumn] = field(default_factory=dict)  # by slot
    spelling: Mapping[int, bytes] = field(default_factory=dict)  # of the ids on the board
    final_gap: float = 0.0  # largest difference of the last row from the model's own logits

    def with_result(self, found: LensBoard, chosen: tuple[int, ...]) -> LensColumns:
        """With these columns too, read when `chosen` had been generated."""
        before = self if self.rows in ((), found.rows) else LensColumns()
        ids, shares = found.ids, found.probabilities
        entropy, kl = found.entropy_bits, found.kl_to_final_bits
        rank, share = found.rank_of_final, found.probability_of_final
        fresh = {
            slot: LensColumn(
                ids[:, n], shares[:, n], entropy[:, n], kl[:, n], rank[:, n], share[:, n], chosen
            )
            for n, slot in enumerate(found.slots)
        }
        return replace(
            before,
            rows=found.rows,
            columns={**before.columns, **fresh},
            spelling={**before.spelling, **found.spelling},
            final_gap=max(before.final_gap, found.final_gap),
        )

    def true_of(self, trace: Trace, step: int) -> tuple[LensColumn | None, ...]:
        """As `columns.true_of`."""
        return columns.true_of(self.columns, trace, step)

    def token(self, token_id: int) -> Token:
        """A token of the board with its bytes."""
        return Token(token_id, self.spelling.get(token_id, b""), "generated")

    def top(self, column: LensColumn, row: int) -> list[tuple[Token, float]]:
        """The most probable tokens of a cell with their probabilities."""
        pairs = zip(column.ids[row].tolist(), column.shares[row].tolist(), strict=True)
        return [(self.token(i), share) for i, share in pairs]


def layer_of(row: int, layers: int) -> int | None:
    """The layer whose output a row reads; None for the embedding."""
    return None if row == 0 else min(row - 1, layers - 1)


def settled_from(column: LensColumn) -> int:
    """The first row from which on every row's best token is the final choice."""
    others = np.flatnonzero(column.final_rank != 0)
    return int(others[-1]) + 1 if len(others) else 0


def table(known: LensColumns, slots: Sequence[LensColumn | None]) -> Iterator[Sequence[object]]:
    """Every cell that was read, in full."""
    yield (
        "row", "position", "id", "text", "probability", "entropy_bits", "kl_to_final_bits",
        "rank_of_final", "probability_of_final",
    )  # fmt: skip
    for slot, column in enumerate(slots):
        for row, name in enumerate(() if column is None else known.rows):
            assert column is not None
            token, share = known.top(column, row)[0]
            yield (
                name, slot, token.id, token.text, share, float(column.entropy_bits[row]),
                float(column.kl_bits[row]), int(column.final_rank[row]),
                float(column.final_share[row]),
            )  # fmt: skip


def nats(bits: float) -> float:
    """An entropy in nats."""
    return bits * log(2)
