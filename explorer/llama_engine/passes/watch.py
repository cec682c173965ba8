"""What attention receives, copied out while llama.cpp computes a pass.

llama.cpp asks of every node of its graph whether it is wanted, and stops after those that are.
Wanted is the softmax of each layer's attention: at that moment the queries, the keys of the cache
and the mask, from which it was made, still lie in memory.  So one stop a layer is enough, and what
is read is what the kernel was given, whatever the architecture did before.  Further stops tell when
each part of a layer was computed.

Of many passes over one token each, with the same graph, the first two are run that way.  In those
that follow llama.cpp is not stopped at all: `kept_apart` copies when a pass is over.
"""

from __future__ import annotations

import contextlib
import ctypes as c
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.llama_engine.binding import tensor
from explorer.llama_engine.binding.library import LlamaLibrary
from explorer.llama_engine.binding.structs import EVAL, EVAL_NODE, TensorStruct
from explorer.llama_engine.passes.attention_edits import ScoreEdit, ScoreNodes
from explorer.llama_engine.passes.graph import Graph, Place
from explorer.llama_engine.passes.inside import Inside
from explorer.llama_engine.passes.kept_apart import KeptApart, OwnMemory
from explorer.llama_engine.passes.node_clock import NodeClock
from explorer.llama_engine.passes.part_times import HEAD, OUTPUT, Mark, mark
from explorer.llama_engine.passes.sources import (
    AttentionCall,
    KeptTensor,
    Masks,
    ScoreSource,
    source,
)

_LAYER = re.compile(rb"-(\d+)(?: |$)")
_SOFTMAX = b"kq_soft_max"
_VIEW_SRC = TensorStruct.view_src.offset
_CELLS = 256  # llama.cpp widens its graph in steps of so many


@dataclass(slots=True)
class Seen:
    """What one call of llama.cpp gave."""

    calls: dict[int, AttentionCall] = field(default_factory=dict)  # by layer
    ends: dict[Mark, float] = field(default_factory=dict)  # of parts; copying is left out
    outputs: dict[int, np.ndarray] = field(default_factory=dict)  # (n, d), where asked for
    all_finite: bool = False  # True if that is known of all queries and keys
    attending: tuple[int, ...] = ()  # layers
    copy_seconds: float = 0.0


@dataclass(slots=True)
class Wanted:
    """What to copy in the next call."""

    slots: int = 0  # that exist after it
    rows: int = 0  # of them read by it
    every: int = 1  # record layers 0, n, 2n, … only; 0 = none
    weights: bool = False  # llama.cpp's own softmax, too
    outputs: bool = False  # of each layer
    inside: Inside | None = None  # what is read and changed besides
    dry: bool = False  # nodes are looked at and nothing is computed
    all_keys: bool = False  # those of slots that were held before, too
    masks: Masks = field(default_factory=dict)

    @property
    def after_the_pass(self) -> bool:
        """True if it can all be had when a pass over one slot is over."""
        stops = self.weights or self.outputs or self.inside is not None or self.dry
        return self.rows == 1 and not stops and not self.all_keys

    def part(self, first: bool = True) -> Wanted:
        """The same of one call of several, the first or another."""
        return replace(self, masks={}, all_keys=self.all_keys and first)


class _Nodes(dict[int, bool]):
    """False for each node of the graph that is known not to be wanted.

    llama.cpp asks this dictionary itself: of a thousand nodes in a pass Python sees those alone
    that are wanted, or new.
    """

    def __init__(self, unknown: Callable[[int], bool]) -> None:
        super().__init__()
        self._unknown = unknown

    def __missing__(self, address: int) -> bool:
        return self._unknown(address)


