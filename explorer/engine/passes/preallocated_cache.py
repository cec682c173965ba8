"""A cache layer with room to grow: a decode step writes one slot instead of copying all of them.

transformers' own layer concatenates in every step, which reads and writes the whole cache: a fifth
of a decode step at 2,000 tokens.  The numbers in it are the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 256  # slots made at a time


class PreallocatedLayer(DynamicLayer):
    """Keys and values of every token, as views of buffers that are a little longer."""

    keys: Any
    values: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None
        self._views: tuple[torch.Tensor, torch.Tensor] | None = None
        self._reserved = 0  # slots that are going to come, in chunks
        self._lent = 0  # slots that a record may still look at: never written again in place

    def reserve(self, slots: int) -> None:
        """Make room for so many slots at once: chunks are then written in place, too."""
        self._reserved = slots

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append; a prefill as transformers does it, single tokens and chunks in place."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        used, rows = self.get_seq_length(), key_states.shape[-2]
        end = used + rows
        if rows > 1 and end > self._reserved:
            self._buffers = self._views = None
            return super().update(key_states, value_states, *args, **kwargs)
        if not self._has_room(used, end):
            slots = max(self._reserved, end) + ROOM
            self._buffers = (
                _buffer(key_states, slots, self.keys, used),
                _buffer(value_states, slots, self.values, used),
            )
            self._lent = 0
        assert self._buffers is not None
        keys, values = self._buffers
        keys[..., used:end, :] = key_states
        values[..., used:end, :] = value_states
        self.keys, self.values = keys[..., :end, :], values[..., :end, :]
        self._views = (self.keys, self.values)
        if rows > 1:
            self._lent = end
        return self._views

    def _has_room(self, used: int, end: int) -> bool:
        """True if the tensors are our own views still, and the next slots may be written."""
        if self._buffers is None or self._views is None or used < self._lent:
            return False
        ours = self.keys is self._views[0] and self.values is self._views[1]
        return ours and end <= self._buffers[0].shape[-2]

    def crop(self, tokens_to_remove: int) -> None:
        """Shorten by a negative number of tokens; the room stays."""
        ours = self._views is not None and self.keys is self._views[0]
        super().crop(tokens_to_remove)
        self._views = (self.keys, self.values) if ours else None

    def reset(self) -> None:
        super().reset()
        self._buffers = self._views = None


def _buffer(like: torch.Tensor, slots: int, held: torch.Tensor, used: int) -> torch.Tensor:
    """(B, H, slots, d) that begins with the `used` slots held already."""
    *outer, _, width = like.shape
    made = like.new_empty((*outer, slots, width))
    if used:
        made[..., :used, :] = held
    return made


def reserve(cache: Any, slots: int) -> None:
    """Make room in every layer that keeps every token."""
    for layer in getattr(cache, "layers", ()):
        if isinstance(layer, PreallocatedLayer):
            layer.reserve(slots)


def with_room(cache: DynamicCache) -> DynamicCache:
    """The same empty cache; layers that keep every token have room, others stay as they are."""
    if cache.layer_class_to_replicate is DynamicLayer:
        cache.layer_class_to_replicate = PreallocatedLayer
    cache.layers = [
        PreallocatedLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache
