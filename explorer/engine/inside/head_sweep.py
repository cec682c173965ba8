"""Which head matters here: each head silenced in turn, the whole text read again each time.

A head changes nothing below its own layer, so what the layers below gave is given again in place
of running them, where that leaves the logits as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.capture.attention_sites import sites
from explorer.engine.errors import EngineError
from explorer.engine.inside.readings.head_changes import require_heads, swept
from explorer.engine.passes.generate import forward
from explorer.engine.passes.interventions import Forward, forward_of
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.inside.heads import HeadSweep, SweepHeads
from explorer.trace.interventions.kinds import Silence
from explorer.trace.request import RunRequest


def sweep(
    runner: Runner,
    asked: SweepHeads,
    progress: Report,
    cancelled: Stop = never,
    part: Callable[[HeadSweep], None] = lambda found: None,
) -> HeadSweep:
    """Every head of every layer that attends; `part` is called after each layer.

    BadInput where heads can't be silenced, or there is no such token; EngineError where the logits
    are not numbers.
    """
    require_heads(runner.loaded.card)
    request = msgspec.structs.replace(asked.request, cache=False)
    layout = runner.layout(request, asked.chosen)
    outputs: dict[int, Any] = {}
    with contextlib.ExitStack() as stack:
        for layer, module in enumerate(runner.layers):
            stack.enter_context(forward_of(module, _keeping(outputs, layer)))
        whole = forward(runner, request, layout, 0, None, cancelled)
    heads = [
        site.call.query.shape[1] if site.call is not None else 0 for site in sites(whole.recorder)
    ]

    def without(one: Silence) -> np.ndarray:
        return _logits(runner, request, layout, cancelled, one)

    def from_layer(layer: int) -> AbstractContextManager[None]:
        return _from_layer(runner, request, layout, layer, outputs, whole.logits, cancelled)

    return swept(whole.logits, asked.token, heads, without, progress, cancelled, part, from_layer)


@contextlib.contextmanager
def _from_layer(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    layer: int,
    outputs: dict[int, Any],
    expected: np.ndarray,
    cancelled: Stop,
) -> Iterator[None]:
    """While inside, the layers below `layer` give what they gave before, if that is exact."""
    with contextlib.ExitStack() as stack:
        for below in range(layer):
            stack.enter_context(forward_of(runner.layers[below], _giving(outputs[below])))
        try:
            same = layer and (_logits(runner, request, layout, cancelled) == expected).all()
        except EngineError:  # a later layer reads what an earlier one left elsewhere
            same = False
        if not same:
            stack.close()
        yield


def _logits(
    runner: Runner, request: RunRequest, layout: Layout, cancelled: Stop, *more: Silence
) -> np.ndarray:
    """(V,) at the readout, with `more` silenced."""
    changed = msgspec.structs.replace(request, interventions=(*request.interventions, *more))
    return forward(runner, changed, layout, 0, None, cancelled).logits


def _keeping(outputs: dict[int, Any], layer: int) -> Callable[[Forward], Forward]:
    def wrap(forward: Forward) -> Forward:
        def keeping(*args: Any, **kwargs: Any) -> Any:
            outputs[layer] = forward(*args, **kwargs)
            return outputs[layer]

        return keeping

    return wrap


def _giving(output: Any) -> Callable[[Forward], Forward]:
    return lambda forward: lambda *args, **kwargs: output
