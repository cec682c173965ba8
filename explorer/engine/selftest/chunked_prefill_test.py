"""Is a prompt read in chunks the same as one read whole?  Logits, kernel outputs and maps."""

from __future__ import annotations

from explorer.engine.callbacks import Stop
from explorer.engine.passes.chunked_prefill import Gathered
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps
from explorer.trace import attention
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest

ENDS = (5, 9)  # of all chunks but the last: longer and shorter than the windows of small models


def boundable(reference: ForwardPass) -> bool:
    """True if no layer keeps T² numbers: recorded maps and biases would grow with the square."""
    return all(
        one.record.kind == "qk" and one.record.bias is None
        for one in measured_gaps.drawn(reference)
    )


def gaps(runner: Runner, layout: Layout, reference: ForwardPass, stop: Stop) -> tuple[float, float]:
    """(largest distance of logits, of kernel outputs and rebuilt weights) from `reference`.

    `reference` is the uncached pass over `layout` with logits of every slot.
    """
    slots = len(layout.ids)
    gathered = Gathered(slots, runner.capture.windowed)
    logits = maps = 0.0
    begin = 0
    runner.cache.fresh()
    for end in (*ENDS, slots):
        part, cache = layout.first(end), runner.cache.live
        done = forward(runner, RunRequest(), part, begin, cache, stop, keep_outputs=True)
        logits = max(logits, largest(done.logits - reference.logits[end - 1]))
        maps = max(maps, *measured_gaps.kernel_output(done, part).values(), 0.0)
        gathered.add(done.recorder, end, runner.capture.proven)
        begin = end
    drawn = {record.layer: record for record in gathered.layers()}
    proven = runner.capture.proven
    for one in measured_gaps.drawn(reference):
        if proven is None or one.record.layer not in proven.decoded:
            continue
        record = drawn[one.record.layer]
        if record.kind != "qk" or record.keys is None:
            return logits, float("inf")
        for head in range(record.heads):
            ours = attention.weights(record, record.keys, head)
            maps = max(maps, largest(ours - one.weights(head)))
    return logits, maps
