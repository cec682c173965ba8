"""Attention of one-token passes copied when they are over, so that llama.cpp need not stop.

Keys stay in the cache.  Queries and masks lie in scratch memory, which later nodes write over; so
each gets a place of its own.  llama.cpp runs one graph for many tokens, and the nodes of that graph
say where they write: they are given another place, once.  Whether everything is still there after a
pass is tried on a whole pass with stops before it is relied on (`trusted`).
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.structs import TensorStruct
from explorer.llama_engine.passes.sources import (
    AttentionCall,
    KeptTensor,
    ScoreSource,
    all_finite,
    stored,
)

_ALIGNED = 64  # bytes
_DATA, _VIEW_SRC = TensorStruct.data.offset, TensorStruct.view_src.offset


@dataclass(frozen=True, slots=True)
class _Stack:
    """One array over the numbers of several layers: (len(layers), …)."""

    layers: tuple[int, ...]
    numbers: np.ndarray


class OwnMemory:
    """Where the numbers of a context's graphs have places of their own, as long as it lives.

    llama.cpp may run a graph again that nobody watches any more, and write here.
    """

    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []

    def of(self, size: int) -> int:
        """The address of so many bytes, the same for all graphs unless one needs more."""
        if not self._parts or self._parts[-1].nbytes < size + _ALIGNED:
            self._parts.append(np.zeros(size + _ALIGNED, np.uint8))
        return -(-self._parts[-1].ctypes.data // _ALIGNED) * _ALIGNED


class KeptApart:
    """One graph over one slot, whose queries and masks have places of their own."""

    def __init__(
        self,
        sources: Mapping[int, ScoreSource],
        nodes: Iterable[int],
        caches: Collection[KeptTensor],
        memory: OwnMemory,
    ) -> None:
        """`sources` by layer; ValueError if some layer's numbers can't be kept.

        `nodes`: every node of the graph.  It must have been run, and not be running.
        """
        self.trusted = False
        self._sources = dict(sources)
        sound = {layer: one for layer, one in sources.items() if not one.call.flaw}
        _require_cached([one.key_node for one in sound.values()], caches)
        roots = dict.fromkeys(_root(one.query_node) for one in sound.values())
        if any(not tensor.at(root).src[0] for root in roots):
            raise ValueError("queries that no node computes")
        roots |= dict.fromkeys(_root(one.mask) for one in sources.values() if one.mask)
        if not all(tensor.in_memory(tensor.at(root)) for root in roots):
            raise ValueError("numbers on a GPU")
        places = _laid_out(roots, memory)
        self._expected: dict[int, int] = {}
        for node in dict.fromkeys([*nodes, *roots]):
            root = _root(node)
            if root in places:
                self._expected[node] = tensor.at(node).data + places[root] - tensor.at(root).data
        for node, place in self._expected.items():
            tensor.at(node).data = place
        self._watched = [c.c_uint64.from_address(node + _DATA) for node in self._expected]
        plain = {layer: one for layer, one in sound.items() if not one.block_type}
        self._queries = _stacks({k: _view(one.query_node) for k, one in plain.items()})
        self._keys = _stacks({k: _view(one.key_node) for k, one in plain.items()})
        self._in_blocks = {k: _view(sound[k].query_node) for k in sound.keys() - plain.keys()}

    @property
    def holds(self) -> bool:
        """False once llama.cpp laid out another graph."""
        return [place.value for place in self._watched] == list(self._expected.values())

    def calls(self, slots: int, every: int) -> tuple[dict[int, AttentionCall], bool]:
        """By layer, of the pass just run, after which there are `slots` slots.

        With it True if every number of theirs is finite.
        """
        sound = True
        found = {
            layer: one.new_call()
            for layer, one in self._sources.items()
            if every and layer % every == 0
        }
        masks: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        for layer, call in found.items():
            self._sources[layer].take_mask(call, 1, slots, masks)
        for stack in self._queries:
            dtype = self._sources[stack.layers[0]].call.key_dtype
            queries = stored(stack.numbers, dtype)
            sound = sound and all_finite(queries, dtype)
            for layer, part in zip(stack.layers, queries, strict=True):
                if layer in found:
                    found[layer].queries = part
        for stack in self._keys:
            keys = stack.numbers[:, slots - 1 : slots].copy()
            sound = sound and all_finite(keys, self._sources[stack.layers[0]].call.key_dtype)
            for layer, part in zip(stack.layers, keys, strict=True):
                if layer in found:
                    found[layer].keys = part
        for layer, queries in self._in_blocks.items():
            if layer in found:
                call = found[layer]
                both = self._sources[layer].copied(queries, slots - 1, slots)
                call.queries, call.keys = both
                sound = sound and all(all_finite(one, call.key_dtype) for one in both)
        return found, sound

    def try_on(self, slots: int, stopped: Mapping[int, AttentionCall]) -> bool:
        """True, and trusted, if what is here after a pass is what its stops gave, bit for bit."""
        found, _ = self.calls(slots, 1)
        self.trusted = found.keys() == stopped.keys() and all(
            _same(found[layer], call) for layer, call in stopped.items()
        )
        return self.trusted


def _same(one: AttentionCall, other: AttentionCall) -> bool:
    pairs = (
        (one.queries, other.queries), (one.keys, other.keys),
        (one.mask, other.mask), (one.distances, other.distances),
    )  # fmt: skip
    return one.flaw == other.flaw and all(
        a is b or (a is not None and b is not None and a.tobytes() == b.tobytes()) for a, b in pairs
    )


def _root(node: int) -> int:
    """The tensor that the numbers of a node belong to."""
    return int(tensor.at(node).view_src or node)


def _require_cached(nodes: Iterable[int], caches: Collection[KeptTensor]) -> None:
    """ValueError unless each lies in the cache, where it stays."""
    kept = {one.address for one in caches}
    if any(_root(node) not in kept for node in nodes):
        raise ValueError("keys that are not in the cache")


def _laid_out(roots: Iterable[int], memory: OwnMemory) -> dict[int, int]:
    """Where each of them has its place."""
    sizes = {}
    for root in roots:
        begin, end = tensor.span(tensor.at(root))
        sizes[root] = -(-(end - begin) // _ALIGNED) * _ALIGNED
    at = memory.of(sum(sizes.values()))
    places = {}
    for root, size in sizes.items():
        places[root] = at
        at += size
    return places


def _view(node: int) -> np.ndarray:
    return tensor.numbers(tensor.at(node)).transpose(1, 0, 2)


def _stacks(parts: Mapping[int, np.ndarray]) -> list[_Stack]:
    """As few arrays as possible: layers of one shape that lie evenly apart share one."""
    alike: dict[object, list[int]] = {}
    for layer, part in parts.items():
        alike.setdefault((part.shape, part.strides, part.dtype), []).append(layer)
    found = []
    for layers in alike.values():
        whole = _stacked([parts[layer] for layer in layers])
        if whole is not None:
            found.append(_Stack(tuple(layers), whole))
        else:
            found += [_Stack((layer,), parts[layer][None]) for layer in layers]
    return found


def _stacked(parts: Sequence[np.ndarray]) -> np.ndarray | None:
    """None if they do not lie evenly apart."""
    places = [part.ctypes.data for part in parts]
    steps = {b - a for a, b in pairwise(places)}
    step = steps.pop() if steps else 0
    if steps or step < 0:
        return None
    one = parts[0]
    extent = sum((n - 1) * s for n, s in zip(one.shape, one.strides, strict=True)) + one.itemsize
    memory = (c.c_char * (step * (len(parts) - 1) + extent)).from_address(places[0])
    return np.ndarray((len(parts), *one.shape), one.dtype, memory, 0, (step, *one.strides))
