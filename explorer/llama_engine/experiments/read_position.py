"""The keys and values of one position, read off the cache's own tensors."""

from __future__ import annotations

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.passes.context import Context
from explorer.llama_engine.passes.generate import next_pass
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.experiments import HeadNumbers, LayerRead, PositionRead, ReadSlot

STATE = "this layer keeps a state of fixed size, not single positions"
OTHERS = "this layer keeps no keys and values of its own"
SPLIT = "the keys and values of this layer are kept in a form that is not read here"


def read(
    runner: LlamaRunner, asked: ReadSlot, progress: Report, cancelled: Stop = never
) -> PositionRead:
    """What each layer keeps of the position; BadInput without a cache or with a slot beyond it.

    A cache that does not hold the tokens any more is filled by a pass first.
    """
    request = asked.request
    if not runner.caches(request):
        raise BadInput("This run stores no keys and values. Switch the KV cache on first.")
    layout = runner.layout(request, asked.chosen)
    slots = len(layout.ids)
    if not 0 <= asked.slot < slots:
        raise BadInput(
            f"There is no position {asked.slot}. The run has {slots:,} so far, counted from 0."
        )
    context = runner.run_context(slots)
    if not (context.caches and context.holds(layout.ids, request.changes)):
        progress("Filling the cache again…", 0.0)
        next_pass(runner, request, layout, len(asked.chosen), cancelled)
    layers = range(runner.card.layers)
    return PositionRead(
        slot=asked.slot, layers=tuple(_of_layer(runner, context, i, asked.slot) for i in layers)
    )


def _of_layer(runner: LlamaRunner, context: Context, layer: int, slot: int) -> LayerRead:
    keys, values = (context.caches.get(f"cache_{part}_l{layer}") for part in "kv")
    if keys is None:
        recurrent = runner.proven is not None and layer not in runner.proven.attending
        return LayerRead(reason=STATE if recurrent else OTHERS)
    heads = runner.kv_heads.get(layer, 0)
    try:
        key = tensor.numbers(tensor.at(keys.address), slot, slot + 1)[0, 0]
        # Without flash attention values lie with the cells in a row: (width, cells).
        value = None
        if values is not None:
            kept = tensor.at(values.address)
            value = tensor.numbers(kept).reshape(kept.ne[0], kept.ne[1])[:, slot]
    except ValueError:
        return LayerRead(reason=SPLIT)
    if not heads or len(key) % heads:
        return LayerRead(reason=SPLIT)
    return LayerRead(
        key=_numbers(key, heads), value=None if value is None else _numbers(value, heads)
    )


def _numbers(part: np.ndarray, heads: int) -> HeadNumbers:
    numbers = part.astype("<f4").tobytes()
    return HeadNumbers(heads=heads, width=len(part) // heads, numbers=numbers)
