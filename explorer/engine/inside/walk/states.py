"""What a layer without attention keeps of all tokens so far, and how one token changes it.

Nothing is taken from an architecture.  How much of the state before is kept is measured by
changing that state and reading the same token again: what the state after changes by is what is
left of the change.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from explorer.engine.callbacks import Stop
from explorer.engine.errors import Cancelled
from explorer.engine.faults import INPUT_FAULTS
from explorer.engine.inside.walk.stages import MOST_NUMBERS, stage
from explorer.engine.passes.generate import forward, next_pass
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.walk import LayerStage
from explorer.trace.request import RunRequest

_NEAR = 1e-3  # of the largest entry: how well a decay explains a change at random
_MOST_PASSES = 8  # to find what each head's state is multiplied by
_Change = Callable[[torch.Tensor], torch.Tensor]


def state_stages(
    runner: Runner, request: RunRequest, layer: int, layout: Layout, slot: int, stop: Stop
) -> Iterator[LayerStage]:
    """Each state after the token, and before it how that came about; nothing without a cache.

    The run's own cache is left alone.
    """
    if not runner.caches(request):
        return
    with runner.own_cache_aside(), torch.inference_mode():
        if not any(layout.attention_mask[:slot]):
            next_pass(runner, request, layout.first(slot + 1), 0, stop)
            for name, _, one in _states(runner.cache.live, layer):
                yield _kept(name, one)
            return
        next_pass(runner, request, layout.first(slot), 0, stop)
        again = _Again(runner, request, layer, layout.first(slot + 1), runner.cache.live, stop)
        after = {(name, place): one for name, place, one in _states(again.run(), layer)}
        for name, place, before in _states(again.before, layer):
            now = after.get((name, place))
            if now is None or now.shape != before.shape:
                continue
            with contextlib.suppress(*INPUT_FAULTS):  # a state that can't be changed from outside
                yield from list(_change(name, again, place, before, now))
            yield _kept(name, now)


def _kept(name: str, state: torch.Tensor) -> LayerStage:
    return stage(f"state: {name}", "kept from token to token, however long the text", state[0])


def _states(cache: Any, layer: int) -> Iterator[tuple[str, Any, torch.Tensor]]:
    """(name, its place, (1, …)) of every tensor that a layer's cache holds, but keys and values."""
    layers = cache.layers
    kept = vars(layers[layer]) if layer < len(layers) else {}
    for name, value in kept.items():
        several = value.items() if isinstance(value, dict) else ((None, value),)
        for key, one in several:
            shown = not name.startswith("_") and name not in ("keys", "values")
            if shown and isinstance(one, torch.Tensor) and one.ndim > 1:
                yield name, (name, key), one


@dataclass(slots=True)
class _Again:
    """The pass of one token, read as often as one likes, with another state before it."""

    runner: Runner
    request: RunRequest
    layer: int
    layout: Layout
    before: Any  # the cache
    stop: Stop

    def run(self, place: Any = None, change: _Change | None = None) -> Any:
        """The cache after the token; `change` makes another state of the one at `place`."""
        if self.stop():
            raise Cancelled
        cache = copy.deepcopy(self.before)
        if change is not None:
            name, key = place
            kept = getattr(cache.layers[self.layer], name)
            if key is None:
                setattr(cache.layers[self.layer], name, change(kept))
            else:
                kept[key] = change(kept[key])
        first = len(self.layout.ids) - 1
        forward(self.runner, self.request, self.layout, first, cache, self.stop)
        return cache

    def left_of(self, place: Any, added: torch.Tensor, now: torch.Tensor) -> torch.Tensor:
        """What the state after changes by if `added` is added to the state before; float64."""
        cache = self.run(place, lambda state: state + added.to(state.dtype))
        other = next(one for _, at, one in _states(cache, self.layer) if at == place)
        return other.double() - now.double()


def _change(
    name: str, again: _Again, place: Any, before: torch.Tensor, now: torch.Tensor
) -> Iterator[LayerStage]:
    """What is kept of the state before, and what is written; nothing where that is not found."""
    if before.numel() > MOST_NUMBERS or not before.is_floating_point():
        return
    size = max(float(before.double().square().mean().sqrt()), 1e-2)
    random = torch.Generator().manual_seed(0)
    trial = (size * torch.randn(before.shape, generator=random)).to(before)
    left = again.left_of(place, trial, now)
    decay = again.left_of(place, torch.full_like(before, size), now) / size
    gap = _miss(decay * trial.double(), left)
    if gap < _NEAR and bool(decay.abs().max() > 0):
        words = "what is left of each entry of the state before, measured by changing it"
        yield stage(f"decay: {name}", words, decay[0], gap=gap)
        written, words = now.double() - decay * before.double(), "state - decay × state before"
        yield stage(f"write: {name}", words, written[0])
        return
    for axis in (-2, -1) if before.ndim == 4 else ():
        matrix = _matrix(again, place, now, size, axis)
        if matrix is None:
            continue
        gap = _miss(_times(matrix, trial.double(), axis), left)
        if gap < _NEAR:
            words = "each head's state before is multiplied by it, measured by changing the state"
            yield stage(f"decay: {name}", words, matrix[0], gap=gap)
            written = now.double() - _times(matrix, before.double(), axis)
            yield stage(f"write: {name}", "state - matrix × state before", written[0])
            return


def _matrix(
    again: _Again, place: Any, now: torch.Tensor, size: float, axis: int
) -> torch.Tensor | None:
    """(1, H, n, n): what the state is multiplied by along `axis`, a block of columns a pass."""
    n, across = now.shape[axis], now.shape[-1 if axis == -2 else -2]
    if -(-n // across) > _MOST_PASSES or now.shape[1] * n * n > MOST_NUMBERS:
        return None
    blocks = []
    for start in range(0, n, across):
        count = min(across, n - start)
        one = torch.zeros(n, across)
        one[start : start + count, :count] = size * torch.eye(count)
        added = (one if axis == -2 else one.T).expand(now.shape).to(now)
        left = again.left_of(place, added, now) / size
        blocks.append((left if axis == -2 else left.transpose(-1, -2))[..., :count])
    return torch.cat(blocks, -1)


def _times(matrix: torch.Tensor, state: torch.Tensor, axis: int) -> torch.Tensor:
    if axis == -2:
        return matrix @ state
    return (matrix @ state.transpose(-1, -2)).transpose(-1, -2)


def _miss(made: torch.Tensor, measured: torch.Tensor) -> float:
    most = float(measured.abs().max())
    return float((made - measured).abs().max()) / max(most, 1e-30) if most > 0 else np.inf
