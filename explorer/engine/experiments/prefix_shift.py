"""How far earlier positions moved once the last token was dropped: the part without a model."""

from __future__ import annotations

import numpy as np

from explorer.engine.errors import BadInput, EngineError
from explorer.engine.passes.layout import Layout
from explorer.trace.experiments import Shifts

MOST_SLOTS = 512  # logits of every slot are kept twice
Outputs = tuple[list[np.ndarray], np.ndarray]  # (T, d) of each layer, (T, V) logits


def laid_out(layout: Layout) -> tuple[Layout, str]:
    """The slots that are measured, and a note if those are not all; BadInput on fewer than two."""
    note = ""
    if len(layout.ids) > MOST_SLOTS:
        note = f"measured on the first {MOST_SLOTS} of {len(layout.ids)} positions"
        layout = layout.first(MOST_SLOTS)
    if len(layout.ids) < 2:
        raise BadInput(
            "The experiment removes the last token, so the prompt needs at least two tokens."
        )
    return layout, note


def shifts(whole: Outputs, short: Outputs, keep: np.ndarray) -> Shifts:
    """Of the real slots `keep` (T - 1,) bool; EngineError where the outputs are not numbers."""
    layers = [_shift(a, b, keep) for a, b in zip(whole[0], short[0], strict=True)]
    logits = _shift(whole[1], short[1], keep)
    if not np.isfinite([*layers, logits]).all():
        raise EngineError("The model's outputs contain NaN or infinite values. Try another dtype.")
    moved = float(np.abs(whole[1][: len(keep)] - short[1])[keep].max())
    return Shifts(layers=tuple(layers), logits=logits, logits_abs=moved)


def _shift(whole: np.ndarray, short: np.ndarray, keep: np.ndarray) -> float:
    before = whole[: len(short)][keep]
    scale = float(np.sqrt(np.mean(np.square(before, dtype=np.float64)))) or 1.0
    return float(np.abs(before - short[keep]).max() / scale)
