"""What a model takes on hardware that need not be here: computed from its config alone."""

from __future__ import annotations

from typing import Literal

import msgspec

Split = Literal["whole", "tensor", "pipeline"]


class LayerCache(msgspec.Struct, frozen=True, kw_only=True):
    """What one layer keeps of all tokens."""

    layer: int
    kind: str  # full, sliding, chunked, latent, linear, recurrent, …
    bytes: int


class DevicePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The share of one device under one split."""

    device: str  # "this machine", "GPU 0"
    split: Split
    layers: tuple[int, int]  # from, up to and without
    weights_bytes: int
    cache_bytes: int | None  # None = not known
    activation_bytes: int | None  # at most, where a pass is shared out
    captured_bytes: int
    total_bytes: int | None  # of what is above; None where a part is not known
    bytes_read: int | None  # by one decode step
    memory_bytes: int | None = None  # that the device has; None = not stated
    fits: bool | None = None  # None = not known


class SplitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One way to share the model out among the GPUs."""

    split: Split
    possible: bool
    reason: str = ""  # why it is not, with a next step
    seconds: float | None = None  # one decode step takes at least; None = bandwidth not known


class StepBound(msgspec.Struct, frozen=True, kw_only=True):
    """What memory bandwidth allows: no decode step is faster than reading this once."""

    bytes_read: int | None  # weights that a token needs, and the cache
    bytes_per_second: float | None = None
    seconds: float | None = None
    bandwidth: str = ""  # where the figure comes from: "given", "measured on this machine"


class ModelPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of a run, by part, and how it is shared out."""

    model: str
    architecture: str
    parameters: int
    tokens: int
    batch: int
    dtype: str
    weights_bytes: int
    cache_bytes: int | None
    cache_bytes_per_layer: tuple[LayerCache, ...] = ()
    activation_bytes: int | None = None  # most that a pass holds beside weights and cache
    captured_bytes: dict[str, int] = {}  # "float32/every layer": recorded queries, keys, hidden
    total_bytes: int | None = None  # with what is captured of every layer
    step_bound: StepBound
    splits: tuple[SplitPlan, ...] = ()
    devices: tuple[DevicePlan, ...] = ()
    not_known: tuple[str, ...] = ()  # sentences: what could not be worked out, and why

    @property
    def captured(self) -> int:
        """Bytes recorded of every layer in the plan's own dtype."""
        return self.captured_bytes.get(f"{self.dtype}/{EVERY_LAYER}", 0)

    @property
    def cache_by_kind(self) -> dict[str, tuple[int, int]]:
        """(layers, bytes) of each kind of layer, in the order in which they occur."""
        found: dict[str, tuple[int, int]] = {}
        for one in self.cache_bytes_per_layer:
            layers, size = found.get(one.kind, (0, 0))
            found[one.kind] = layers + 1, size + one.bytes
        return found


EVERY_LAYER, EVERY_FOURTH = "every layer", "every 4th layer"
CAPTURED = {EVERY_LAYER: 1, EVERY_FOURTH: 4}
"""What may be recorded, and of every how manyth layer."""
MOST_TOKENS, MOST_BATCH, MOST_GPUS = 100_000_000, 100_000, 4096
