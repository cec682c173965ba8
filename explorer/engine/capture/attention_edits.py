"""What interventions do inside attention: scores cut or scaled, heads silenced or patched.

The probe asks for a layer's edit before it calls the kernel; a pass without interventions never
comes here.  Axes: H query heads, Q slots read by this pass, K keys of the kernel, the last of which
is the last slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from explorer.engine.capture.patching import Change, Put, PutMean, Take
from explorer.engine.capture.rotation import MovedKeys
from explorer.engine.errors import BadInput
from explorer.trace.interventions.cells import ALLOWED, CUT, changes
from explorer.trace.interventions.kinds import Cells, Scale, Silence

_OnOutput = Silence | Take | Put | PutMean


@dataclass(frozen=True, slots=True)
class _Made:
    """A mask made for this pass, shared by the layers that are given the same one."""

    of: torch.Tensor | None  # the model's own, kept alive: it is known by its id
    mask: torch.Tensor  # (B, 1 or H, Q, K)
    dead: torch.Tensor | None  # (B, 1 or H, Q): rows with no key left


@dataclass(slots=True)
class LayerEdit:
    """What is done to one call of one layer's kernel."""

    pass_: AttentionEdits
    heads: tuple[_OnOutput, ...]  # of which the output changes, in this order
    cells: tuple[Cells, ...]
    scales: tuple[Scale, ...]
    place: int = 0  # how many calls of this layer came before: a few have two kernels
    dead: torch.Tensor | None = None

    def scores(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        mask: torch.Tensor | None,
        causal: bool,
        additive: bool,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(query, mask) for the kernel; as they were where no score of this call changes.

        `causal`: without a mask the kernel hides later keys.  `additive`: it takes no boolean mask.
        """
        if self.scales:
            factors = torch.ones(query.shape[1], dtype=query.dtype, device=query.device)
            for one in self.scales:
                factors[slice(None) if one.head is None else one.head] *= one.factor
            query = query * factors[:, None, None]
        if self.cells:
            made = self.pass_.mask(self.cells, query, key, mask, causal, additive)
            if made is not None:
                mask, self.dead = made.mask, made.dead
        return query, mask

    def outputs(
        self, output: torch.Tensor, weights: torch.Tensor | None, heads: int
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(B, Q, H, d_v) with zeros where heads are silent or rows have no key, and the weights."""
        if self.dead is not None:
            rows = self.dead.transpose(1, 2)[..., None]  # (B, Q, 1 or H, 1)
            output = output.unflatten(2, (heads, -1)) if output.ndim == 3 else output
            output = output.masked_fill(rows, 0)
            if weights is not None:
                weights = weights.masked_fill(self.dead[..., None], 0)
        return output, weights

    def given(self, output: torch.Tensor, heads: int) -> torch.Tensor:
        """The output with zeros for the heads that are silenced, and what patches put there."""
        if not self.heads:
            return output
        apart = output.clone(memory_format=torch.contiguous_format)
        apart = apart.view(*output.shape[:2], heads, -1)
        for one in self.heads:
            if isinstance(one, Silence):
                apart[:, :, one.head] = 0
            else:
                one.apply(apart[0, :, one.head], self.pass_.slots - apart.shape[1], self.place)
        return apart.view(output.shape)


@dataclass(slots=True)
class AttentionEdits:
    """Everything that interventions change in the attention of one pass."""

    asked: Sequence[Change]
    slots: int  # that exist after the pass
    modules: frozenset[int] | None = None  # ids of those that attend to tokens; None = all
    key_slots: np.ndarray | None = None  # (K,) of a cache that has evicted; None = the last K
    moved: MovedKeys | None = None
    _made: dict[Any, _Made | None] = field(default_factory=dict)
    _calls: Counter[int] = field(default_factory=Counter)  # by layer

    def at(self, layer: int, module: int, query: torch.Tensor) -> LayerEdit | None:
        """The edit of one call; None if nothing of it changes.  BadInput for a head too many."""
        if self.modules is not None and module not in self.modules:
            return None
        place = self._calls[layer]
        self._calls[layer] += 1
        here = [one for one in self.asked if one.layer is None or one.layer == layer]
        if not here:
            return None
        heads = query.shape[1]
        for one in here:
            if one.layer == layer and one.head is not None and one.head >= heads:
                raise BadInput(f"Layer {layer} has heads 0 to {heads - 1}, no head {one.head}.")
        known = [one for one in here if one.head is None or one.head < heads]
        return LayerEdit(
            self,
            tuple(one for one in known if isinstance(one, _OnOutput)),
            tuple(one for one in known if isinstance(one, Cells)),
            tuple(one for one in known if isinstance(one, Scale)),
            place,
        )

    def mask(
        self,
        cells: tuple[Cells, ...],
        query: torch.Tensor,
        key: torch.Tensor,
        mask: torch.Tensor | None,
        causal: bool,
        additive: bool,
    ) -> _Made | None:
        """The kernel's mask with the cells cut and allowed; None if this pass has none of them."""
        shape = query.shape[1], query.shape[2], key.shape[2]
        name = (id(mask), causal, additive, cells, shape)
        if name not in self._made:
            heads, rows, keys = shape
            queries = self.slots - rows, self.slots
            if self.key_slots is None:
                change = changes(cells, heads, queries, (self.slots - keys, self.slots))
            else:
                change = changes(cells, heads, queries, (0, self.slots))[..., self.key_slots]
            self._made[name] = (
                _changed(change, query, key, mask, causal, additive) if change.any() else None
            )
        return self._made[name]


def _changed(
    change: np.ndarray,
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    additive: bool,
) -> _Made:
    rows, keys = change.shape[1:]
    wanted = torch.from_numpy(change).to(query.device)[None]  # (1, 1 or H, Q, K)
    own = mask
    if mask is None:
        mask = torch.ones((1, 1, rows, keys), dtype=torch.bool, device=query.device)
        mask = mask.tril() if causal else mask
    mask = mask[..., :keys]
    if mask.dtype == torch.bool:
        hidden = ~mask
        values = torch.zeros((), dtype=query.dtype, device=query.device)
    else:
        hidden = mask <= torch.finfo(mask.dtype).min / 2
        values = torch.where(hidden, 0, mask)
    hidden = (hidden & (wanted != ALLOWED)) | (wanted == CUT)
    dead = hidden.all(-1)
    made = ~hidden
    if additive or mask.dtype != torch.bool:
        made = torch.where(hidden, -torch.inf, values.to(query.dtype))
    return _Made(own, made, dead if bool(dead.any()) else None)
