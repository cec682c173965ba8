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


class RoomyLayer(DynamicLayer):
    """Keys and values of every token, as views of buffers that are a little longer."""

    keys: Any
    values: Any

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None
        self._views: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append; a prefill as transformers does it, single tokens in place."""
        if not self.is_initialized or key_states.shape[-2] > 1 or self.keys.numel() == 0:
            self._buffers = self._views = None
            return super().update(key_states, value_states, *args, **kwargs)
        used = self.keys.shape[-2]
        if not self._has_room(used):
            self._buffers = (_roomy(self.keys), _roomy(self.values))
        assert self._buffers is not None
        keys, values = self._buffers
        keys[..., used : used + 1, :] = key_states
        values[..., used : used + 1, :] = value_states
        self.keys, self.values = keys[..., : used + 1, :], values[..., : used + 1, :]
        self._views = (self.keys, self.values)
        return self._views

    def _has_room(self, used: int) -> bool:
        """True if the tensors are our own views still, and another slot follows them."""
        if self._buffers is None or self._views is None:
            return False
        ours = self.keys is self._views[0] and self.values is self._views[1]
        return ours and used < self._buffers[0].shape[-2]

    def crop(self, tokens_to_remove: int) -> None:
        """Shorten by a negative number of tokens; the room stays."""
        ours = self._views is not None and self.keys is self._views[0]
        super().crop(tokens_to_remove)
        self._views = (self.keys, self.values) if ours else None

    def reset(self) -> None:
        super().reset()
        self._buffers = self._views = None


def _roomy(tensor: torch.Tensor) -> torch.Tensor:
    *outer, used, width = tensor.shape
    buffer = tensor.new_empty((*outer, used + ROOM, width))
    buffer[..., :used, :] = tensor
    return buffer


def with_room(cache: DynamicCache) -> DynamicCache:
    """The same empty cache; layers that keep every token have room, others stay as they are."""
    if cache.layer_class_to_replicate is DynamicLayer:
        cache.layer_class_to_replicate = RoomyLayer
    cache.layers = [
        RoomyLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers
    ]
    return cache
