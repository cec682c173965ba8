"""Does this model turn its keys by their position, and in which way?

The same tokens are read at other positions: where only distances count, every key is the one of
before, rotated.  One of the positions lies beyond the model's context.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.engine.callbacks import Stop
from explorer.engine.capture.rotation import Rotation
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest

_STYLES = {"halves": False, "neighbours": True}
_CHANGING = ("dynamic", "longrope")  # frequencies that depend on how long the text is
_NEAR, _FAR = 3, 1000  # positions
# Of the largest key: rounding, and of angles by each position, which the library has in float32.
_ROUNDING = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
_ANGLE = 4e-7


def named(model: Any, style: str) -> Rotation | None:
    """The rotation of this style; None without one."""
    frequencies = _frequencies(model)
    if style not in _STYLES or frequencies is None:
        return None
    return Rotation(frequencies, _STYLES[style])


def name_of(rotation: Rotation | None) -> str:
    """Its style, for `named`."""
    return next((n for n, s in _STYLES.items() if rotation and rotation.interleaved == s), "")


def find(runner: Runner, layout: Layout, stop: Stop) -> tuple[Rotation | None, float | None]:
    """(the rotation, the largest gap relative to the largest key); None where none fits.

    A model without rotary frequencies is not run: it may have no row for a position so far.
    """
    if _frequencies(runner.model) is None:
        return None, None
    context = runner.loaded.card.context
    offsets = (_NEAR, context + _NEAR if context else _FAR)
    best: float | None = None
    before = _keys(runner, layout, 0, stop)
    moved = [_keys(runner, layout, offset, stop) for offset in offsets]
    for style in _STYLES:
        rotation = named(runner.model, style)
        if rotation is None or not before:
            continue
        gaps = [
            _gap(rotation, before, after, offset)
            for after, offset in zip(moved, offsets, strict=True)
        ]
        best = max(gaps) if best is None else min(best, max(gaps))
        rounding = _ROUNDING.get(runner.loaded.card.dtype, 1e-4)
        if all(g <= rounding + _ANGLE * o for g, o in zip(gaps, offsets, strict=True)):
            return rotation, max(gaps)
    return None, best


def _frequencies(model: Any) -> torch.Tensor | None:
    """(r/2,) of all its rotary embeddings; None if they differ, change or are not there."""
    found = [m for m in model.modules() if isinstance(getattr(m, "inv_freq", None), torch.Tensor)]
    if not found or any(getattr(m, "rope_type", "") in _CHANGING for m in found):
        return None
    first = found[0].inv_freq
    same = all(m.inv_freq.shape == first.shape and bool((m.inv_freq == first).all()) for m in found)
    return first if same and first.ndim == 1 else None


def _keys(runner: Runner, layout: Layout, offset: int, stop: Stop) -> list[torch.Tensor]:
    """(H_kv, T, d_h) of each layer, the tokens read from this position on; none of an odd model."""
    places = tuple(place + offset for place in layout.position_ids)
    moved = Layout(layout.ids, layout.attention_mask, places, offset)
    done = forward(runner, RunRequest(cache=False), moved, 0, None, stop)
    calls = done.recorder.calls
    capped = any(call.options.get("softcap") for call in calls)
    return [] if capped else [call.key[0].float() for call in calls]


def _gap(
    rotation: Rotation, before: list[torch.Tensor], after: list[torch.Tensor], offset: int
) -> float:
    if len(before) != len(after):
        return float("inf")
    worst = 0.0
    for one, two in zip(before, after, strict=True):
        if one.shape != two.shape or one.shape[-1] < 2 * len(rotation.frequencies):
            return float("inf")
        by = torch.full((one.shape[1],), offset, device=one.device)
        gap = (rotation.turned(one, by) - two).abs().max() / two.abs().max()
        worst = max(worst, float(gap))
    return worst
