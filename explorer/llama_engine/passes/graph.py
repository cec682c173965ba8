"""How the residual stream runs through llama.cpp's graph, read off the nodes themselves.

A layer's output is a sum: the stream that entered it, and what its parts wrote.  Which addend is
the stream shows in the graph: the other one was computed from it.  No name of an architecture's
nodes is needed but `l_out`, the layers' outputs.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.structs import TensorStruct
from explorer.trace.inside.stream import WriteKind

Place = tuple[int, int]  # a layer, and which of its writes
_SAME = ("VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE", "CONT")  # other forms of the same numbers


@dataclass(frozen=True, slots=True)
class StreamNode:
    """A node that a part of a layer adds to the stream."""

    node: int  # address
    kind: WriteKind
    name: str


@dataclass(frozen=True, slots=True)
class LayerSum:
    """One layer: its output is what entered plus what was written."""

    entered: int  # address of the node
    writes: tuple[StreamNode, ...]  # in the order in which they are added
    output: int


@dataclass(frozen=True, slots=True)
class Point:
    """A node known by its place in the graph, wherever another graph of its kind lies."""

    ordinal: int
    op: int
    width: int


class Graph:
    """The nodes of one graph in the order of computing."""

    def __init__(self, ops: Mapping[str, int], order: Sequence[int]) -> None:
        self.order = tuple(order)
        self._ops = {number: name for name, number in ops.items()}
        self._ordinals = {address: place for place, address in enumerate(self.order)}
        self._read: dict[int, tuple[str, list[int]]] = {}

    def point(self, address: int) -> Point:
        """Where a node stands."""
        node = tensor.at(address)
        return Point(self._ordinals[address], node.op, node.ne[0])

    def after(self, address: int) -> tuple[int, ...]:
        """The nodes that are computed after `address`."""
        return self.order[self._ordinals[address] + 1 :]

    def op(self, address: int) -> str:
        """The operation of a node; NONE for weights, inputs and the cache."""
        return self._node(address)[0]

    def sources(self, address: int) -> list[int]:
        """The nodes that a node is computed from."""
        return self._node(address)[1]

    def _node(self, address: int) -> tuple[str, list[int]]:
        if address not in self._read:
            node = tensor.at(address)
            sources = [source for source in node.src if source]
            self._read[address] = self._ops.get(node.op, ""), sources
        return self._read[address]

    def sums(
        self, outputs: Mapping[int, int], attention: Mapping[int, int]
    ) -> tuple[LayerSum, ...]:
        """Every layer, given the addresses of their outputs and of attention's softmax, by layer.

        ValueError if some layer's output is no such sum.
        """
        found: list[LayerSum] = []
        before = 0
        for layer in range(len(outputs)):
            if layer not in outputs:
                raise ValueError(f"the output of layer {layer} has no name")
            found.append(self._sum(outputs[layer], before, attention.get(layer, 0)))
            before = outputs[layer]
        return tuple(found)

    def _sum(self, output: int, before: int, attention: int) -> LayerSum:
        """`before`: the output of the layer before, 0 in the first."""
        streams, writes = {output}, []  # type: set[int], list[int]
        node = output
        while node != before and (parts := self._addends(node, before)) is not None:
            node, write = parts
            streams.add(node)
            writes.append(write)
        if not writes or (before and node != before):
            raise ValueError("a layer's output is no sum of what entered and what was written")
        leaves = [leaf for write in reversed(writes) for leaf in self._apart(write, streams)]
        made = [
            StreamNode(leaf, self._kind(leaf, streams, attention), _name(leaf)) for leaf in leaves
        ]
        return LayerSum(node, tuple(made), output)

    def _addends(self, node: int, before: int) -> tuple[int, int] | None:
        """(the stream, what is written to it) of a sum; None if `node` is no such sum."""
        if self.op(node) != "ADD":
            return None
        one, other = self.sources(node)
        for stream, write in ((one, other), (other, one)):
            bare = self._bare(stream)
            if self.op(bare) != "NONE" and bare in self._makers(write, before):
                return bare, write
        return None

    def _apart(self, write: int, streams: set[int]) -> list[int]:
        """A write that is itself the sum of two parts that were computed apart, as these."""
        if self.op(write) == "ADD":
            parts, whole = self.sources(write), tensor.at(write)
            if all(self.op(p) != "NONE" and _alike(tensor.at(p), whole) for p in parts):
                kinds = {self._kind(part, streams, 0) for part in parts}
                if len(kinds) > 1:
                    return [leaf for part in parts for leaf in self._apart(part, streams)]
        return [write]

    def _kind(self, write: int, streams: Iterable[int], attention: int) -> WriteKind:
        makers = self._makers(write, *streams)
        if attention in makers:
            return "attention"
        kept = {_name(node)[:7] for node in makers if self.op(node) == "NONE"}
        if kept & {"cache_k", "cache_v"}:
            return "attention"
        return "mixer" if any(name.startswith("cache_") for name in kept) else "mlp"

    def _makers(self, node: int, *ends: int) -> set[int]:
        """Everything that a node is made from, as far as `ends`, which are included."""
        found, waiting = set[int](), [node]
        while waiting:
            address = waiting.pop()
            if address in found:
                continue
            found.add(address)
            if address not in ends:
                waiting += self.sources(address)
        return found

    def _bare(self, node: int) -> int:
        """The node itself, without the rows picked from it and other forms of it."""
        while True:
            sources = self.sources(node)
            same = self.op(node) == "GET_ROWS" or self.op(node) in _SAME
            if not same or not sources or self.op(sources[0]) == "NONE":
                return node
            node = sources[0]


def _alike(one: TensorStruct, other: TensorStruct) -> bool:
    return tuple(one.ne) == tuple(other.ne)


def _name(address: int) -> str:
    return c.string_at(address + tensor.NAME_OFFSET).decode("utf-8", "replace")
