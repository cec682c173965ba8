"""One head of a layer whose record has come in part: its own group of heads stands for the layer.

So its map is worked out from what the kernel saw of it, and no other head's can be by mistake.
"""

from __future__ import annotations

from dataclasses import replace

from explorer.figures.attention.map_blocks import sources
from explorer.trace.trace import Trace
from explorer.trace.wire.away import group_of, groups_of, part_of


def has_arrived(trace: Trace, step: int, layer: int, head: int) -> bool:
    """True if this head's queries and keys have come for every row of the map of this step."""
    return all(
        not record.away or group_of(record, head) in dict(record.parts)
        for index in needed_passes(trace, step)
        for record in trace.steps[index].layers[layer : layer + 1]
    )


def needed_passes(trace: Trace, step: int) -> list[int]:
    """Those that the rows of a map of this step, or the keys of these rows, are of."""
    rows = {index for index, _, _ in sources(trace, step)}
    first = min((trace.steps[index].keys_from for index in rows), default=step)
    return list(range(first, step + 1)) if trace.request.uses_cache else sorted(rows)


def of_head(trace: Trace, step: int, layer: int, head: int) -> tuple[Trace, int]:
    """A trace whose `layer` is the group of this head, and the head's place in it.

    The same trace and head where the layer's records are here; the caller asks `has_arrived`.
    """
    if not any(s.layers[layer].away for s in trace.steps[: step + 1] if layer < len(s.layers)):
        return trace, head
    share = 1
    steps = []
    for one in trace.steps[: step + 1]:
        record = one.layers[layer]
        if record.away:
            group = group_of(record, head)
            share = record.away // record.groups
            record = dict(record.parts).get(group, record)
        elif record.kind != "absent":
            share = record.heads // groups_of(record)
            record = part_of(record, head // share)
        layers = (*one.layers[:layer], record, *one.layers[layer + 1 :])
        steps.append(replace(one, layers=layers))
    return replace(trace, steps=tuple(steps), chosen=trace.chosen[: step + 1]), head % share
