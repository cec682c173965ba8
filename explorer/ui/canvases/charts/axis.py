"""Axes: where a value lies, and which ticks a range of them has, in words with their unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, log10

import numpy as np

_STEPS = (1, 2, 5)
_STEPS_OF_1024 = (1, 2, 4, 5, 10, 20, 40, 50, 100, 200, 400, 500)
_ZERO_BELOW = 0.7  # decades between an exact 0 and the lowest decade


def plain(value: float) -> str:
    """A number without a unit: "1,024", "0.25"."""
    return f"{value:z,.0f}" if value == round(value) else f"{value:z.3g}"


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a chart; a place on it is the value itself, or its logarithm."""

    name: str  # what runs along it: "layer", "probability"
    words: Callable[[float], str] = plain  # a tick, with its unit
    whole: bool = False  # ticks at whole numbers alone
    binary: bool = False  # ticks at multiples of powers of 1024: bytes
    switch: bool = False  # the user may turn the logarithm on and off
    log: bool = False
    least: float = 1e-8  # on a logarithmic axis what is smaller lies here
    zero: bool = False  # on a logarithmic axis an exact 0 has a place of its own, below `least`
    named: Mapping[float, str] = field(default_factory=dict)  # places that have words for a tick
    last: float | None = None  # the highest value that has a number: beyond are named places alone

    def turned(self, log: bool) -> Axis:
        """The same axis, logarithmic or not."""
        return replace(self, log=log)

    def place(self, values: np.ndarray) -> np.ndarray:
        """(N,) float64 places of (N,) values; NaN stays NaN."""
        values = np.asarray(values, np.float64)
        if not self.log:
            return values
        places = np.log10(np.maximum(values, self.least))
        return np.where(values <= 0, self.place_of_zero, places) if self.zero else places

    def value(self, places: np.ndarray) -> np.ndarray:
        """(N,) float64 values of (N,) places: the inverse of `place`."""
        places = np.asarray(places, np.float64)
        if not self.log:
            return places
        values = 10.0**places
        return np.where(places < log10(self.least) - 1e-9, 0.0, values) if self.zero else values

    @property
    def place_of_zero(self) -> float:
        """Where an exact 0 lies on a logarithmic axis."""
        return log10(self.least) - (_ZERO_BELOW if self.zero else 0.0)

    def ticks(self, low: float, high: float, most: int) -> list[tuple[float, str]]:
        """Places from `low` to `high` with their words: `most` of them, and the named ones."""
        if self.log:
            found = self._decades(low, high, most)
        else:
            end = high if self.last is None else min(high, self.last)
            start = max(low, 0.0) if self.named or self.last is not None else low
            found = [(v, self.words(v)) for v in round_values(start, end, most, self)]
        taken = {place for place, _ in found}
        named = ((p, w) for p, w in self.named.items() if low <= p <= high and p not in taken)
        return [*found, *named]

    def _decades(self, low: float, high: float, most: int) -> list[tuple[float, str]]:
        first, last = ceil(low - 1e-9), floor(high + 1e-9)
        every = max(1, ceil((last - first + 1) / max(most, 1)))
        places: list[float] = [float(d) for d in range(first, last + 1) if (last - d) % every == 0]
        if len(places) < 2:  # less than a decade: round values in it
            around = replace(self, log=False, whole=False)
            places = [log10(v) for v in round_values(10.0**low, 10.0**high, most, around) if v > 0]
        found = [
            (p, self.words(10.0**p)) for p in places if not self.zero or p >= log10(self.least)
        ]
        if self.zero and low <= self.place_of_zero <= high:
            found.append((self.place_of_zero, self.words(0.0)))
        return found


def round_values(low: float, high: float, most: int, axis: Axis) -> list[float]:
    """Multiples of a round step from `low` to `high`: no more than `most`, but at least one."""
    span = high - low
    if not span > 0:
        return [low] if span == 0 else []
    step = _step(span / max(most, 1), axis)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _step(least: float, axis: Axis) -> float:
    """The smallest round step that is not below `least`."""
    if axis.whole and least <= 1:
        return 1.0
    if axis.binary:
        unit = 1024.0 ** max(0, floor(log10(max(least, 1)) / log10(1024)))
        fitting = (unit * step for step in (*_STEPS_OF_1024, 1024))
        return next(step for step in fitting if step >= min(least, unit * 1024))
    power = 10.0 ** floor(log10(least))
    return next(power * step for step in (*_STEPS, 10) if power * step >= least * (1 - 1e-9))
