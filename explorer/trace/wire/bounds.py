"""How large each number of a file or a frame may be: asked before anything is made of them.

What is not named here has the bounds of `COUNT` or `MEASURE`, so that a new field is bounded too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec

from explorer.trace.batch import BatchRequest, BatchResult, BatchRow, Ranked, Reading, Scored
from explorer.trace.card import Capability, Check, ModelCard
from explorer.trace.cost.run_cost import Plan
from explorer.trace.interventions.kinds import Scale
from explorer.trace.request import MOST_GPU_LAYERS, MOST_SEED, RunRequest, Sampling
from explorer.trace.step import Draw, RankShare, Token
from explorer.trace.wire.messages import Facts, PartFacts, Progress
from explorer.trace.wire.packing import LayerHeader, StepHeader


@dataclass(frozen=True, slots=True)
class Bound:
    """From `least` to `most`, both included; `finite` False: infinite and NaN as well."""

    least: float
    most: float
    finite: bool = True

    def holds(self, number: float) -> bool:
        """True if this number may be in a file or a frame."""
        if isinstance(number, float) and not math.isfinite(number):
            return not self.finite
        return self.least <= number <= self.most

    @property
    def words(self) -> str:
        """What a number has to be, as a part of a sentence."""
        return f"a number from {_short(self.least)} to {_short(self.most)}"


MOST_PADDING = 1 << 20  # slots; each is a token that the engine would make
MOST_OFFSET = 1 << 26  # positions; no context is as long
MOST_LAYERS = 100_000  # figures make lists of that length
COUNT = Bound(0, 2**31 - 1)  # what a window's controls can hold
MEASURE = Bound(0, 1e15)
_LONG = Bound(0, 2**63 - 1)
_SHARE = Bound(0, 1 + 1e-6)
_FACTOR = Bound(-1e18, 1e18)
_ANY = Bound(-(2**63), 2**64, finite=False)  # only shown
_FOUND = Bound(-1e300, 1e300, finite=False)  # by a measurement that may have gone wrong
_SIZE = Bound(0, 2**50)
_FACT = Bound(-1e39, 1e39, finite=False)  # whatever an experiment gives: logits are float32
_LONG_WRITTEN = 1e15  # floats from here on are written with an exponent

BOUNDS: dict[tuple[type, str], Bound] = {
    (RunRequest, "pad"): Bound(0, MOST_PADDING),
    (RunRequest, "gpu_layers"): Bound(0, MOST_GPU_LAYERS),
    (RunRequest, "capture_every"): Bound(1, 2**31 - 1),
    (RunRequest, "position_offset"): Bound(0, MOST_OFFSET),
    (BatchRequest, "extra"): Bound(0, MOST_PADDING),
    (BatchRequest, "steps"): Bound(1, MOST_PADDING),
    (Scale, "factor"): Bound(0, 1e6),
    (Sampling, "temperature"): Bound(0, 1e300),
    (Sampling, "repetition_penalty"): Bound(0, 1e300),
    (Sampling, "seed"): Bound(0, MOST_SEED),
    (Draw, "probability"): _SHARE,
    (Draw, "raw_probability"): _SHARE,
    (Draw, "u"): Bound(0, 1),
    (Draw, "entropy_bits"): Bound(-1e-6, 64),
    (StepHeader, "cache_bytes_per_layer"): _SIZE,
    (RankShare, "cache_bytes"): _SIZE,
    (LayerHeader, "mask"): Bound(-1, 2**31 - 1),  # -1 = none
    (LayerHeader, "scaling"): _FACTOR,
    (ModelCard, "layers"): Bound(0, MOST_LAYERS),
    (ModelCard, "parameters"): _LONG,
    (ModelCard, "missing_bytes"): Bound(0, 255),
    (ModelCard, "generation_defaults"): _ANY,
    (ModelCard, "fingerprint"): _ANY,
    (Check, "measured"): _FOUND,
    (Check, "tolerance"): _FOUND,
    (Capability, "measured"): _FOUND,
    (BatchResult, "tolerance"): MEASURE,
    (BatchRow, "max_abs_diff_vs_alone"): MEASURE,
    (BatchRow, "unshifted_nats"): _FOUND,
    (BatchRow, "alone_nats"): _FOUND,
    (Reading, "max_abs_diff"): MEASURE,
    (Ranked, "probability"): _SHARE,
    (Scored, "nats"): _FOUND,
    (Progress, "fraction"): Bound(0, 1),
    (Plan, "weights_bytes"): _SIZE,
    (Plan, "cache_bytes"): _SIZE,
    (Plan, "capture_bytes"): _SIZE,
    (Plan, "available_bytes"): _SIZE,
    (Plan, "capture_every"): Bound(1, 2**31 - 1),
    (Facts, "facts"): _FACT,
    (PartFacts, "facts"): _FACT,
}


def bound_of(kind: type, field: str, number: float) -> Bound:
    """What a number in this field has to keep to."""
    return BOUNDS.get((kind, field), COUNT if isinstance(number, int) else MEASURE)


def require_bounded(value: Any) -> None:
    """ValueError naming the first number of a struct, or of one in it, that is out of bounds."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            inner = getattr(value, field)
            for number in _numbers(inner):
                bound = bound_of(type(value), field, number)
                if not bound.holds(number):
                    raise ValueError(f"{field} is {_short(number)}, not {bound.words}")
            require_bounded(inner)
    elif isinstance(value, list | tuple):
        for inner in _apart(value):
            require_bounded(inner)
    elif isinstance(value, dict):
        for inner in value.values():
            require_bounded(inner)


def _apart(values: Sequence[Any]) -> Iterable[Any]:
    """Those that have to be looked into; of many tokens the ones with extreme ids do."""
    tokens = [value for value in values if isinstance(value, Token)]
    if len(tokens) == len(values) > 1:
        return min(tokens, key=_token_id), max(tokens, key=_token_id)
    return [value for value in values if not isinstance(value, int | float | str | bytes)]


_token_id = attrgetter("id")


def _numbers(value: Any) -> Iterable[float]:
    """The numbers in a field, those of structs in it left out; of many ints the extremes do."""
    if isinstance(value, int | float):
        return () if isinstance(value, bool) else (value,)
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    if not isinstance(value, list | tuple) or not value:
        return ()
    if type(value[0]) is int and all(type(inner) is int for inner in value):
        return min(value), max(value)
    return [number for inner in value for number in _numbers(inner)]


def _short(number: float) -> str:
    """A number of any length, short enough for a sentence."""
    if isinstance(number, int) and abs(number) >= 2**64:
        return f"about 2^{number.bit_length()}"
    large = isinstance(number, float) and abs(number) >= _LONG_WRITTEN
    return f"{number:g}" if large else f"{number:,}"
