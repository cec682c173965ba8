"""On opening: a dozen tokens through the model, to find what works on it.

What is offered is what passed; each finding is one sentence for the model panel.  One uncached
pass with logits and llama.cpp's own weights at every slot is the reference for all the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import msgspec
import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import Cancelled, EngineError, NoMemory
from explorer.llama_engine.binding.tensor import OnGpu
from explorer.llama_engine.passes.context import Context, ContextShape
from explorer.llama_engine.passes.generate import Done, forward
from explorer.llama_engine.passes.records import Exactness
from explorer.llama_engine.passes.runner import KeptBytes, LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps
from explorer.llama_engine.selftest.interventions_test import CHANGES, ChangesTest
from explorer.llama_engine.selftest.tolerance import MAPS, OTHER_PASS, logit_tolerance
from explorer.trace import attention
from explorer.trace.card import Capability
from explorer.trace.rounding import largest

LENGTH, CACHED_STEPS = 12, 2
_SHORT = 256  # slots
CHUNK_ENDS = (5, 9)
_CACHE = re.compile(r"cache_(k|v|r|s|\w+)_l(\d+)$")
NO_PADDING = (
    "not offered: a file that runs as it is takes no {} padding; open it converted to float32 for "
    "it"
)
NO_DISTANCES = "not offered: llama.cpp counts distances in the text; open the file in float32"
NO_EVICTING = (
    "not offered: llama.cpp's cache keeps the tokens that a sliding window masks; open the file "
    "converted to float32 for a cache that gets smaller"
)
PATCHES = {"patch_heads": "heads", "patch_mlp": "MLPs", "patch_stream": "the residual stream"}
NO_PATCH = (
    "not offered: llama.cpp takes no patches of {} from other runs; open the file converted to "
    "float32 for it"
)


def sample_ids(vocabulary: int, avoid: set[int], length: int = LENGTH) -> tuple[int, ...]:
    """`length` ids that end nothing, evenly spread; distinct if the vocabulary is large enough."""
    stride = max(1, vocabulary // (length + 3))
    ids = [i % vocabulary for i in range(stride, vocabulary * 2, stride) if i not in avoid]
    return tuple((ids * length)[:length])


@dataclass(slots=True)
class OpeningTest:
    """The findings on one runner, in an order in which each may lean on those before."""

    runner: LlamaRunner
    stop: Stop
    ids: tuple[int, ...]
    reference: Done
    map_gaps: dict[int, float]
    limit: float  # on logits of passes of unlike shapes

    @classmethod
    def of(cls, runner: LlamaRunner, stop: Stop) -> OpeningTest:
        """Runs the reference pass.  EngineError if the model can't run at all."""
        ids = sample_ids(runner.model.vocab_size, set(runner.card.eos_ids))
        runner.proven = None
        reference = gaps.every_slot(runner, ids, stop)
        if not np.isfinite(reference.logits).all():
            raise EngineError(
                "The model's logits contain NaN or infinite values. The file may be damaged."
            )
        found = gaps.map_gaps(runner, reference)
        return cls(runner, stop, ids, reference, found, logit_tolerance(reference.logits))

    @property
    def context(self) -> Context:
        """The context of the reference pass, emptied."""
        return self.runner.spare_context(LENGTH)

    def capture(self) -> Capability:
        """Maps rebuilt from queries, keys and mask are llama.cpp's own; else those are kept."""
        exact = frozenset(layer for layer, gap in self.map_gaps.items() if gap <= MAPS)
        own = frozenset(self.map_gaps) - exact
        attending = frozenset(self.map_gaps)
        self.runner.proven = Exactness(exact, own, attending, self.runner.card.windows)
        words = "every attention map is rebuilt exactly from queries, keys and mask"
        if not attending:
            words = "this model has no attention to draw: it keeps recurrent states"
        elif own and not exact:
            words = "every attention map is the model's own, recorded from llama.cpp's attention"
        elif own:
            words += f"; those of layers {_list(own)} are llama.cpp's own, recorded"
        without = frozenset(range(self.runner.card.layers)) - attending
        if without and attending:
            words += f"; layers {_list(without)} have no attention"
        worst = max((self.map_gaps[layer] for layer in exact), default=0.0)
        return _finding("capture", bool(attending), words, worst)

    def causal_off(self) -> Capability:
        """With the mask off, every layer sees later tokens and earlier logits move."""
        name = "causal_off"
        if not self.map_gaps:
            words = "this model has no attention, so there is no mask to switch off"
            return _finding(name, False, words, None)
        shift = self._prefix_shift()
        self.runner.causal = shift <= self.limit
        if not self.runner.causal:
            words = (
                "this model attends to later tokens by design, so there is no mask to switch off"
            )
            return _finding(name, False, words, shift)
        opened = gaps.every_slot(self.runner, self.ids, self.stop, causal=False)
        future = gaps.above_diagonal(opened)
        closed = [layer for layer in self.map_gaps if future.get(layer, 0.0) == 0]
        exact = gaps.map_gaps(self.runner, opened)
        wrong = [k for k in exact if k in self._rebuilt and exact[k] > MAPS]
        moved = largest((opened.logits - self.reference.logits)[:-1])
        words = "the causal mask can be switched off; windows still apply"
        if self.runner.model.keeps_state:
            words = "some layers read from left to right by design; only attention can be opened"
        if closed:
            words = (
                f"switching the mask off has no effect in layers {_list(closed)} of this "
                "architecture"
            )
        elif wrong:
            words = f"with the mask off, the maps of layers {_list(wrong)} are not exact"
        elif moved <= self.limit:
            words = "with the mask off, no earlier logits change on this architecture"
        return _finding(name, not closed and not wrong and moved > self.limit, words, moved)

    @property
    def _rebuilt(self) -> frozenset[int]:
        return frozenset() if self.runner.proven is None else self.runner.proven.rebuilt

    def _prefix_shift(self) -> float:
        """How far earlier positions' logits move when the last token changes."""
        other = (self.ids[-1] + 1) % self.runner.model.vocab_size
        moved = gaps.every_slot(self.runner, (*self.ids[:-1], other), self.stop)
        return largest((moved.logits - self.reference.logits)[:-1])

    def cache(self) -> Capability:
        """Cached steps equal uncached ones, in logits and in maps."""
        logits, maps = self._cached_gaps()
        offered = logits <= self.limit and maps <= MAPS
        self.runner.cache_offered = offered
        words = "cached steps equal uncached ones"
        if logits:
            words += " up to rounding"
        if not offered:
            words = "cached steps differ from uncached ones on this model, so the cache is off"
        return _finding("cache", offered, words, logits)

    def _cached_gaps(self) -> tuple[float, float]:
        """(logits against the reference, cached maps against llama.cpp's own of the same step)."""
        passes = gaps.cached_passes(self.runner, self.context, self.ids, CACHED_STEPS, self.stop)
        logits = maps = 0.0
        keys: dict[int, list[np.ndarray]] = {}
        for done in passes:
            row = done.seen.slots - 1
            logits = max(logits, largest(done.logits - self.reference.logits[row]))
            for record in gaps.records(self.runner, done):
                if record.keys is None or record.layer not in self._rebuilt:
                    continue
                kept = keys.setdefault(record.layer, [])
                kept.append(record.keys)
                own = gaps.own_weights(done, record.layer)
                maps = max(maps, gaps.map_gap(record, np.concatenate(kept), own))
        return logits, maps

    def undo(self) -> Capability:
        """Cutting the cache back equals never having gone on."""
        if not self.runner.cache_offered:
            words = (
                "stepping back needs no cache here, because every step recomputes the whole text"
            )
            return _finding("undo", False, words, None)
        slot, context = LENGTH - 4, self.context
        forward(self.runner, context, self.ids[:slot], Wanted(every=0), self.stop)
        plain = forward(self.runner, context, self.ids[: slot + 1], Wanted(every=0), self.stop)
        forward(self.runner, context, self.ids, Wanted(every=0), self.stop)
        cut = context.cut_to(slot)
        gap = None
        if cut:
            again = forward(self.runner, context, self.ids[: slot + 1], Wanted(every=0), self.stop)
            gap = largest(again.logits - plain.logits)
        offered = gap is not None and gap <= self.limit
        words = "stepping back shortens the cache"
        if not offered:
            words = "stepping back rebuilds the cache by prefill, because it can't be shortened"
        return _finding("undo", offered, words, gap)

    def chunks(self) -> Capability:
        """A prompt read in chunks gives the logits and the maps of one read whole."""
        name, context = "chunked_prefill", self.context
        logits = maps = 0.0
        kept: dict[int, list[np.ndarray]] = {}
        for end in (*CHUNK_ENDS, LENGTH):
            done = forward(self.runner, context, self.ids[:end], Wanted(), self.stop)
            logits = max(logits, largest(done.logits - self.reference.logits[end - 1]))
            for record in gaps.records(self.runner, done):
                if record.keys is None or record.layer not in self._rebuilt:
                    continue
                kept.setdefault(record.layer, []).append(record.keys)
                own = gaps.own_weights(self.reference, record.layer)
                assert own is not None
                keys = np.concatenate(kept[record.layer])
                for head in range(record.heads):
                    ours = attention.weights(record, keys, head)
                    rows = slice(end - len(ours), end)
                    maps = max(maps, largest(ours - own[head, rows, : ours.shape[1]]))
        offered = logits <= self.limit and maps <= OTHER_PASS
        words = "long prompts are read in chunks, which gives the same logits and maps"
        if not offered:
            words = "reading a long prompt in chunks changes the logits or maps of this model"
        return _finding(name, offered, words, max(logits, maps))

    def kept_bytes(self) -> tuple[KeptBytes, ...]:
        """By layer, from the sizes of the cache's own tensors."""
        slots, states = [0] * self.runner.card.layers, [0] * self.runner.card.layers
        for name, kept in self.context.caches.items():
            found = _CACHE.match(name)
            if found and int(found[2]) < len(slots):
                if found[1] in ("k", "v"):
                    slots[int(found[2])] += kept.size // max(1, kept.cells)
                else:
                    states[int(found[2])] += kept.size
        return tuple(KeptBytes(*pair) for pair in zip(slots, states, strict=True))

    def layer_kinds(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """(full, sliding or recurrent, its window) of each layer, by the mask it was given."""
        window = int(self.runner.model.library.llama_model_n_swa(self.runner.model.handle))
        short = self._short_sighted(window) if window > 0 else frozenset()
        kinds, windows = [], []
        for layer in range(self.runner.card.layers):
            calls = self.reference.seen.calls(layer)
            sliding = layer in short
            kinds.append("sliding" if sliding else "full" if calls else "recurrent")
            windows.append(window if sliding else 0)
        return tuple(kinds), tuple(windows)

    def _short_sighted(self, window: int) -> frozenset[int]:
        """Layers that hide what lies a window back; no long text is needed to see it.

        A few tokens are read and the first of them moved out of reach of the next one.
        """
        runner, far, near = self.runner, 2, 4
        # In float16: moving keys that are kept in blocks ends this build of llama.cpp.
        shape = ContextShape(_SHORT, _SHORT)
        with closing(Context(runner.model, runner.threads, shape)) as context:
            forward(runner, context, self.ids[:near], Wanted(every=0), self.stop)
            if not context.leave_gap(far, window):
                return frozenset()
            seen = forward(runner, context, self.ids[: near + 1], Wanted(), self.stop).seen
        calls = [call for one in seen.seen for call in one.calls.values()]
        visible = {call.layer: _visible(call.mask) for call in calls if call.mask is not None}
        return frozenset(layer for layer, keys in visible.items() if keys <= near)


def run(
    runner: LlamaRunner, stop: Stop = never, tell: Callable[[float], None] = lambda share: None
) -> None:
    """Find what works and write it to the runner and its model card; `tell` how far it is."""
    tell(0.0)
    test = OpeningTest.of(runner, stop)
    runner.kept = test.kept_bytes()
    runner.kv_heads = {
        layer: call.keys.shape[1]
        for layer, call in test.reference.seen.seen[0].calls.items()
        if call.keys is not None
    }
    runner.query_heads = {
        layer: len(call.weights)
        for layer, call in test.reference.seen.seen[0].calls.items()
        if call.weights is not None
    }
    kinds, windows = test.layer_kinds()
    runner.card = msgspec.structs.replace(
        runner.card,
        layer_kinds=kinds,
        windows=windows,
        kv_bytes_per_token=sum(kept.slot for kept in runner.kept),
    )
    findings = {
        "capture": test.capture,
        "causal_off": test.causal_off,
        "cache": test.cache,
        "undo": test.undo,
        "chunked_prefill": test.chunks,
        "left_padding": lambda: _refused("left_padding", NO_PADDING.format("left")),
        "right_padding": lambda: _refused("right_padding", NO_PADDING.format("right")),
    }
    changing = ChangesTest(runner, test.ids, test.reference, test.limit, stop)
    findings |= {name: _change(changing, name) for name in CHANGES}
    findings |= {name: _not_patched(name, part) for name, part in PATCHES.items()}
    findings["evict"] = lambda: _refused("evict", NO_EVICTING)
    findings["sink_distances"] = lambda: _refused("sink_distances", NO_DISTANCES)
    found: list[Capability] = []
    for name, find in findings.items():
        tell((len(found) + 1) / (len(findings) + 1))
        try:
            found.append(find())
        except (Cancelled, NoMemory):  # neither says anything of the model
            raise
        except (EngineError, ValueError) as error:
            reason = f"not offered: the model failed its test ({type(error).__name__})"
            if isinstance(error, OnGpu):
                reason = "not offered: what it reads or changes is in the memory of a GPU"
            found.append(_finding(name, False, reason, None))
    if not changing.same_with_cache():
        words = "it gives other results with the cache than without it here"
        found = [_finding(one.name, False, words, None) if one.name in CHANGES else one
                 for one in found]  # fmt: skip
    runner.card = msgspec.structs.replace(runner.card, capabilities=tuple(found))
    runner.free_spare()


def _not_patched(name: str, part: str) -> Callable[[], Capability]:
    return lambda: _refused(name, NO_PATCH.format(part))


def _refused(name: str, words: str) -> Capability:
    return _finding(name, False, words, None)


def _change(test: ChangesTest, name: str) -> Callable[[], Capability]:
    return lambda: _finding(name, *CHANGES[name](test))


def _visible(mask: np.ndarray) -> int:
    """Keys that the last row of a mask shows."""
    return int(np.unpackbits(mask[-1]).sum())


def _finding(name: str, offered: bool, words: str, measured: float | None) -> Capability:
    if measured is not None and not np.isfinite(measured):
        measured = None
    return Capability(name=name, offered=offered, words=words, measured=measured)


def _list(numbers: frozenset[int] | list[int]) -> str:
    first = sorted(numbers)
    return ", ".join(map(str, first[:8])) + ("…" if len(first) > 8 else "")
