"""The keys and values of one position, read off the cache's own tensors."""

from __future__ import annotations

from typing import Any

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.passes.context.evicting_cache import EvictingLayer
from explorer.engine.passes.generate import next_pass
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import (
    EVICTED,
    GONE,
    LEFT_OUT,
    HeadNumbers,
    LayerRead,
    PositionRead,
    ReadSlot,
)

STATE = "this layer keeps a state of fixed size, not single positions"


def read(
    runner: Runner, asked: ReadSlot, progress: Report, cancelled: Stop = never
) -> PositionRead:
    """What each layer keeps of the position.

    A cache that does not hold the tokens any more, or holds them as another run read them, is
    filled by a pass first.  BadInput without a cache or with a slot beyond it.
    """
    request = asked.request
    if not runner.caches(request):
        raise BadInput("This run stores no keys and values. Switch the KV cache on first.")
    layout = runner.layout(request, asked.chosen)
    slots, whole = len(layout.ids), len((layout.whole or layout).ids)
    if not 0 <= asked.slot < whole:
        raise BadInput(
            f"There is no position {asked.slot}. The run has {whole:,} so far, counted from 0."
        )
    places = layout.places or range(slots)
    if asked.slot not in places:
        return PositionRead(
            slot=asked.slot, layers=(LayerRead(reason=LEFT_OUT),) * len(runner.layers)
        )
    if not runner.cache_is_of(request) or runner.cache.shared(layout, slots) < slots:
        progress("Filling the cache again…", 0.0)
        next_pass(runner, request, layout, len(asked.chosen), cancelled)
    held, layers = runner.cache.slots, runner.cache.live.layers
    slot = places.index(asked.slot)
    return PositionRead(
        slot=asked.slot, layers=tuple(_of_layer(layer, slot, held) for layer in layers)
    )


def _of_layer(layer: Any, slot: int, held: int) -> LayerRead:
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    if keys is None or values is None or keys.ndim != 4:
        return LayerRead(reason=STATE)
    gone = held - keys.shape[2]  # slots that a window holds no more: the first ones …
    evicts = isinstance(layer, EvictingLayer)
    sinks = layer.sinks if evicts else 0  # … but for those that are kept
    place = slot if slot < sinks else slot - gone
    if place < min(slot, sinks):
        return LayerRead(reason=EVICTED if evicts else GONE)
    return LayerRead(key=_numbers(keys[0, :, place]), value=_numbers(values[0, :, place]))


def _numbers(part: Any) -> HeadNumbers:
    heads, width = part.shape
    numbers = part.float().cpu().numpy().astype("<f4").tobytes()
    return HeadNumbers(heads=heads, width=width, numbers=numbers)
