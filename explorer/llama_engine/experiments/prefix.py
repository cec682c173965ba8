"""The prefix experiment: drop the last token, and see what moves at the earlier positions."""

from __future__ import annotations

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import EngineError
from explorer.engine.experiments.prefix_shift import laid_out, shifts
from explorer.llama_engine.passes.generate import forward
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.experiments import PrefixExperiment, PrefixShift, Shifts
from explorer.trace.request import RunRequest

UNNAMED = (
    "llama.cpp does not name the layer outputs of this architecture, so they can't be compared."
)


def drop_last(
    runner: LlamaRunner, asked: PrefixExperiment, progress: Report, cancelled: Stop = never
) -> PrefixShift:
    """Both runs, as the torch engine's experiment of this name; BadInput on fewer than two slots.

    EngineError where the outputs are not numbers, or not to be had.
    """
    layout, note = laid_out(runner.layout(asked.request, asked.chosen))
    masked = _shifts(runner, asked.request, True, layout.ids, cancelled)
    progress("Removing the last token…", 0.5)
    able = runner.card.offers("causal_off")
    return PrefixShift(
        tokens=len(layout.ids),
        note=note,
        why="" if able else runner.card.words("causal_off"),
        masked=masked,
        unmasked=_shifts(runner, asked.request, False, layout.ids, cancelled) if able else None,
    )


def _shifts(
    runner: LlamaRunner, asked: RunRequest, causal: bool, ids: tuple[int, ...], stop: Stop
) -> Shifts:
    request = msgspec.structs.replace(asked, causal_mask=causal, cache=False)
    whole = _outputs(runner, request, ids, stop)
    short = _outputs(runner, request, ids[:-1], stop)
    return shifts(whole, short, np.ones(len(ids) - 1, bool))


def _outputs(
    runner: LlamaRunner, request: RunRequest, ids: tuple[int, ...], stop: Stop
) -> tuple[list[np.ndarray], np.ndarray]:
    """((T, d) output of each layer, (T, V) logits) of one uncached pass."""
    wanted = Wanted(every=0, outputs=True, inside=runner.inside(request))
    whole = request.sees_later
    context = runner.spare_context(len(ids), request.causal_mask, len(ids), whole=whole)
    done = forward(runner, context, ids, wanted, stop, at=range(len(ids)))
    parts = [one.outputs for one in done.seen.seen]
    layers = sorted(parts[0])
    if not layers:
        raise EngineError(UNNAMED)
    return [np.concatenate([part[layer] for part in parts]) for layer in layers], done.logits
