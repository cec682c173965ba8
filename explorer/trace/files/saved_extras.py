"""What a session holds beside the trace on screen, and what goes into its file with it."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.trace.batch import BatchResult
from explorer.trace.files.saved_view import SavedView
from explorer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Sibling:
    """A named continuation, same model, request and prompt; shared steps are shared objects."""

    name: str
    trace: Trace


@dataclass(frozen=True, slots=True)
class SavedExtras:
    """The whole branch tree, the branch on screen included, the last padded batch, the view."""

    branches: tuple[Sibling, ...] = ()
    current: int | None = None  # index of the branch on screen
    batch: BatchResult | None = None
    seen: SavedView | None = None
