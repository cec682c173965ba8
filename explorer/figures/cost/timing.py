"""What each pass cost: measured times only, warm-up, capture and display told apart.  L: layers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from explorer.trace.cost.lap import Lap
from explorer.trace.step import Phase, Step
from explorer.trace.trace import Trace

Piece = Literal["embedding", "attention", "mlp", "layer rest", "norm", "head", "rest"]
_UNSETTLED = 2  # passes at the end whose display may not have been over when they were last shown
PIECES: tuple[Piece, ...] = ("embedding", "attention", "mlp", "layer rest", "norm", "head", "rest")


@dataclass(frozen=True, slots=True)
class TimedPass:
    """One pass as it was timed."""

    index: int
    phase: Phase
    forward_ms: float
    pieces: tuple[float, ...]  # of forward_ms, in the order of PIECES
    capture_ms: float
    pick_ms: float
    lap: Lap | None  # None = it did not come through this window
    positions: int
    slots: int  # that exist after the pass: what it would have read without a cache
    rebuilt_tokens: int  # slots prefilled again first because the cache was gone
    warm_up: bool
    step: Step = field(repr=False, compare=False)

    @property
    def course(self) -> tuple[float | None, ...]:
        """TimedPass, capture, picking, handing over and display; None = not measured.

        Handing over is what is left: packing, the way between the processes, unpacking.
        """
        engine = self.forward_ms + self.capture_ms + self.pick_ms
        if self.lap is None:
            return (self.forward_ms, self.capture_ms, self.pick_ms, None, None)
        over = max(0.0, self.lap.waited_ms - engine)
        return (self.forward_ms, self.capture_ms, self.pick_ms, over, self.lap.display_ms)

    @property
    def step_ms(self) -> float | None:
        """The whole step on the window's clock, or None if that was not measured."""
        if self.lap is None or self.lap.display_ms is None:
            return None
        return self.lap.waited_ms + self.lap.display_ms


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Where the time of one pass went, layer by layer.  (L,) float64 milliseconds."""

    attention: np.ndarray
    mlp: np.ndarray
    rest: np.ndarray  # norms and residual adds; all of it where a layer's parts have no clock
    embedding_ms: float | None  # None = the model has no such module of its own
    norm_ms: float | None
    head_ms: float | None
    outside_ms: float  # masks, positions and what else is in no part that has a clock
    has_parts: bool  # attention and MLP were timed on their own

    @property
    def layers(self) -> np.ndarray:
        """(L,) whole layers."""
        return np.asarray(self.attention + self.mlp + self.rest)

    @property
    def outside(self) -> tuple[tuple[Piece, float], ...]:
        """What is beside the layers, in the order it runs; what the model lacks is left out."""
        known: tuple[tuple[Piece, float | None], ...] = (
            ("embedding", self.embedding_ms), ("norm", self.norm_ms), ("head", self.head_ms),
            ("rest", self.outside_ms),
        )  # fmt: skip
        return tuple((piece, ms) for piece, ms in known if ms is not None)


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the middle half around it."""

    median: float
    low: float  # a quarter is faster
    high: float  # a quarter is slower
    count: int


@dataclass(frozen=True, slots=True)
class TimingFigure:
    """All passes of a run, and the parts of the selected one."""

    passes: tuple[TimedPass, ...]
    split: Split  # of the selected pass
    prefill_ms: float | None
    prefill_tokens: int
    reused_tokens: int  # slots of the prompt that were in the cache of the run before
    decode: Spread | None  # of a new token after the prefill, warm-up left out
    positions: int  # run through the model so far
    positions_without_cache: int  # what the same tokens take when every pass reads everything

    @property
    def tokens_per_second(self) -> float | None:
        """New tokens, by the median."""
        return 1000 / self.decode.median if self.decode else None


def chart(
    trace: Trace,
    index: int,
    shown: Callable[[Step], Lap | None] = lambda _: None,
    known: Sequence[TimedPass] = (),
) -> TimingFigure:
    """The passes of a trace; `index` selects the one whose layers are shown.

    `shown` tells the lap of a step; `known` are passes of an earlier figure, taken over
    as far as they are of the same steps, so that a long run costs no more with each step.
    """
    passes = tuple(_passes(trace, shown, known))
    first = passes[0]
    return TimingFigure(
        passes=passes,
        split=split(trace.steps[index]),
        prefill_ms=first.forward_ms if first.phase == "prefill" else None,
        prefill_tokens=first.positions,
        reused_tokens=trace.reused_tokens,
        decode=spread([p.forward_ms for p in passes[1:] if not p.warm_up]),
        positions=sum(p.positions + p.rebuilt_tokens for p in passes),
        positions_without_cache=sum(p.slots for p in passes),
    )


def spread(times: list[float]) -> Spread | None:
    """Median and quartiles; None of nothing."""
    if not times:
        return None
    ordered = sorted(times)
    last = len(ordered) - 1
    return Spread(
        statistics.median(ordered), ordered[last // 4], ordered[last - last // 4], len(ordered)
    )


def split(step: Step) -> Split:
    """Where the time of one pass went."""
    layers = step.layer_ms.astype(np.float64)
    attention, mlp = (_known(ms, layers) for ms in (step.attention_ms, step.mlp_ms))
    return Split(
        attention=attention,
        mlp=mlp,
        rest=np.maximum(layers - attention - mlp, 0.0),
        embedding_ms=step.embedding_ms,
        norm_ms=step.norm_ms,
        head_ms=step.head_ms,
        outside_ms=step.rest_ms,
        has_parts=bool(attention.any() or mlp.any()),
    )


def _known(times: np.ndarray | None, layers: np.ndarray) -> np.ndarray:
    """(L,) float64; 0 where a layer has no such part."""
    return np.zeros(len(layers)) if times is None else np.nan_to_num(times.astype(np.float64))


def _passes(
    trace: Trace, shown: Callable[[Step], Lap | None], known: Sequence[TimedPass]
) -> Iterator[TimedPass]:
    """A step stands for all before it; only the last laps may have become known meanwhile."""
    steps, count = trace.steps, len(known)
    if not known or count > len(steps) or known[-1].step is not steps[count - 1]:
        count = 0
    settled = max(0, count - _UNSETTLED)
    yield from known[:settled]
    for step in steps[settled:]:
        yield _pass(step, shown(step))


def _pass(step: Step, lap: Lap | None) -> TimedPass:
    return TimedPass(
        step.index,
        step.phase,
        step.forward_ms,
        _pieces(step),
        step.capture_ms,
        step.pick_ms,
        lap,
        step.positions_processed,
        step.first_slot + step.positions_processed,
        step.rebuilt_tokens,
        step.warm_up,
        step,
    )


def _pieces(step: Step) -> tuple[float, ...]:
    """The pass in the order of PIECES; they add up to it."""
    layers = float(step.layer_ms.sum(dtype=np.float64))
    attention, mlp = _sum(step.attention_ms), _sum(step.mlp_ms)
    return (
        step.embedding_ms or 0.0,
        attention,
        mlp,
        max(layers - attention - mlp, 0.0),
        step.norm_ms or 0.0,
        step.head_ms or 0.0,
        step.rest_ms,
    )


def _sum(times: np.ndarray | None) -> float:
    return 0.0 if times is None else float(np.nansum(times, dtype=np.float64))
