"""The logit lens: the stream after every layer, read through the file's own final norm and head.

The last row is the proof: computed again alone, it has to be the logits that the file gave, bit for
bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.inside.readings.lens_board import (
    LensBlock,
    LensReading,
    figures,
    raise_if,
    require_top,
    row_names,
)
from explorer.engine.passes.layout import chosen_slots
from explorer.llama_engine.inside.tail import GraphTail
from explorer.llama_engine.inside.watched_pass import watched_passes
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.inside.lens import LensBoard, ReadLens
from explorer.trace.rounding import largest
from explorer.trace.step import Token


def read(
    runner: LlamaRunner,
    asked: ReadLens,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[LensBoard], None] = lambda board: None,
) -> LensBoard:
    """Every row at the slots asked for.

    `part` gets the board of the first slots as soon as these are read.  BadInput where the last
    layer's logits are not the file's own; Cancelled within passes and between layers.
    """
    layout = runner.layout(asked.request, asked.chosen)
    slots = chosen_slots(layout, asked.slots)
    require_top(asked)
    layers = runner.card.layers

    def spelled(token_id: int) -> Token:
        return runner.model.tokenizer.token(token_id, "generated")

    reading = LensReading(len(slots), spelled, progress, part, row_names(layers))
    for span in watched_passes(runner, asked, asked.chosen, slots, cancelled):
        tail = GraphTail(span.context.watch, runner.recompute, layers)
        streams = span.streams
        reading.prove(largest(tail.logits(streams.outputs[layers - 1]) - span.logits), 0.0)
        found = []
        for stream in (streams.entered, *(streams.outputs[layer] for layer in range(layers - 1))):
            raise_if(cancelled)
            found.append(figures(tail.logits(stream)[None], span.logits, asked.top))
        found.append(figures(span.logits[None], span.logits, asked.top))
        block = LensBlock(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
        reading.add(block, span.slots)
    return reading.board()
