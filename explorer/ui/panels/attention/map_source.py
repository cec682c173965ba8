"""The maps and the atlas of what is looked at, worked out in the background and kept up to date."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic

from PySide6.QtCore import QObject, Signal

from explorer.figures.attention import atlas as atlases
from explorer.figures.attention import difference, head_scores, map_blocks, strongest_heads
from explorer.figures.attention.arrived_head import has_arrived
from explorer.figures.attention.atlas import Atlas
from explorer.figures.attention.head_scores import HeadScores, Kind
from explorer.figures.attention.map_request import DrawnMaps, HeadInStep, MapRequest, Sides, draw
from explorer.figures.attention.mask_pair import Side
from explorer.ui.canvases.maps.thumbnails import Sheet
from explorer.ui.threads.worker import TURN, Worker

_BETWEEN_PICTURES = 0.2  # seconds; more would keep the window painting while one looks elsewhere
_ATLASES_KEPT = 6  # finished ones: both sides and the difference of two comparisons

MakeSheet = Callable[[Atlas], Sheet | None]


class AttentionSource(QObject):
    """`show` says what is asked for; answers come as signals, the atlas in ever fuller ones.

    While steps come faster than an answer, work that the newer ones only add to is let finish:
    replacing it each time would never show anything.
    """

    drawn = Signal(object)  # DrawnMaps
    wantsAll = Signal()  # every head is needed, and some are still on the engine's machine
    failed = Signal(str)  # why there is no map, one sentence
    progress = Signal(float)  # of a map that takes long, 0 to 1
    ordering = Signal(float)  # of the heads' order, which takes long, 0 to 1
    atlasReady = Signal(object, object)  # Atlas, or None while its pass has not run; its picture
    scoresReady = Signal(object)  # HeadScores, complete
    ranked = Signal(object)  # pair.Ranking

    def __init__(self, parent: QObject, pictured: Callable[[], MakeSheet] | None = None) -> None:
        """`pictured` tells how the atlas is to be painted, which is done here too."""
        super().__init__(parent)
        self._pictured = pictured or (lambda: lambda atlas: None)
        self._worker = Worker(parent)
        self._sides = Sides()  # used in the worker's thread only
        self._request: MapRequest | None = None
        self._drawn: DrawnMaps | None = None
        self._atlas: Atlas | None = None
        self._finished: list[tuple[MapRequest, Atlas]] = []
        self._map_of: MapRequest | None = None  # what is being worked out
        self._atlas_of: MapRequest | None = None
        self._kind: Kind | None = None
        self._scores: HeadScores | None = None
        self._scores_of: HeadInStep | None = None

    @property
    def busy(self) -> bool:
        """True while an answer is still to come."""
        return self._worker.busy

    def show(self, request: MapRequest) -> None:
        """Bring everything up to date with this."""
        before, self._request = self._request, request
        moved = before is None or not request.look.same_passes(before.look)
        if moved or before is None or not request.same_map(before):
            self._ask_map(request)  # first: it is quicker, and what one looks at
        if moved or before is None or not request.same_atlas(before):
            self._ask_atlas(request)
        if moved:
            self._ask_scores(request.look)

    def set_kind(self, kind: Kind | None) -> None:
        """Which figure per head is wanted, if any."""
        self._kind = kind
        self._worker.drop("scores")
        self._scores_of = None
        if self._request is not None:
            self._ask_scores(self._request.look)

    def forget(self) -> None:
        """Nothing is looked at any more."""
        for lane in ("map", "atlas", "scores", "pair"):
            self._worker.drop(lane)
        self._request = self._drawn = self._atlas = self._scores = None
        self._map_of = self._atlas_of = self._scores_of = None
        self._finished = []
        self._sides = Sides()

    def rank(self, look: HeadInStep, query: int, key: int) -> None:
        """Which heads put most weight from one token on another."""

        if map_blocks.any_away(look.trace, look.step):
            self.wantsAll.emit()
            return

        def work() -> Iterator[object]:
            for part in strongest_heads.rank(look.trace, look.step, query, key):
                yield TURN if isinstance(part, float) else part

        self._worker.ask("pair", work, self.ranked.emit, urgent=True)

    # -- maps

    def _ask_map(self, request: MapRequest) -> None:
        look = request.look
        why = map_blocks.reason(look.trace, look.step, look.layer)
        if request.figure in ("head", "sinkless") and has_arrived(
            look.trace, look.step, look.layer, look.head
        ):
            away = map_blocks.record_of(look.trace, look.step, look.layer).away
            why = "" if away else why
        if why and request.figure in ("head", "sinkless", "mean_heads", "max_heads"):
            self._worker.drop("map")
            self._map_of = None
            self.failed.emit(
                self.tr("Layer {0} has no attention map: {1}.").format(look.layer, why)
            )
            return
        if request.figure not in ("head", "sinkless") and map_blocks.any_away(
            look.trace, look.step
        ):
            self.wantsAll.emit()
        busy = self._map_of
        if busy is not None and request.same_map(busy) and look.goes_on_from(busy.look):
            return
        self._map_of = request
        known, sides = self._drawn, self._sides

        def work() -> Iterator[float | DrawnMaps]:
            return draw(request, sides, known)

        self._worker.ask("map", work, self._have_map, self._no_map, urgent=True)

    def _have_map(self, part: float | DrawnMaps) -> None:
        if isinstance(part, float):
            self.progress.emit(part)
            return
        self._drawn, self._map_of = part, None
        self.drawn.emit(part)
        now = self._request
        if now is not None and not (
            now.look.same_passes(part.request.look) and now.same_map(part.request)
        ):
            self._ask_map(now)

    def _no_map(self, error: Exception) -> None:
        self._map_of = None
        if isinstance(error, MemoryError):
            sentence = self.tr(
                "Not enough memory for this map. Your run is still here. Try a shorter prompt."
            )
        elif isinstance(error, ValueError):
            sentence = str(error)
        else:
            raise error
        self.failed.emit(sentence)

    # -- the atlas

    def _ask_atlas(self, request: MapRequest) -> None:
        busy = self._atlas_of
        if busy is not None and request.same_atlas(busy) and request.look.goes_on_from(busy.look):
            return
        self._atlas_of = request
        known, sides, done = self._atlas, self._sides, self._find(request)
        make = self._pictured()

        def work() -> Iterator[object]:
            masked, unmasked = sides.of(request)
            answers = iter([done]) if done else _atlas(request, masked, unmasked, known)
            for atlas in _now_and_then(answers):
                if isinstance(atlas, Atlas):
                    yield atlas, make(atlas)
                else:
                    yield TURN if atlas is TURN else (None, None)

        self._worker.ask("atlas", work, self._have_atlas)

    def _have_atlas(self, found: tuple[Atlas | None, Sheet | None]) -> None:
        atlas, sheet = found
        self.atlasReady.emit(atlas, sheet)
        if atlas is not None and not atlas.complete:
            return
        built, self._atlas_of = self._atlas_of, None
        self._atlas = None if atlas is None or atlas.signed else atlas
        if built is not None and atlas is not None and self._find(built) is None:
            self._finished = [(built, atlas), *self._finished][:_ATLASES_KEPT]
        now = self._request
        if built is None or now is None:
            return
        if not (now.look.same_passes(built.look) and now.same_atlas(built)):
            self._ask_atlas(now)

    def _find(self, request: MapRequest) -> Atlas | None:
        """A finished atlas of the same side of the same passes."""
        for built, atlas in self._finished:
            if request.same_atlas(built) and request.look.same_passes(built.look):
                return atlas
        return None

    # -- figures per head

    def _ask_scores(self, look: HeadInStep) -> None:
        kind = self._kind
        if kind is None or (self._scores_of is not None and look.goes_on_from(self._scores_of)):
            return
        if map_blocks.any_away(look.trace, look.step):
            self.wantsAll.emit()
            return
        self._scores_of = look
        known = self._scores

        def work() -> Iterator[object]:
            # A sum over some rows is no figure yet.
            last = monotonic()
            for part in head_scores.scores(look.trace, look.step, kind, known):
                if part.complete:
                    yield part
                elif monotonic() - last >= _BETWEEN_PICTURES:
                    last = monotonic()
                    yield part.done
                else:
                    yield TURN

        self._worker.ask("scores", work, self._have_scores)

    def _have_scores(self, scores: HeadScores | float) -> None:
        if isinstance(scores, float):
            self.ordering.emit(scores)
            return
        built, self._scores_of = self._scores_of, None
        self._scores = scores
        self.scoresReady.emit(scores)
        now = self._request
        if built is not None and now is not None and not now.look.same_passes(built):
            self._ask_scores(now.look)


def _now_and_then(answers: Iterator[Atlas | None]) -> Iterator[object]:
    """The first answer, some on the way and the whole one; turns in place of the others."""
    last = -_BETWEEN_PICTURES
    for answer in answers:
        if answer is None or answer.complete or monotonic() - last >= _BETWEEN_PICTURES:
            last = monotonic()
            yield answer
        else:
            yield TURN


def _atlas(
    request: MapRequest, masked: Side | None, unmasked: Side | None, known: Atlas | None
) -> Iterator[Atlas | None]:
    """The atlas of the side that is asked for."""
    layer = request.look.layer
    if request.beside is not None and request.which == "difference":
        if masked is None or unmasked is None:
            yield None
        else:
            yield from difference.build_atlas(masked, unmasked, layer)
        return
    if request.beside is None and map_blocks.any_away(request.look.trace, request.look.step):
        yield request.far_atlas
        return
    side = unmasked if request.beside is not None and request.which == "unmasked" else masked
    if side is None:
        yield None
    else:
        yield from atlases.build(side.trace, side.step, known, layer)
