"""How long each step took as the window sees it: from the wish to the picture.

An instrument, not part of the state: it is read when a panel draws, and forgets a step together
with the step's own arrays.
"""

from __future__ import annotations

import time
import weakref
from dataclasses import replace

import numpy as np

from explorer.trace.cost.lap import Lap
from explorer.trace.step import Step


class Stopwatch:
    """Notes laps by the step's logits, which a step keeps whatever else is changed of it."""

    def __init__(self) -> None:
        self._laps: dict[int, tuple[weakref.ref[np.ndarray], Lap]] = {}
        self._begun = 0.0
        self._awaited: tuple[int, float] | None = None  # key and arrival of what is being painted

    @property
    def waiting(self) -> bool:
        """True while a step has arrived and is not all painted."""
        return self._awaited is not None

    def begin(self) -> None:
        """Steps are asked for now."""
        self._begun = time.perf_counter()

    def arrived(self, step: Step, at: float) -> None:
        """A step of the run came at `at` (seconds of perf_counter)."""
        key = id(step.logits)
        seen = weakref.ref(step.logits, lambda _: self._laps.pop(key, None))
        self._laps[key] = seen, Lap((at - self._begun) * 1e3)
        self._begun = at
        self._awaited = key, at

    def painted(self, at: float) -> bool:
        """What arrived last is all on screen since `at`; False if nothing was waited for."""
        if self._awaited is None:
            return False
        (key, arrival), self._awaited = self._awaited, None
        if key in self._laps:
            seen, lap = self._laps[key]
            self._laps[key] = seen, replace(lap, display_ms=(at - arrival) * 1e3)
        return True

    def lap(self, step: Step) -> Lap | None:
        """What is known of a step; None if it did not come through this window."""
        seen, lap = self._laps.get(id(step.logits), (None, None))
        return lap if seen is not None and seen() is step.logits else None
