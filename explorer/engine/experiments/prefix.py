"""The prefix experiment: drop the last token, and see what moves at the earlier positions.

With the causal mask nothing may move but rounding; without it every layer after the first does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import torch

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.experiments.prefix_shift import laid_out, shifts
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.experiments import PrefixExperiment, PrefixShift, Shifts
from explorer.trace.request import RunRequest


def drop_last(
    runner: Runner, asked: PrefixExperiment, progress: Report, cancelled: Stop = never
) -> PrefixShift:
    """Both runs: the largest change at any earlier position, by the root mean square there.

    `unmasked` is None, with the reason in `why`, where this model's mask can't be switched off.
    BadInput on fewer than two slots, EngineError where the outputs are not numbers.
    """
    layout, note = laid_out(runner.layout(asked.request, asked.chosen))
    masked = _shifts(runner, asked.request, True, layout, cancelled)
    progress("Removing the last token…", 0.5)
    able = runner.loaded.card.offers("causal_off")
    return PrefixShift(
        tokens=len(layout.ids),
        note=note,
        why="" if able else runner.loaded.card.words("causal_off"),
        masked=masked,
        unmasked=_shifts(runner, asked.request, False, layout, cancelled) if able else None,
    )


def _shifts(runner: Runner, asked: RunRequest, causal: bool, layout: Layout, stop: Stop) -> Shifts:
    request = msgspec.structs.replace(asked, causal_mask=causal, cache=False)
    whole = _outputs(runner, request, layout, stop)
    short = _outputs(runner, request, layout.first(len(layout.ids) - 1), stop)
    keep = np.array(layout.attention_mask[:-1], bool)
    return shifts(whole, short, keep)


def _outputs(
    runner: Runner, request: RunRequest, layout: Layout, stop: Stop
) -> tuple[list[np.ndarray], np.ndarray]:
    """((T, d) output of each decoder layer, (T, V) logits) of one uncached pass."""
    kept: dict[int, np.ndarray] = {}

    def keep(index: int) -> Callable[..., None]:
        def hook(module: Any, args: Any, output: Any) -> None:
            hidden = output if isinstance(output, torch.Tensor) else output[0]
            kept[index] = hidden[0].float().cpu().numpy()

        return hook

    handles = [
        layer.register_forward_hook(keep(index)) for index, layer in enumerate(runner.layers)
    ]
    try:
        done = forward(runner, request, layout, 0, None, stop, at=range(len(layout.ids)))
    finally:
        for handle in handles:
            handle.remove()
    return [kept[index] for index in sorted(kept)], done.logits
