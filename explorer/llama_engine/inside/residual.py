"""How long the residual stream is after each layer, where it points, and what each part added.

A layer's output is the last of llama.cpp's own sums, so what its parts wrote is what was added.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import BadInput
from explorer.engine.inside.readings.lens_board import raise_if, row_names
from explorer.engine.inside.readings.stream_reading import StreamReading
from explorer.engine.inside.sums import gap_of
from explorer.engine.passes.layout import chosen_slots
from explorer.llama_engine.inside.watched_pass import watched_passes
from explorer.llama_engine.passes.inside import Located, Streams
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.trace.inside.stream import ReadStream, ResidualStream, StreamWrite

TOLERANCE = 2e-4  # of a layer's change: sums of float32


def read(
    runner: LlamaRunner,
    asked: ReadStream,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[ResidualStream], None] = lambda found: None,
) -> ResidualStream:
    """Norms and cosines at the slots asked for.

    `part` gets those of the first slots as soon as they are read.  BadInput where what was written
    does not add up to what a layer changed; Cancelled within passes.
    """
    slots = chosen_slots(runner.layout(asked.request, asked.chosen), asked.slots)
    layers, located = runner.card.layers, runner.located(True)
    rows, writes = row_names(layers), _named(located)
    reading = StreamReading(len(slots), progress, part, rows, writes)
    for span in watched_passes(runner, asked, asked.chosen, slots, cancelled, writes=True):
        raise_if(cancelled)
        streams = [span.streams.entered, *(span.streams.outputs[i] for i in range(layers))]
        gap = _gap(streams, span.streams, located)
        if gap > TOLERANCE:
            raise BadInput(
                "What the parts of this model's layers wrote does not add up to the change of the "
                f"residual stream here: it is off by {gap:.2g} of its largest entry."
            )
        added = [span.streams.writes[place] for place in located.kinds]
        reading.add(span.slots, streams, added, streams[-1], gap)
    return reading.result()


def _gap(streams: list[np.ndarray], found: Streams, located: Located) -> float:
    """The largest part of a layer's change that nothing wrote."""
    worst = 0.0
    for layer, (before, after) in enumerate(itertools.pairwise(streams)):
        change = after.astype(np.float64) - before
        left = change.copy()
        for place in located.kinds:
            if place[0] == layer:
                left -= found.writes[place]
        rounding = 2 * np.finfo(np.float32).eps * (np.abs(before) + np.abs(after))
        worst = max(worst, gap_of(left, change, rounding))
    return worst


def _named(located: Located) -> tuple[StreamWrite, ...]:
    """Named by what they are: few nodes of llama.cpp's graph have a name of their own."""
    seen, found = Counter[tuple[int, str]](), []
    for (layer, _), kind in located.kinds.items():
        seen[layer, kind] += 1
        count = seen[layer, kind]
        name = f"{kind} {count}" if count > 1 else kind
        found.append(StreamWrite(layer=layer, name=name, kind=kind))
    return tuple(found)
