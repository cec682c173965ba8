"""A cache layer that keeps the first tokens and the last ones: the rest is evicted, row by row.

It sees to it that no kernel meets more keys than the policy says, single tokens written in place.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from explorer.engine.passes.preallocated_cache import ROOM, PreallocatedLayer
from explorer.trace.interventions.context_policy import ContextPolicy


class _Rows:
    """Keys or values (B, H_kv, K, d), as a view of a buffer that is a little longer."""

    def __init__(self, like: torch.Tensor) -> None:
        self._buffer = like[..., :0, :]
        self._begin = self._end = 0

    @property
    def view(self) -> torch.Tensor:
        return self._buffer[..., self._begin : self._end, :]

    def append(self, new: torch.Tensor) -> None:
        end = self._end + new.shape[-2]
        if end > self._buffer.shape[-2]:
            self._move(self.view, new.shape[-2])
            end = self._end + new.shape[-2]
        self._buffer[..., self._end : end, :] = new
        self._end = end

    def evict(self, sinks: int, count: int) -> None:
        """Drop `count` rows behind the first `sinks`; a kernel may still read the view of now."""
        held = self.view
        self._move(torch.cat([held[..., :sinks, :], held[..., sinks + count :, :]], dim=-2))

    def evict_one(self, sinks: int) -> None:
        """Drop the row behind the first `sinks` in place: nothing reads the view any more."""
        first = self._buffer[..., self._begin : self._begin + sinks, :].clone()
        self._begin += 1
        self._buffer[..., self._begin : self._begin + sinks, :] = first

    def crop(self, count: int) -> None:
        self._end -= count

    def _move(self, held: torch.Tensor, more: int = 0) -> None:
        """Into a buffer of its own, with room for `more` rows."""
        *outer, count, width = held.shape
        buffer = held.new_empty((*outer, count + more + ROOM, width))
        buffer[..., :count, :] = held
        self._buffer, self._begin, self._end = buffer, 0, count


class EvictingLayer(DynamicLayer):
    """Keys and values of the first `sinks` slots and the last ones, `most` at the utmost."""

    keys: Any
    values: Any

    def __init__(self, sinks: int, most: int) -> None:
        super().__init__()
        self.sinks, self.most = sinks, most
        self.cumulative_length = 0  # slots read
        self._rows: tuple[_Rows, _Rows] | None = None

    @property
    def held_for_pass(self) -> int:
        """Slots that the next pass finds: with its own first slot there are `most`."""
        return min(self.cumulative_length, self.most - 1)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What is kept and what is new, for the kernel; then only so much is kept."""
        if self._rows is None:
            self.lazy_initialization(key_states, value_states)
            self._rows = _Rows(key_states), _Rows(value_states)
        rows, new = self._rows, key_states.shape[-2]
        while self._held > self.held_for_pass:
            for one in rows:
                one.evict_one(self.sinks)
        for one, states in zip(rows, (key_states, value_states), strict=True):
            one.append(states)
        self.cumulative_length += new
        seen = rows[0].view, rows[1].view
        over = self._held - self.most
        if over > 0:
            for one in rows:
                one.evict(self.sinks, over)
        self.keys, self.values = rows[0].view, rows[1].view
        return seen

    @property
    def _held(self) -> int:
        return 0 if self._rows is None else self._rows[0].view.shape[-2]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """(keys, first slot) as if what is kept were the last slots: all of it may be read."""
        held = self.held_for_pass
        return held + query_length, self.cumulative_length - held

    def get_seq_length(self) -> int:
        """Slots read, evicted ones included."""
        return self.cumulative_length

    def get_max_length(self) -> int:
        return self.most

    def crop(self, tokens_to_remove: int) -> None:
        """Take back so many of the last slots; RuntimeError where evicted ones would be needed."""
        count = abs(tokens_to_remove)
        if not count or self._rows is None:
            return
        left = self.cumulative_length - count
        if self._held - count < min(left, self.most - 1):
            raise RuntimeError("evicted slots would be needed again")
        for one in self._rows:
            one.crop(count)
        self.cumulative_length = left
        self.keys, self.values = self._rows[0].view, self._rows[1].view

    def reset(self) -> None:
        self._rows = None
        super().reset()


def evicting(cache: DynamicCache, policy: ContextPolicy) -> DynamicCache:
    """The same empty cache with layers that evict, if each keeps every token; else as it is."""
    make = partial(EvictingLayer, policy.sinks, policy.sinks + policy.last)
    plain = (DynamicLayer, PreallocatedLayer)
    if all(type(layer) in plain for layer in cache.layers):
        if cache.layer_class_to_replicate in plain:
            cache.layer_class_to_replicate = make
        cache.layers = [make() for _ in cache.layers]
    return cache


def evicting_layer(cache: Any) -> EvictingLayer | None:
    """One of the layers of a cache that evicts; None if it keeps every token."""
    layers = getattr(cache, "layers", ())
    return layers[0] if layers and isinstance(layers[0], EvictingLayer) else None


def slots_of_keys(cache: Any, slots: int, rows: int) -> np.ndarray | None:
    """(K,) the slots of the keys that the next pass sees; None where they are the last ones."""
    layer = evicting_layer(cache)
    if layer is None or layer.held_for_pass == slots - rows:
        return None
    return key_slots(layer.sinks, layer.held_for_pass, slots, rows)


def key_slots(sinks: int, held: int, slots: int, rows: int) -> np.ndarray:
    """(held + rows,) the slots of the keys that a pass over the last `rows` of `slots` sees.

    `held` of the slots before were kept: the first `sinks` and the last ones.
    """
    first = slots - rows
    recent = max(0, held - sinks) if held < first else held
    return np.concatenate([np.arange(held - recent), np.arange(first - recent, slots)])
