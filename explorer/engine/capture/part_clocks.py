"""A clock on every part of a model, while a pass runs.

A part's forward is swapped on the module itself.  Not a module hook: those send every call through
torch's slow path, which took 4 % of a decode step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch

from explorer.engine.capture.timed_parts import Parts
from explorer.engine.device_clock import clock

Forward = Callable[..., Any]
Key = tuple[str, int]  # ("layer", 3), ("attention", 3), ("mlp", 3), ("embedding", 0), …


class LayerListener(Protocol):
    """Told when a decoder layer begins; may raise to end the pass."""

    def enter(self, layer: int) -> None: ...


@dataclass(slots=True)
class Times:
    """What the clocks read in one pass; ask only once the device has finished."""

    between: Callable[[Any, Any], float]  # two readings -> seconds
    readings: dict[Key, list[tuple[Any, Any]]] = field(default_factory=dict)

    def ms(self, kind: str, index: int = 0) -> float | None:
        """Milliseconds of one part; None if it never ran by itself."""
        found = self.readings.get((kind, index))
        return None if found is None else sum(self.between(a, b) for a, b in found) * 1e3

    def add(self, other: Times) -> None:
        """Readings of another pass, as if both had been one."""
        for key, readings in other.readings.items():
            self.readings.setdefault(key, []).extend(readings)

    def per_layer(self, kind: str, layers: int, missing: float) -> np.ndarray:
        """(L,) float32 milliseconds; `missing` where a layer has no such part."""
        times = [self.ms(kind, layer) for layer in range(layers)]
        return np.array([missing if t is None else t for t in times], np.float32)


class PartClocks:
    """The clocks of one model, made once; they tick only while `running`."""

    def __init__(self, parts: Parts, device: torch.device) -> None:
        self._tick, self._between = clock(device)
        self._times = Times(self._between)
        self._listener: LayerListener | None = None
        self._timed: dict[int, tuple[Any, Callable[[Forward], Forward], Forward]] = {}
        for layer, module in enumerate(parts.layers):
            self._add(("layer", layer), module)
            for part in parts.attention[layer]:
                self._add(("attention", layer), part)
            for part in parts.mlp[layer]:
                self._add(("mlp", layer), part)
        for name in ("embedding", "norm", "head"):
            if getattr(parts, name) is not None:
                self._add((name, 0), getattr(parts, name))

    @contextlib.contextmanager
    def running(self, listener: LayerListener) -> Iterator[Times]:
        """While inside, passes add to the times given; nothing stays behind."""
        self._times, self._listener = Times(self._between), listener
        # The instance's own dictionary: nn.Module's setattr would look for parameters first.
        before = [module.__dict__.get("forward") for module, _, _ in self._timed.values()]
        try:
            for module, wrap, timed in self._timed.values():
                own = module.__dict__
                own["forward"] = wrap(own["forward"]) if "forward" in own else timed
            yield self._times
        finally:
            for (module, _, _), forward in zip(self._timed.values(), before, strict=True):
                module.__dict__.pop("forward", None)
                if forward is not None:
                    module.__dict__["forward"] = forward
            self._listener = None

    def _add(self, key: Key, module: Any) -> None:
        wrap = self._layer_clock(key) if key[0] == "layer" else self._part_clock(key)
        self._timed.setdefault(id(module), (module, wrap, wrap(module.forward)))

    def _layer_clock(self, key: Key) -> Callable[[Forward], Forward]:
        timed_part, index = self._part_clock(key), key[1]

        def wrap(forward: Forward) -> Forward:
            inner = timed_part(forward)

            def timed(*args: Any, **kwargs: Any) -> Any:
                assert self._listener is not None
                self._listener.enter(index)
                return inner(*args, **kwargs)

            return timed

        return wrap

    def _part_clock(self, key: Key) -> Callable[[Forward], Forward]:
        tick = self._tick

        def wrap(forward: Forward) -> Forward:
            def timed(*args: Any, **kwargs: Any) -> Any:
                started = tick()
                output = forward(*args, **kwargs)
                self._times.readings.setdefault(key, []).append((started, tick()))
                return output

            return timed

        return wrap
