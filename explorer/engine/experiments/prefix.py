"""The prefix experiment: drop the last token, and see what moves at the earlier positions.

With the causal mask nothing may move but rounding; without it every layer after the first does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from explorer.engine.errors import BadInput
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest

MOST_SLOTS = 512  # logits of every slot are kept twice
Stop = Callable[[], bool]


def experiment(
    runner: Runner, request: RunRequest, chosen: Sequence[int], stop: Stop = lambda: False
) -> dict[str, Any]:
    """Both runs, each {layers: [relative shift per layer], logits: …, logits_abs: …}.

    A shift is the largest change at any earlier position, divided by the root mean square of
    that layer's output (of the logits) over those positions.  `unmasked` is None, with the reason
    under `why`, where this model's mask can't be switched off.  BadInput on fewer than two slots.
    """
    layout = runner.layout(request, chosen)
    note = ""
    if len(layout.ids) > MOST_SLOTS:
        note = f"measured on the first {MOST_SLOTS} of {len(layout.ids)} positions"
        layout = layout.first(MOST_SLOTS)
    if len(layout.ids) < 2:
        raise BadInput(
            "The experiment removes the last token, so the prompt needs at least two tokens."
        )
    result: dict[str, Any] = {"tokens": len(layout.ids), "note": note, "why": ""}
    for name, causal in (("masked", True), ("unmasked", False)):
        asked = RunRequest(causal_mask=causal, cache=False)
        if not causal and not runner.loaded.card.offers("causal_off"):
            result[name], result["why"] = None, runner.loaded.card.words("causal_off")
            continue
        whole = _outputs(runner, asked, layout, stop)
        short = _outputs(runner, asked, layout.first(len(layout.ids) - 1), stop)
        keep = np.array(layout.attention_mask[:-1], bool)
        layers = [_shift(a, b, keep) for a, b in zip(whole[0], short[0], strict=True)]
        result[name] = {
            "layers": layers,
            "logits": _shift(whole[1], short[1], keep),
            "logits_abs": float(np.abs(whole[1][: len(keep)] - short[1])[keep].max()),
        }
    return result


def _outputs(
    runner: Runner, request: RunRequest, layout: Any, stop: Stop
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
        done = runner.forward(request, layout, 0, None, stop, at=range(len(layout.ids)))
    finally:
        for handle in handles:
            handle.remove()
    return [kept[index] for index in sorted(kept)], done.logits


def _shift(whole: np.ndarray, short: np.ndarray, keep: np.ndarray) -> float:
    before = whole[: len(short)][keep]
    scale = float(np.sqrt(np.mean(np.square(before, dtype=np.float64)))) or 1.0
    return float(np.abs(before - short[keep]).max() / scale)
