"""The map and the atlas of what is looked at, worked out in the background and kept up to date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QObject, Signal

from explorer.figures import atlas as atlases
from explorer.figures import attention as figures
from explorer.figures import blocks, heads
from explorer.figures.atlas import Atlas
from explorer.figures.attention import Map
from explorer.figures.heads import HeadScores, Kind
from explorer.trace.step import Step
from explorer.trace.trace import Trace
from explorer.ui.canvases.cell_view import Pooled
from explorer.ui.worker import Worker


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at: one head in one step of one trace."""

    trace: Trace
    step: int
    layer: int
    head: int

    @property
    def passes(self) -> tuple[Step, ...]:
        """Every pass up to this one."""
        return self.trace.steps[: self.step + 1]

    @property
    def slots(self) -> int:
        """Slots that had been read by then."""
        return self.trace.read_slots(self.step)

    def same_passes(self, other: Look) -> bool:
        """True if both look at the same step of the same trace."""
        return self.trace is other.trace and self.step == other.step

    def same_head(self, other: Look) -> bool:
        """True if both look at the same layer and head."""
        return (self.layer, self.head) == (other.layer, other.head)

    def goes_on_from(self, earlier: Look) -> bool:
        """True if this only adds rows to what `earlier` shows."""
        return figures.shared_rows(earlier.passes, self.passes) == earlier.slots


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMap:
    """A map with its colour levels; `top` is the weight of the brightest."""

    look: Look
    map: Map
    levels: np.ndarray
    pooled: Pooled | None
    top: float


class AttentionSource(QObject):
    """`show` says what is looked at; answers come as signals, the atlas in ever fuller ones.

    While steps come faster than an answer, work that the newer ones only add to is let finish:
    replacing it each time would never show anything.
    """

    mapReady = Signal(object)  # DrawnMap
    mapFailed = Signal(str)  # why there is none, one sentence
    atlasReady = Signal(object)  # Atlas
    scoresReady = Signal(object)  # HeadScores, complete

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._worker = Worker(parent)
        self._look: Look | None = None
        self._per_map = False
        self._map: DrawnMap | None = None
        self._atlas: Atlas | None = None
        self._map_of: Look | None = None  # what is being worked out
        self._atlas_of: Look | None = None
        self._kind: Kind | None = None
        self._scores: HeadScores | None = None
        self._scores_of: Look | None = None

    @property
    def busy(self) -> bool:
        """True while an answer is still to come."""
        return self._worker.busy

    def show(self, look: Look) -> None:
        """Bring both up to date with this."""
        before, self._look = self._look, look
        moved = before is None or not look.same_passes(before)
        if moved or before is None or not look.same_head(before):
            self._ask_map(look)  # first: it is quicker, and what one looks at
        if moved:
            self._ask_atlas(look)
            self._ask_scores(look)

    def set_scale(self, *, per_map: bool) -> None:
        """Whether the brightest colour is each map's own maximum instead of 1."""
        self._per_map = per_map
        self._map_of = None
        if self._look is not None:
            self._ask_map(self._look)

    def set_kind(self, kind: Kind | None) -> None:
        """Which figure per head is wanted, if any."""
        self._kind = kind
        self._worker.drop("scores")
        self._scores_of = None
        if self._look is not None:
            self._ask_scores(self._look)

    def forget(self) -> None:
        """Nothing is looked at any more."""
        for lane in ("map", "atlas", "scores"):
            self._worker.drop(lane)
        self._look = self._map = self._atlas = self._scores = None
        self._map_of = self._atlas_of = self._scores_of = None

    def _ask_map(self, look: Look) -> None:
        why = blocks.reason(look.trace, look.step, look.layer)
        if why:
            self._worker.drop("map")
            self._map_of = None
            self.mapFailed.emit(
                self.tr("Layer {0} has no attention map: {1}.").format(look.layer, why)
            )
            return
        busy = self._map_of
        if busy is not None and look.same_head(busy) and look.goes_on_from(busy):
            return
        self._map_of = look
        known = None if self._map is None else self._map.map
        per_map = self._per_map

        def work() -> DrawnMap:
            whole = figures.full_map(look.trace, look.step, look.layer, look.head, known)
            top = whole.top if per_map else 1.0
            levels = figures.levels(whole.weights, whole.kinds, top)
            return DrawnMap(look, whole, levels, Pooled.of(levels), top)

        self._worker.ask("map", work, self._have_map, self._no_map)

    def _have_map(self, drawn: DrawnMap) -> None:
        self._map, self._map_of = drawn, None
        self.mapReady.emit(drawn)
        now = self._look
        if now is not None and not (now.same_passes(drawn.look) and now.same_head(drawn.look)):
            self._ask_map(now)

    def _no_map(self, error: Exception) -> None:
        self._map_of = None
        if isinstance(error, MemoryError):
            sentence = self.tr("There is not enough memory for this map; try a shorter prompt.")
        elif isinstance(error, ValueError):
            sentence = str(error)
        else:
            raise error
        self.mapFailed.emit(sentence)

    def _ask_atlas(self, look: Look) -> None:
        if self._atlas_of is not None and look.goes_on_from(self._atlas_of):
            return
        self._atlas_of = look
        known = self._atlas

        def work() -> Iterator[Atlas]:
            return atlases.build(look.trace, look.step, known, look.layer)

        self._worker.ask("atlas", work, self._have_atlas)

    def _have_atlas(self, atlas: Atlas) -> None:
        self.atlasReady.emit(atlas)
        if not atlas.complete:
            return
        built, self._atlas_of = self._atlas_of, None
        self._atlas = atlas
        if built is not None and self._look is not None and not self._look.same_passes(built):
            self._ask_atlas(self._look)

    def _ask_scores(self, look: Look) -> None:
        kind = self._kind
        if kind is None or (self._scores_of is not None and look.goes_on_from(self._scores_of)):
            return
        self._scores_of = look
        known = self._scores

        def work() -> Iterator[HeadScores]:
            return heads.scores(look.trace, look.step, kind, known)

        self._worker.ask("scores", work, self._have_scores)

    def _have_scores(self, scores: HeadScores) -> None:
        if not scores.complete:
            return  # a sum over some rows is no figure yet
        built, self._scores_of = self._scores_of, None
        self._scores = scores
        self.scoresReady.emit(scores)
        if built is not None and self._look is not None and not self._look.same_passes(built):
            self._ask_scores(self._look)
