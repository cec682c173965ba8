"""Which head matters here: each head silenced in turn, the whole text read again each time."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.inside.readings.head_changes import require_heads, swept
from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.inside.heads import HeadSweep, SweepHeads
from explorer.trace.interventions.kinds import Silence


def sweep(
    runner: LlamaRunner,
    asked: SweepHeads,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[HeadSweep], None] = lambda found: None,
) -> HeadSweep:
    """Every head of every layer that attends; `part` is called after each layer.

    BadInput where heads can't be silenced, or there is no such token; EngineError where the logits
    are not numbers.
    """
    require_heads(runner.card)
    request, ids = asked.request, runner.layout(asked.request, asked.chosen).ids
    causal, later = request.causal_mask, request.sees_later

    def logits(*more: Silence) -> np.ndarray:
        changed = msgspec.structs.replace(request, interventions=(*request.interventions, *more))
        wanted = Wanted(every=0, inside=runner.inside(changed))
        context = runner.spare_context(len(ids), causal, whole=later)
        return forward(runner, context, ids, wanted, cancelled).logits

    heads = [runner.query_heads.get(layer, 0) for layer in range(runner.card.layers)]
    return swept(logits(), asked.token, heads, logits, progress, cancelled, part)
