"""What the attention panel is asked to show, and what comes back, ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from explorer.figures.attention import difference, head_means
from explorer.figures.attention import maps as figures
from explorer.figures.attention.arcs import Arcs, strongest
from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_means import ALL_LAYERS, Figure
from explorer.figures.attention.maps import Map
from explorer.figures.attention.mask_pair import Side, of_pass, without_mask
from explorer.figures.drawing.colour_scale import Scale, row_tops
from explorer.figures.drawing.map_viewport import Pooled, smaller
from explorer.trace.comparison import Comparison, Of, is_first
from explorer.trace.step import Step
from explorer.trace.trace import Trace

# A real run without the mask; the same scores without it; a real run in the file's other form; one
# of the model without interventions.
Beside = Literal["run", "scores", "form", "interventions"]
Which = Literal["masked", "unmasked", "difference"]  # the first side, the second


def of_beside(beside: Beside) -> Of:
    """Which setting differs on the other side."""
    return "mask" if beside == "run" or beside == "scores" else beside


@dataclass(frozen=True, slots=True)
class HeadInStep:
    """What is looked at: one head in one step of one trace."""

    trace: Trace
    step: int
    layer: int
    head: int

    @property
    def side(self) -> Side:
        """The run it belongs to."""
        return Side(self.trace, self.step)

    @property
    def passes(self) -> tuple[Step, ...]:
        """Every pass up to this one."""
        return self.trace.steps[: self.step + 1]

    @property
    def last_pass(self) -> Step:
        """The pass of this step."""
        return self.trace.steps[self.step]

    @property
    def slots(self) -> int:
        """Slots that had been read by then."""
        return self.trace.read_slots(self.step)

    def same_passes(self, other: HeadInStep) -> bool:
        """True if both look at the same passes, whatever else their traces say by now."""
        return self.step == other.step and self.side.same_passes(other.side)

    def goes_on_from(self, earlier: HeadInStep) -> bool:
        """True if this only adds rows to what `earlier` shows."""
        return figures.shared_rows(earlier.passes, self.passes) == earlier.slots


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRequest:
    """Everything that decides what is drawn."""

    look: HeadInStep
    figure: Figure = "head"
    beside: Beside | None = None  # None = no comparison
    other: Comparison | None = None  # the other side's pass, once it has run
    scale: Scale = "fixed"  # of the colours
    arcs: bool = False  # arcs are wanted too
    which: Which = "masked"  # what the atlas shows in a comparison
    far_atlas: Atlas | None = None  # of records that are not here: drawn by the engine

    def same_map(self, other: MapRequest) -> bool:
        """True if both ask for the same maps, of the same step or not."""
        return self._map_key() == other._map_key()

    def _map_key(self) -> tuple[object, ...]:
        look, alone = self.look, self.beside is None
        place: tuple[int, ...] = (look.layer, look.head)
        if self.figure in ALL_LAYERS:
            place = ()
        elif self.figure not in ("head", "sinkless"):
            place = (look.layer,)
        other = None if alone else id(self.other)
        return (self.figure, self.beside, other, self.scale, self.arcs, place)

    def same_atlas(self, other: MapRequest) -> bool:
        """True if both ask for the same side in the atlas, of the same step or not."""
        return self._atlas_key() == other._atlas_key()

    def _atlas_key(self) -> tuple[object, ...]:
        if self.beside is None:
            return ("alone", id(self.far_atlas))
        return (self.beside, self.which, id(self.other))


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMap:
    """A map with its colour levels; `top` is the weight of the brightest, on a scale that has one.

    `row_tops` (R, 1) are those of each row where the scale goes by row.
    """

    map: Map
    levels: np.ndarray
    pooled: tuple[Pooled, ...]
    top: float
    signed: bool = False
    arcs: Arcs | None = None
    row_tops: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DrawnMaps:
    """One map, or those of both sides and the difference; None = not there yet.

    The sides are with the mask and without it, in float32 and as it is, or without interventions
    and with them.
    """

    request: MapRequest
    maps: tuple[DrawnMap | None, ...]


class Sides:
    """Finds both sides of a request; what it costs to drop the mask is paid once per step."""

    def __init__(self) -> None:
        self._dropped: tuple[Side, Side] | None = None
        self._other: tuple[Comparison, Side] | None = None

    def of(self, request: MapRequest) -> tuple[Side | None, Side | None]:
        """The two sides in the order in which they are shown; None where its pass has not run."""
        own = request.look.side
        if request.beside is None:
            return own, None
        other = self._of_other(request)
        leads = is_first(request.look.trace.request, of_beside(request.beside))
        first, second = (own, other) if leads else (other, own)
        if request.beside != "scores":
            return first, second
        return first, None if first is None else self._of_scores(first)

    def _of_other(self, request: MapRequest) -> Side | None:
        found = request.other
        if found is None or request.beside is None or found.of != of_beside(request.beside):
            return None
        if self._other is None or self._other[0] is not found:
            side = of_pass(request.look.trace, request.look.step, found.request, found.step)
            self._other = (found, side)
        return self._other[1]

    def _of_scores(self, masked: Side) -> Side:
        known = self._dropped
        if known is None or not known[0].same_passes(masked):
            known = self._dropped = (masked, without_mask(masked))
        return known[1]


def draw(request: MapRequest, sides: Sides, known: DrawnMaps | None) -> Iterator[float | DrawnMaps]:
    """How much is done, and at last the maps.  ValueError with the reason if there are none."""
    first, second = sides.of(request)
    if request.beside is None:
        assert first is not None
        whole: Map | None = None
        for part in _build(request, first, known, 0):
            whole = part if isinstance(part, Map) else None
            if isinstance(part, float):
                yield part
        assert whole is not None
        yield DrawnMaps(
            request, (_drawn(request, whole, whole.top if request.scale == "max" else 1.0),)
        )
        return
    maps: list[Map | None] = []
    for place, side in enumerate((first, second)):
        found: Map | None = None
        for part in () if side is None else _build(request, side, known, place):
            found = part if isinstance(part, Map) else None
            if isinstance(part, float):
                yield (place + part) / 2
        maps.append(found)
    yield _pair(request, maps[0], maps[1])


def _build(
    request: MapRequest, side: Side, known: DrawnMaps | None, place: int
) -> Iterator[float | Map]:
    look = request.look
    old = known.maps[place] if known is not None and place < len(known.maps) else None
    usable = old is not None and known is not None and known.request.figure == "head"
    earlier = old.map if usable and old is not None else None
    return head_means.build(side, look.layer, look.head, request.figure, earlier)


def _pair(request: MapRequest, first: Map | None, second: Map | None) -> DrawnMaps:
    """One scale for both sides, one for their difference."""
    both = [whole for whole in (first, second) if whole is not None]
    top = max((whole.top for whole in both), default=1.0) if request.scale == "max" else 1.0
    maps = [None if whole is None else _drawn(request, whole, top) for whole in (first, second)]
    if first is None or second is None:
        return DrawnMaps(request, (*maps, None))
    change = difference.difference(first, second)
    # Two forms of the same weights differ little, and far from what was changed so does an
    # intervention: in a scale up to 100 % nothing would be seen.
    little = request.beside in ("form", "interventions") and request.scale == "fixed"
    own = request.scale == "max" or little
    most = difference.farthest_weight(change) if own else 1.0
    return DrawnMaps(request, (*maps, _drawn(request, change, most, signed=True)))


def _drawn(request: MapRequest, whole: Map, top: float, signed: bool = False) -> DrawnMap:
    make = difference.levels if signed else figures.levels
    levels = make(whole.weights, whole.kinds, top, request.scale)
    return DrawnMap(
        whole,
        levels,
        smaller(levels, signed=signed),
        top,
        signed,
        strongest(whole) if request.arcs else None,
        row_tops(whole.weights) if request.scale == "row" else None,
    )
