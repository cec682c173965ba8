"""The KV cache: what prefix it holds, how many bytes it takes, how it is cut back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import DynamicCache

from explorer.engine.errors import EngineError
from explorer.engine.passes.context.evicting_cache import evicting
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.preallocated_cache import PreallocatedLayer, with_room
from explorer.trace.interventions.context_policy import USUAL, ContextPolicy

# fitted: with the windows and states that the config names; plain: keys and values of every
# token; own: what the model itself makes.
Kind = Literal["fitted", "plain", "own"]
KINDS: tuple[Kind, ...] = ("fitted", "plain", "own")


def keeps_windows(cache: Any) -> bool:
    """True if some layer of the cache forgets what has left its window."""
    return any(getattr(layer, "is_sliding", False) for layer in cache.layers)


def layer_bytes(cache: Any, layers: int) -> tuple[int, ...]:
    """Bytes per decoder layer, read off the cache's own tensors (keys, values, states)."""
    found = [sum(t.nbytes for t in _tensors(layer)) for layer in cache.layers]
    return tuple((found + [0] * layers)[:layers])


def _tensors(layer: Any) -> list[torch.Tensor]:
    if type(layer) is PreallocatedLayer:  # asked in every step: without looking through all it has
        return [layer.keys, layer.values] if layer.is_initialized else []
    result: list[torch.Tensor] = []
    for name, value in vars(layer).items():
        if name.startswith("_"):
            continue
        parts = value.values() if isinstance(value, dict) else [value]
        result += [part for part in parts if isinstance(part, torch.Tensor) and part.ndim > 1]
    return result


@dataclass(slots=True)
class OwnCache:
    """A cache of the model's own kind: it makes one in the first pass, and gets it back."""

    inner: Any = None

    @property
    def layers(self) -> list[Any]:
        """The layers of the cache that the model made; none before its first pass."""
        return list(getattr(self.inner, "layers", ()))

    def take(self, output: Any) -> None:
        """Keep what a pass gave back."""
        self.inner = getattr(output, "cache", None)
        if self.inner is None:
            raise EngineError("This model gives no cache back.")


@dataclass(slots=True)
class PrefixCache:
    """A transformers cache and the slots it holds; never trusted beyond a matching prefix."""

    config: Any
    can_crop: bool = False
    kind: Kind = "fitted"
    policy: ContextPolicy = USUAL
    live: Any = None  # the transformers cache, None = nothing held
    ids: tuple[int, ...] = ()
    mask: tuple[int, ...] = ()

    @property
    def slots(self) -> int:
        """Slots held."""
        return len(self.ids)

    def drop(self) -> None:
        """Forget everything."""
        self.live, self.ids, self.mask = None, (), ()

    def fresh(self) -> None:
        """Start an empty cache.  EngineError if transformers makes none for this model."""
        self.drop()
        if self.kind != "fitted":
            self.live = OwnCache() if self.kind == "own" else self._made(DynamicCache())
            return
        try:
            self.live = self._made(DynamicCache(config=self.config))
        except (AttributeError, ValueError, TypeError) as error:
            raise EngineError("This model takes no ordinary cache.", str(error)) from error

    def _made(self, cache: DynamicCache) -> DynamicCache:
        return evicting(cache, self.policy) if self.policy.keeps_last else with_room(cache)

    def another(self) -> PrefixCache:
        """An empty cache that works like this one."""
        return PrefixCache(self.config, self.can_crop, self.kind, self.policy)

    def shared(self, layout: Layout, limit: int) -> int:
        """How many of the first `limit` slots of `layout` are held already."""
        whole = layout.ids[: self.slots], layout.attention_mask[: self.slots]
        if self.slots <= limit and whole == (self.ids, self.mask):
            return self.slots  # the usual case, compared without a loop
        count = 0
        for held, wanted in zip(self.ids, layout.ids[:limit], strict=False):
            if held != wanted or self.mask[count] != layout.attention_mask[count]:
                break
            count += 1
        return count

    def cut_to(self, slots: int) -> bool:
        """Keep the first `slots` slots.  False, and nothing kept, if this cache can't be cut."""
        if self.live is None:
            return slots == 0
        extra = self.slots - slots
        if extra == 0:
            return True
        if not (self.can_crop and slots > 0):
            self.drop()
            return False
        try:
            self.live.crop(-extra)
        except (RuntimeError, ValueError, AttributeError, NotImplementedError):
            self.drop()
            return False
        self.ids, self.mask = self.ids[:slots], self.mask[:slots]
        if self.live.get_seq_length() != slots:
            self.drop()
            return False
        return True

    def hold(self, layout: Layout, slots: int) -> int:
        """Keep what is right of the first `slots` slots of `layout`; how many of them are held."""
        shared = self.shared(layout, slots)
        if self.cut_to(shared) and self.live is not None:
            return shared
        self.fresh()
        return 0

    def beginning(self, layout: Layout, limit: int) -> tuple[int, bool]:
        """How many of the first `limit` slots are kept, and whether more were equal.

        More are where this cache can't be cut back to what is equal: then none is kept.
        """
        shared = self.shared(layout, limit)
        held = self.hold(layout, limit)
        return held, held < shared

    def grew(self, layout: Layout, slots: int) -> None:
        """A pass has filled the first `slots` slots of `layout`."""
        self.ids, self.mask = layout.ids[:slots], layout.attention_mask[:slots]
