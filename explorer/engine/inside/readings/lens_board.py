"""The board of a logit lens as it fills, whichever library gives the logits; numpy alone.

Axes: R rows (the embedding, each layer, "final"), n slots of one portion, V vocabulary, K most
probable tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled
from explorer.engine.inside.telling import Telling
from explorer.trace.inside.arrays import WHOLE, packed
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.step import Token

LOGIT_BYTES = 32 << 20  # of one replay: a cancel is heard within a fraction of a second
MOST_TOP = 100


@dataclass(slots=True)
class LensBlock:
    """Figures of all R rows at some slots, rows first."""

    ids: np.ndarray  # (R, n, K)
    probabilities: np.ndarray  # (R, n, K)
    entropy_bits: np.ndarray  # (R, n)
    kl_bits: np.ndarray
    final_rank: np.ndarray
    final_probability: np.ndarray


@dataclass(slots=True)
class LensReading:
    """What has been read so far; `add` tells `part` of it now and then."""

    asked: int  # slots
    spelled: Callable[[int], Token]
    progress: Report
    part: Callable[[LensBoard], None]
    rows: tuple[str, ...] = ()
    slots: list[int] = field(default_factory=list)
    blocks: list[LensBlock] = field(default_factory=list)
    final_gap: float = 0.0
    tolerance: float = 0.0
    telling: Telling = field(init=False)

    def __post_init__(self) -> None:
        self.telling = Telling(self.asked)

    def prove(self, gap: float, limit: float) -> None:
        """The last layer, replayed, against the model's own logits.  BadInput if it is not those.

        `gap` is the largest difference, `limit` what counts as equal.
        """
        self.final_gap = max(self.final_gap, gap)
        self.tolerance = max(self.tolerance, limit)
        if gap > limit:
            raise BadInput(
                "This model's layers can't be read through its own final norm and head: replayed, "
                f"the last layer's logits are off by {gap:.2g}."
            )

    def add(self, block: LensBlock, slots: Sequence[int]) -> None:
        """The figures of more slots."""
        self.blocks.append(block)
        self.slots += slots
        done = len(self.slots)
        self.progress("Reading the layers", done / self.asked)
        if self.telling.due(done):
            self.part(self.board())

    def board(self) -> LensBoard:
        """Everything so far."""

        def joined(name: str, kind: str = "<f4") -> bytes:
            return packed(np.concatenate([getattr(one, name) for one in self.blocks], 1), kind)

        ids = np.concatenate([one.ids for one in self.blocks], 1)
        listed = np.unique(ids).tolist()
        return LensBoard(
            rows=self.rows,
            slots=tuple(self.slots),
            asked=self.asked,
            top=ids.shape[2],
            id_bytes=packed(ids, WHOLE),
            probability_bytes=joined("probabilities"),
            entropy_bytes=joined("entropy_bits"),
            kl_bytes=joined("kl_bits"),
            final_rank_bytes=joined("final_rank", WHOLE),
            final_probability_bytes=joined("final_probability"),
            spelled_ids=tuple(listed),
            spelled=tuple(self.spelled(i).raw for i in listed),
            final_gap=self.final_gap,
            tolerance=self.tolerance,
        )


def require_top(asked: ReadLens) -> None:
    """BadInput for a number of tokens per cell that is not to be had."""
    if not 1 <= asked.top <= MOST_TOP:
        raise BadInput(f"The number of tokens per cell must be from 1 to {MOST_TOP}.")


def row_names(layers: int) -> tuple[str, ...]:
    """What stands before the first layer, after each, and after the last.

    Where layers run more than once, runs are counted instead of layers.
    """
    return ("embedding", *map(str, range(layers - 1)), "final")


def portions(slots: int, rows: int, vocabulary: int) -> Iterator[range]:
    """Places of slots that are replayed together, in order."""
    size = max(1, replayed_together(vocabulary) // rows)
    return (range(start, min(start + size, slots)) for start in range(0, slots, size))


def replayed_together(vocabulary: int) -> int:
    """Streams of single tokens whose logits are computed at once."""
    return max(1, LOGIT_BYTES // (4 * vocabulary))


def raise_if(stop: Stop) -> None:
    """Cancelled if told to stop."""
    if stop():
        raise Cancelled


def figures(logits: np.ndarray, final: np.ndarray, top: int) -> tuple[np.ndarray, ...]:
    """The fields of a block of logits (R, n, V), given those of the last row, (n, V)."""
    log_p = _log_shares(logits)
    reference, favourites = _log_shares(final), final.argmax(-1)
    most = min(top, log_p.shape[-1])
    ids = np.argpartition(-log_p, most - 1, -1)[..., :most]
    best = np.take_along_axis(log_p, ids, -1)
    order = np.lexsort((ids, -best), -1)
    ids, best = np.take_along_axis(ids, order, -1), np.take_along_axis(best, order, -1)
    p = np.exp(log_p)
    # A probability of 0 has a logarithm of -inf, and takes no part.
    low = np.maximum(log_p, -1e4)
    entropy = -(p * low).sum(-1) / math.log(2)
    gone = np.maximum(reference, -1e4) - low
    kl = (np.exp(reference) * gone).sum(-1) / math.log(2)
    at = np.broadcast_to(favourites, log_p.shape[:-1])[..., None]
    own = np.take_along_axis(log_p, at, -1)
    places = np.arange(log_p.shape[-1])
    rank = ((log_p > own) | ((log_p == own) & (places < at))).sum(-1)
    return (
        ids, np.exp(best), np.maximum(entropy, 0), np.maximum(kl, 0), rank, np.exp(own[..., 0]),
    )  # fmt: skip


def _log_shares(logits: np.ndarray) -> np.ndarray:
    found = logits - logits.max(-1, keepdims=True)
    found -= np.log(np.exp(found).sum(-1, keepdims=True))
    return found
