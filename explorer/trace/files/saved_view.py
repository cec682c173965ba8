"""What of a session was on screen, and how, when it was saved."""

from __future__ import annotations

import msgspec


class SavedView(msgspec.Struct, frozen=True, kw_only=True):
    """A view to come back to; names that a program does not know are passed over."""

    step: int | None = None  # None = the latest
    layer: int = 0
    head: int = 0
    query: int | None = None  # slot; None = the readout of the step
    key: int | None = None  # slot under the cursor, if any
    compare: bool = False  # two sides of the run are shown
    compare_of: str = "mask"  # which, as `trace.comparison.Of` names them
    theme: str = ""
    zoom: float = 0.0  # of everything; 0 = as it is
    shown: tuple[str, ...] = ()  # IDs of panels; empty = as they are
    in_front: tuple[str, ...] = ()  # of those that share a place
    enlarged: str = ""  # the panel that has the place of all
    choices: dict[str, dict[str, str | float]] = {}  # by panel: what its lists and pages show