class Watch:
    """The callback of one context, and what it saw."""

    def __init__(self, library: LlamaLibrary, timed: bool = True) -> None:
        """`timed` False: no times of parts, which only the processor's nodes tell."""
        self._library, self._ops, self._timed = library, library.ops, timed
        self._softmax, self._add = self._ops["SOFT_MAX"], self._ops["ADD"]
        names = ("NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE")
        self._idle = frozenset(self._ops[name] for name in names)  # these compute nothing
        self._nodes = _Nodes(self._called)
        self._ask = EVAL_NODE(self._nodes.__getitem__)
        self.callback = c.cast(self._ask, EVAL)
        self.clock = NodeClock()
        self.scheduler = 0  # of the context, where llama.cpp can be told not to ask at all
        self.stopping = True  # False in a pass without stops
        self.stop: Stop = never
        self.wanted = Wanted()
        self.seen = Seen()
        self.caches: dict[str, KeptTensor] = {}  # the cache's own tensors, by name
        self.error: Exception | None = None
        self._computing = 0  # the node that llama.cpp was told to stop after
        self._graph: tuple[object, ...] = ()
        self._count = self._usual = 0  # wanted nodes: of this call, of the first of this graph
        self._attention: dict[int, int] = {}  # layers of the wanted nodes, by address
        self._outputs: dict[int, int] = {}
        self._marks: dict[int, Mark] = {}  # ends of parts, likewise
        self._order: list[int] = []  # every node of the graph, in the order of computing
        self._stops: dict[int, Place] = {}  # nodes that `Wanted.inside` is called at, by address
        self._sources: dict[int, ScoreSource] = {}
        self._view_sources: set[int] = set()
        self._memory = OwnMemory()
        self._apart: KeptApart | None = None
        self._counts: dict[Mark, int] = {}  # nodes computed, at the end of each part
        self._nodes_computed = 0  # in a whole pass with stops
        self._seen_whole = False  # this graph, in a pass with stops

    def begin(self, wanted: Wanted, at: Sequence[int], stop: Stop) -> None:
        """Before each call of llama.cpp, for logits of the rows `at`."""
        self.wanted, self.stop, self.seen, self.error = wanted, stop, Seen(), None
        self.clock.begin()
        if wanted.dry:
            self.clock.end_pass()
        self._computing = self._count = 0
        stops = wanted.inside.begin(wanted.rows, at) if wanted.inside is not None else None
        graph = wanted.rows, len(at), -(-wanted.slots // _CELLS), stops, wanted.dry
        if graph != self._graph:
            self._graph = graph
            self.forget()
        trusted = self._apart is not None and self._apart.trusted
        self._set_stopping(not (trusted and wanted.after_the_pass))

    def _set_stopping(self, stopping: bool) -> None:
        self.stopping = stopping
        if self.scheduler:
            callback = self.callback if stopping else None
            self._library.ggml_backend_sched_set_eval_callback(self.scheduler, callback, None)
        elif not stopping:
            self._nodes.update(dict.fromkeys(self._noted, False))
        else:
            for address in self._noted:
                self._nodes.pop(address, None)

    @property
    def _noted(self) -> tuple[int, ...]:
        return *self._attention, *self._outputs, *self._marks

    def forget(self) -> None:
        """Look at every node again: where another graph lies, other nodes are wanted."""
        for known in (
            self._nodes,
            self._attention,
            self._outputs,
            self._marks,
            self._sources,
            self._stops,
        ):
            known.clear()
        self._order.clear()
        self._view_sources.clear()
        self._usual = 0
        self._counts.clear()
        self._apart, self._seen_whole, self._nodes_computed = None, False, 0

    @property
    def graph(self) -> Graph:
        """The nodes of the last call, where these were all new."""
        return Graph(self._ops, self._order)

    @property
    def outputs(self) -> dict[int, int]:
        """Addresses of the layers' outputs, by layer."""
        return {layer: address for address, layer in self._outputs.items()}

    @property
    def attention(self) -> dict[int, int]:
        """Addresses of attention's softmax, by layer."""
        return {layer: address for address, layer in self._attention.items()}

    @property
    def wanted_nodes(self) -> tuple[int, ...]:
        """Addresses of the nodes that attention is copied at, in order."""
        return tuple(self._attention)

    def ignore(self, address: int) -> None:
        """Take a node for one that is not wanted, until it is missed."""
        self._nodes[address] = False

    @property
    def complete(self) -> bool:
        """False if fewer nodes were wanted than in an earlier call of this graph."""
        if not self.stopping:
            return self._apart is not None and self._apart.holds
        inside = self.wanted.inside
        if self._usual == 0 and inside is not None:
            parts = self.graph, self.outputs, self.attention, self._stops
            if not inside.stopped_right(*parts):
                return False
        self._usual = self._usual or self._count
        return self._count == self._usual

    def end_pass(self) -> None:
        """llama.cpp gives up at the next node."""
        self.clock.end_pass()

    def finish(self) -> None:
        """After a complete call: what is copied when it is over, and what the next one needs."""
        seen, wanted, moments = self.seen, self.wanted, self.clock.moments
        seen.attending = tuple(self._attention.values())
        if not self.stopping and self._apart is not None:
            started = time.perf_counter()
            seen.calls, seen.all_finite = self._apart.calls(wanted.slots, wanted.every)
            seen.copy_seconds = time.perf_counter() - started
            if self._nodes_computed == len(moments):
                seen.ends = {part: moments[count - 1] for part, count in self._counts.items()}
            return
        self._nodes_computed = len(moments)
        if (HEAD, -1) in seen.ends:
            seen.ends[HEAD, -1] = moments[-1] - seen.copy_seconds
            self._counts[HEAD, -1] = len(moments)
        if wanted.after_the_pass and wanted.every == 1:
            self._learn()

    def _learn(self) -> None:
        """How to do without stops from here on, tried on the pass just run."""
        if self._apart is not None:
            if not self._apart.trusted:
                self._apart.try_on(self.wanted.slots, self.seen.calls)
        elif not self._seen_whole:
            self._seen_whole = True  # one trial a graph
            sources = {of.call.layer: of for of in self._sources.values()}
            if sources and len(sources) == len(self._attention):
                with contextlib.suppress(ValueError):
                    nodes = {*self._nodes, *self._noted}
                    self._apart = KeptApart(sources, nodes, self.caches.values(), self._memory)

    def _called(self, address: int) -> bool:
        """True for a node that is wanted; called again with it once it is computed."""
        if address == self._computing:
            self._computing = 0
            try:
                self._computed(address)
                if self.stop():
                    self.end_pass()
            except Exception as error:  # nothing may leave a callback; it is raised after the call
                self.error = error
                self.end_pass()
            return True
        if not self.stopping:  # the graph is another one
            self.forget()
            self._set_stopping(True)
        if (
            address in self._attention
            or address in self._outputs
            or address in self._marks
            or address in self._stops
            or self._is_new_and_wanted(address)
        ):
            self._computing = address
            self._count += 1
            return True
        self._nodes[address] = False
        self._note_cache(address)
        return False

    def _is_new_and_wanted(self, address: int) -> bool:
        """Of a node that is seen for the first time."""
        inside, ordinal = self.wanted.inside, len(self._order)
        self._order.append(address)
        wanted = self._is_wanted(address)
        if inside is not None and (place := inside.place_of(ordinal, address)) is not None:
            self._stops[address] = place
            wanted = True
        return wanted and not self.wanted.dry

    def _is_wanted(self, address: int) -> bool:
        """True for attention's softmax and the end of a part, which are noted."""
        op = c.c_int32.from_address(address + tensor.OP_OFFSET).value
        if op in self._idle:
            return False
        name = c.string_at(address + tensor.NAME_OFFSET)
        if op == self._softmax and name.startswith(_SOFTMAX):
            found = _LAYER.search(name)
            self._attention[address] = int(found[1]) if found else len(self._attention)
            return True
        part = mark(name)
        if part is None or (part[0] == OUTPUT and op != self._add):
            return False
        self._marks[address] = part
        if part[0] == OUTPUT:
            self._outputs[address] = part[1]
        return True

    def _note_cache(self, address: int) -> None:
        of = c.c_uint64.from_address(address + _VIEW_SRC).value
        if of and of not in self._view_sources:
            self._view_sources.add(of)
            kept = tensor.at(of)
            name = kept.name.decode("utf-8", "replace")
            if name.startswith("cache_"):
                first, end = tensor.span(kept)
                self.caches[name] = KeptTensor(of, end - first, int(kept.ne[1]))

    def _computed(self, address: int) -> None:
        started, seen = time.perf_counter(), self.seen
        inside, wanted = self.wanted.inside, self.wanted
        if address in self._marks and self._timed:
            seen.ends[self._marks[address]] = self.clock.moments[-1] - seen.copy_seconds
            self._counts[self._marks[address]] = len(self.clock.moments)
        if inside is not None and address in self._stops:
            inside.at(self._stops[address], address)
        elif address in self._outputs:
            layer = self._outputs[address]
            if wanted.outputs:
                numbers = tensor.numbers(tensor.at(address))[0]
                seen.outputs[layer] = numbers.astype(np.float32)
            if inside is not None:
                inside.at_output(layer, address)
        elif address in self._attention:
            layer = self._attention[address]
            recorded = bool(wanted.every) and layer % wanted.every == 0
            if inside is not None:
                self._changed(inside, layer, address, recorded)
            elif recorded:
                seen.calls[layer] = self._call(layer, address)
        seen.copy_seconds += time.perf_counter() - started

    def _changed(self, inside: Inside, layer: int, address: int, recorded: bool) -> None:
        """Attention with what interventions change in it."""
        of, wanted = self._source_of(layer, address), self.wanted
        scores = ScoreNodes(
            layer, address, of.chain, of.mask, of.queries, wanted.slots, wanted.rows
        )
        with inside.in_attention(scores) as edit:
            if recorded:
                self.seen.calls[layer] = self._call(layer, address, edit)

    def _source_of(self, layer: int, address: int) -> ScoreSource:
        of = self._sources.get(address)
        if of is None or not of.holds:
            if not self._is_wanted(address):
                raise ValueError("another graph lies where attention was")
            of = self._sources[address] = source(self._ops, layer, address)
        return of

    def _call(self, layer: int, address: int, edit: ScoreEdit | None = None) -> AttentionCall:
        of, wanted = self._source_of(layer, address), self.wanted
        call, allowed = of.new_call(), None if edit is None else edit.allowed
        of.take_mask(call, wanted.rows, wanted.slots, wanted.masks, allowed)
        if wanted.weights:
            call.weights = tensor.numbers(tensor.at(address))[..., : wanted.slots].copy()
        if of.queries is None:
            return call
        cells = tensor.at(of.key_node).ne[1]
        if cells < wanted.slots or len(of.queries) != wanted.rows:
            call.flaw = "its queries and keys are not those of the tokens read"
            return call
        first = 0 if wanted.all_keys else wanted.slots - wanted.rows
        call.queries, call.keys = of.copied(of.queries, first, wanted.slots)
        return call
