"""How long a step took on its way from the engine to the screen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lap:
    """One step on the window's clock; `session.stopwatch` notes them."""

    waited_ms: float  # from the wish, or from the step before it in a run, until it was here
    display_ms: float | None = None  # from then until all of it was painted; None = overtaken
