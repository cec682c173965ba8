"""Passes of a run that is looked into: in a cache of their own, the run's is left alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.errors import EngineError
from explorer.llama_engine.passes.context import MOST_OUTPUTS, Context
from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.inside import Streams
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.experiments import Experiment


@dataclass(frozen=True, slots=True)
class WatchedCall:
    """One call of llama.cpp that read some of the slots asked for."""

    slots: tuple[int, ...]
    logits: np.ndarray  # (n, V) float32, the model's own, at those slots
    streams: Streams  # at the same slots
    context: Context


def watched_passes(
    runner: LlamaRunner,
    asked: Experiment,
    chosen: Sequence[int],
    slots: Sequence[int],
    stop: Stop,
    *,
    writes: bool = False,
) -> Iterator[WatchedCall]:
    """Passes that read the `slots`, in order, with the stream at each.

    `chosen` are the tokens that the run has picked so far.  The newest slot alone is read as the
    run itself read it, with the prompt or by a step after a copy of the run's cache: otherwise
    llama.cpp would round differently.  EngineError where the logits are no numbers.
    """
    request, layout = asked.request, runner.layout(asked.request, chosen)
    inside = runner.inside(request, reads=True, reads_writes=writes)
    later, newest = request.sees_later, len(layout.ids) - 1
    layout = layout if later else layout.first(max(slots) + 1)
    ids, waiting = layout.ids, list(slots)
    context = runner.spare_context(len(ids), request.causal_mask, whole=later)
    if chosen and waiting == [newest] and runner.caches(request):
        runner.copy_run(context, request, ids[:newest])
    while waiting:
        if later:  # the whole text, for each portion
            context.clear()
        limit = context.slots + context.shape.chunk
        here = [slot for slot in waiting if slot < limit][:MOST_OUTPUTS]
        end = len(ids) if later else here[-1] + 1 if here else limit
        done = forward(runner, context, ids[:end], Wanted(every=0, inside=inside), stop, here)
        waiting = waiting[len(here) :]
        if here:
            if not np.isfinite(done.logits).all():
                raise EngineError("The model's logits contain NaN or infinite values.")
            yield WatchedCall(tuple(here), done.logits, inside.streams, context)
