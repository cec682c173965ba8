"""What a pass does besides recording attention: the stream is read, and parts are changed.

The nodes in question are found in the graph itself (`graph`) and stopped at by their place in it.
After the first call over a graph it is looked at again: stops at other nodes count for nothing, and
the call is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from explorer.engine.errors import BadInput
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.compute import Recompute
from explorer.llama_engine.passes.attention_edits import ScoreEdit, ScoreEdits, ScoreNodes
from explorer.llama_engine.passes.graph import Graph, Place, Point
from explorer.trace.inside.stream import WriteKind
from explorer.trace.interventions.kinds import Silence

ENTERED: Place = (-1, 0)
NO_SUM = (
    "In llama.cpp's graph of this model, layers do not add what they write to one stream of "
    "vectors, so it can't be read between them."
)


@dataclass(frozen=True, slots=True)
class Located:
    """Where the stream and what is written to it stand in graphs of one kind."""

    points: Mapping[Place, Point]
    kinds: Mapping[Place, WriteKind]
    names: Mapping[Place, str]

    @classmethod
    def of(cls, graph: Graph, outputs: Mapping[int, int], attention: Mapping[int, int]) -> Located:
        """BadInput if layers are no sums there."""
        try:
            sums = graph.sums(outputs, attention)
        except ValueError as error:
            raise BadInput(NO_SUM, str(error)) from error
        points, kinds, names = {ENTERED: graph.point(sums[0].entered)}, {}, {}
        for layer, one in enumerate(sums):
            for which, write in enumerate(one.writes):
                place = layer, which
                points[place] = graph.point(write.node)
                kinds[place], names[place] = write.kind, write.name
        return cls(points, kinds, names)

    def of_part(self, one: Silence) -> frozenset[Place]:
        """The writes of a layer, or of its MLP."""
        return frozenset(
            place
            for place, kind in self.kinds.items()
            if place[0] == one.layer and (one.part == "layer" or kind == "mlp")
        )


Locate = Callable[[bool], Located]  # of graphs over several slots, or over one


@dataclass(slots=True)
class Streams:
    """The stream in one call of llama.cpp, at the n slots that are read out; (n, d) float32."""

    entered: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))
    outputs: dict[int, np.ndarray] = field(default_factory=dict)  # by layer
    writes: dict[Place, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True)
class Inside:
    """Asked for with the calls of one run."""

    locate: Locate
    recompute: Callable[[], Recompute]
    attention: ScoreEdits | None = None
    silenced: tuple[Silence, ...] = ()  # MLPs and layers
    reads: bool = False  # the stream
    reads_writes: bool = False
    streams: Streams = field(default_factory=Streams)  # of the last call
    at_rows: Sequence[int] = ()  # of it, those that are read out
    _rows: int = 0
    _located: Located | None = None  # None = no node is stopped at
    _silent: frozenset[Place] = frozenset()
    _wanted: dict[int, tuple[Place, Point]] = field(default_factory=dict)  # by ordinal

    def begin(self, rows: int, at: Sequence[int]) -> object:
        """Before each call over `rows` slots; what tells its stops from those of other calls."""
        self._rows, self.at_rows, self.streams = rows, tuple(at), Streams()
        if self.attention is not None:
            self.attention.begin()
        if self.silenced or self.reads:
            self._locate(self.locate(rows > 1))
        return tuple(self._wanted)

    def _locate(self, located: Located) -> None:
        parts = [located.of_part(one) for one in self.silenced]
        self._located, self._silent = located, frozenset().union(*parts)
        wanted = {ENTERED, *self._silent} if self.reads else set(self._silent)
        if self.reads_writes:
            wanted |= located.kinds.keys()
        self._wanted = {
            point.ordinal: (place, point)
            for place, point in located.points.items()
            if place in wanted
        }

    def place_of(self, ordinal: int, address: int) -> Place | None:
        """What is stopped at there; None if the node is not wanted."""
        found = self._wanted.get(ordinal)
        if found is None:
            return None
        place, point = found
        node = tensor.at(address)
        return place if (node.op, node.ne[0]) == (point.op, point.width) else None

    def stopped_right(
        self,
        graph: Graph,
        outputs: Mapping[int, int],
        attention: Mapping[int, int],
        stops: Mapping[int, Place],
    ) -> bool:
        """True if the call stopped at the very nodes that were meant."""
        if self._located is None:
            return True
        now = Located.of(graph, outputs, attention)
        wanted = {place for place, _ in self._wanted.values()}
        meant = {
            graph.order[now.points[place].ordinal]: place for place in wanted & now.points.keys()
        }
        if meant == dict(stops) and now.kinds == self._located.kinds:
            return True
        self.locate = lambda several: now
        return False

    def at(self, place: Place, address: int) -> None:
        """A node that was stopped at is computed."""
        numbers = tensor.numbers(tensor.at(address))
        if place in self._silent:
            numbers[:] = 0
        if place == ENTERED and self.reads:
            self.streams.entered = self._read_out(numbers)
        elif self.reads_writes:
            self.streams.writes[place] = self._read_out(numbers)

    def at_output(self, layer: int, address: int) -> None:
        """The output of a layer is computed."""
        if self.reads:
            self.streams.outputs[layer] = self._read_out(tensor.numbers(tensor.at(address)))

    def _read_out(self, numbers: np.ndarray) -> np.ndarray:
        """A copy of the rows that are read out; the last layer has no others."""
        rows = numbers.reshape(-1, numbers.shape[-1])
        chosen = rows[list(self.at_rows)] if len(rows) == self._rows else rows
        return chosen.astype(np.float32)

    @contextmanager
    def in_attention(self, scores: ScoreNodes) -> Iterator[ScoreEdit | None]:
        """Inside, a layer's weights are those of the changed scores; heads are silenced after."""
        edits, heads = self.attention, tensor.at(scores.softmax).ne[2]
        edit = edits.at(scores.layer, heads) if edits is not None else None
        if edits is None or edit is None:
            yield None
            return
        edit.apply(scores, self.recompute(), edits)
        yield edit
        edit.finish(scores)
