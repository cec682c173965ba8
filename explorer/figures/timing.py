"""What each pass cost: measured times only, warm-up and capture told apart."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from explorer.trace.step import Phase, Step
from explorer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass as it was timed."""

    index: int
    phase: Phase
    forward_ms: float
    capture_ms: float
    positions: int
    rebuilt_tokens: int  # slots prefilled again first because the cache was gone
    warm_up: bool


@dataclass(frozen=True, slots=True)
class TimingFigure:
    """All passes of a run, and the parts of the selected one."""

    passes: tuple[Pass, ...]
    layer_ms: np.ndarray  # (L,) float32 of the selected pass
    outside_layers_ms: float  # embedding, final norm, head and the rest of the selected pass
    prefill_ms: float | None
    median_ms: float | None  # of a new token after the prefill, warm-up left out
    tokens_per_second: float | None
    positions: int  # run through the model so far
    positions_without_cache: int  # what the same tokens take when every pass reads everything


def chart(trace: Trace, index: int) -> TimingFigure:
    """The passes of a trace; `index` selects the one whose layers are shown."""
    passes = tuple(_pass(step) for step in trace.steps)
    selected = trace.steps[index]
    later = [p.forward_ms for p in passes[1:] if not p.warm_up]
    median = statistics.median(later) if later else None
    first = passes[0]
    return TimingFigure(
        passes=passes,
        layer_ms=selected.layer_ms,
        outside_layers_ms=max(0.0, selected.forward_ms - float(selected.layer_ms.sum())),
        prefill_ms=first.forward_ms if first.phase == "prefill" else None,
        median_ms=median,
        tokens_per_second=1000 / median if median else None,
        positions=sum(p.positions + p.rebuilt_tokens for p in passes),
        positions_without_cache=sum(trace.read_slots(i) for i in range(len(passes))),
    )


def _pass(step: Step) -> Pass:
    return Pass(
        step.index,
        step.phase,
        step.forward_ms,
        step.capture_ms,
        step.positions_processed,
        step.rebuilt_tokens,
        step.warm_up,
    )


def ms_text(ms: float) -> str:
    """Milliseconds in three significant digits; seconds from ten thousand on."""
    if ms >= 10_000:
        return f"{ms / 1000:,.1f} s"
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"
