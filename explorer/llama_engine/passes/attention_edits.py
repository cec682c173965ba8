"""What interventions do inside llama.cpp's attention: scores cut or scaled, heads silenced.

Attention's softmax has just been computed when a pass stops there.  Scores are changed where they
come from, in the queries or the mask, and llama.cpp's own kernels compute them again; then both
are put back, because other layers read the same mask.  Axes: H heads, n slots read, K slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.engine.errors import BadInput, EngineError
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.compute import Recompute
from explorer.trace.interventions.cells import ALLOWED, CUT, changes
from explorer.trace.interventions.kinds import (
    Cells,
    Intervention,
    Scale,
    Silence,
    changes_attention,
)

HIDDEN = np.float32(-1e30)  # in a mask: what is less is hidden


@dataclass(frozen=True, slots=True)
class ScoreNodes:
    """One layer's attention, as it lies in llama.cpp's memory."""

    layer: int
    softmax: int  # addresses
    chain: tuple[int, ...]  # from the product of queries and keys to what softmax reads
    mask: int  # 0 = none
    queries: np.ndarray | None  # (n, H, d_h) float32, a view; None where they can't be had
    slots: int  # K
    rows: int  # n


@dataclass(slots=True)
class ScoreEdit:
    """What is done to one layer's attention in one call of llama.cpp."""

    silenced: tuple[int, ...]
    cells: tuple[Cells, ...]
    scales: tuple[Scale, ...]
    allowed: np.ndarray | None = None  # (1 or H, n, K) bool, where cells were changed
    _queries: np.ndarray | None = None  # as they were
    _mask: np.ndarray | None = None

    def apply(self, of: ScoreNodes, recompute: Recompute, edits: ScoreEdits) -> None:
        """Compute the layer's weights again, with its scores changed."""
        if not self.cells and not self.scales:
            return
        queries, node = of.queries, tensor.at(of.softmax)
        if queries is None or not of.chain or (self.cells and not of.mask):
            raise EngineError(f"The scores of layer {of.layer} can't be changed here.")
        if self.scales:
            factors = np.ones(queries.shape[1], np.float32)
            for one in self.scales:
                factors[slice(None) if one.head is None else one.head] *= np.float32(one.factor)
            self._queries = queries.copy()
            queries *= factors[:, None]
        if self.cells:
            mask = tensor.numbers(tensor.at(of.mask))[0, : of.rows, : of.slots]
            self._mask = mask.copy()
            self.allowed = edits.allowed(self.cells, of, node.ne[2], self._mask)
            seen = self.allowed.any(0)
            mask[:] = np.where(seen, np.where(self._mask > HIDDEN, self._mask, 0), -np.inf)
        recompute(of.chain)
        if self.allowed is not None and len(self.allowed) > 1:
            scores = tensor.numbers(tensor.at(node.src[0]))[..., : of.slots]
            scores[~self.allowed] = -np.inf
        recompute((of.softmax,))
        if self.allowed is not None:  # rows with no key left give nothing
            weights = tensor.numbers(node)
            weights[np.broadcast_to(~self.allowed.any(-1), weights.shape[:2])] = 0

    def finish(self, of: ScoreNodes) -> None:
        """Silence heads, and put back what other nodes read."""
        if self.silenced:
            tensor.numbers(tensor.at(of.softmax))[list(self.silenced)] = 0
        if self._queries is not None and of.queries is not None:
            of.queries[:] = self._queries
        if self._mask is not None:
            tensor.numbers(tensor.at(of.mask))[0, : of.rows, : of.slots] = self._mask


@dataclass(slots=True)
class ScoreEdits:
    """Everything that interventions change in the attention of a run."""

    asked: Sequence[Intervention]
    _made: dict[object, np.ndarray] = field(default_factory=dict)  # of this call

    def begin(self) -> None:
        """Before each call of llama.cpp."""
        self._made.clear()

    def at(self, layer: int, heads: int) -> ScoreEdit | None:
        """The edit of one layer; None if nothing of it changes.  BadInput for a head too many."""
        here = [one for one in self.asked if changes_attention(one, layer)]
        if not here:
            return None
        for one in here:
            if one.layer == layer and one.head is not None and one.head >= heads:
                raise BadInput(f"Layer {layer} has heads 0 to {heads - 1}, no head {one.head}.")
        known = [one for one in here if one.head is None or one.head < heads]
        return ScoreEdit(
            tuple(one.head for one in known if isinstance(one, Silence)),
            tuple(one for one in known if isinstance(one, Cells)),
            tuple(one for one in known if isinstance(one, Scale)),
        )

    def allowed(
        self, cells: tuple[Cells, ...], of: ScoreNodes, heads: int, mask: np.ndarray
    ) -> np.ndarray:
        """(1 or H, n, K) bool; the same array for layers with the same mask and cells."""
        apart = heads if any(one.head is not None for one in cells) else 1
        name = cells, of.mask, apart
        if name not in self._made:
            change = changes(cells, heads, (of.slots - of.rows, of.slots), (0, of.slots))
            found = (mask > HIDDEN)[None] & (change != CUT) | (change == ALLOWED)
            self._made[name] = found
        return self._made[name]
