"""On load: a dozen tokens through the model, to find what works on it.

The engine uses and offers only what passed; each finding is one sentence for the model panel.
One uncached pass with logits at every slot is the reference for all the rest.  A finding that
fails by an error is not offered, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.capture.attention_sites import sites
from explorer.engine.capture.records import Proven
from explorer.engine.errors import Cancelled, EngineError, NoMemory
from explorer.engine.faults import INPUT_FAULTS
from explorer.engine.passes.cache import KINDS, keeps_windows
from explorer.engine.passes.context.evicting_cache import evicting_layer
from explorer.engine.passes.generate import forward
from explorer.engine.passes.layout import Layout, lay_out
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import chunked_prefill_test, measured_gaps, rotary_test
from explorer.engine.selftest.cached_maps import CachedMapCheck
from explorer.engine.selftest.capture_route import Trial, choose
from explorer.engine.selftest.interventions_test import InterventionTest
from explorer.trace.card import Capability
from explorer.trace.interventions.context_policy import ContextPolicy
from explorer.trace.request import RunRequest, Side
from explorer.trace.rounding import largest, logit_tolerance, tolerance

LENGTH = 12
PADS = 3
CACHED_STEPS = 2
# Largest difference in weights, or in keys relative to them, that counts as the same.
MAP_TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
REBUILT = "every attention map is rebuilt exactly from queries, keys and mask"
OWN_MAPS = "every attention map is the model's own, recorded from its eager attention"
CHANGES = {
    "silence_heads": InterventionTest.heads,
    "cut_cells": InterventionTest.cells,
    "scale_scores": InterventionTest.scores,
    "silence_mlp": InterventionTest.mlps,
    "silence_layers": InterventionTest.layers,
    "patch_heads": InterventionTest.patched_heads,
    "patch_mlp": InterventionTest.patched_mlps,
    "patch_stream": InterventionTest.patched_stream,
}
FAULTS = (EngineError, *INPUT_FAULTS)  # a memory that is full says nothing of the model


def sample_ids(vocabulary: int, avoid: set[int], length: int = LENGTH) -> tuple[int, ...]:
    """`length` non-special ids, evenly spread; distinct if the vocabulary is large enough."""
    stride = max(1, vocabulary // (length + 3))
    ids = [i % vocabulary for i in range(stride, vocabulary * 2, stride) if i not in avoid]
    return tuple((ids * length)[:length])


@dataclass(slots=True)
class SelfTest:
    """The findings on one runner, in an order in which each may lean on those before."""

    runner: Runner
    stop: Stop
    layout: Layout
    trial: Trial
    limit: float  # on logits

    @classmethod
    def of(cls, runner: Runner, stop: Stop) -> SelfTest:
        """Chooses the route of capture.  EngineError if the model can't run at all."""
        vocabulary = runner.model.get_input_embeddings().num_embeddings
        ids = sample_ids(vocabulary, set(runner.loaded.card.eos_ids))
        layout = Layout(ids, (1,) * LENGTH, tuple(range(LENGTH)))
        dtype = runner.loaded.card.dtype
        trial = choose(runner, layout, tolerance(dtype), stop)
        limit = logit_tolerance(dtype, trial.reference.logits)
        return cls(runner, stop, layout, trial, limit)

    @property
    def reference(self) -> ForwardPass:
        """The uncached pass with logits of every slot that the rest is compared with."""
        return self.trial.reference

    def capture(self) -> Capability:
        """Maps rebuilt from queries, keys and mask reproduce the kernel's output."""
        trial = self.trial
        kinds = {one.record.kind for one in measured_gaps.drawn(self.reference)}
        words = OWN_MAPS if kinds == {"map"} else REBUILT
        if not trial.attending:
            words = "this model has no attention to draw: it keeps recurrent states"
        elif not trial.exact:
            words = "this model's attention maps cannot be obtained exactly, so they are not shown"
        elif trial.failed:
            words = (
                f"the maps of layers {_list(trial.failed)} cannot be obtained exactly, so "
                "they are not shown"
            )
        reasons = {site.layer for site in sites(self.reference.recorder) if site.reason}
        if reasons and trial.exact:
            words += f"; layers {_list(reasons)} have no attention"
        worst = max((trial.gaps[layer] for layer in trial.exact), default=0.0)
        return _finding("capture", bool(trial.exact), words, worst)

    def causal_off(self) -> Capability:
        """With the mask off, every layer sees later tokens and earlier logits move."""
        name, request = "causal_off", RunRequest(causal_mask=False)
        shift = measured_gaps.prefix_shift(
            self.runner, RunRequest(), self.layout, self.reference, self.stop
        )
        self.runner.capture.causal = shift <= self.limit
        if shift > self.limit:
            words = (
                "this model attends to later tokens by design, so there is no mask to switch off"
            )
            return _finding(name, False, words, shift)
        if not self.trial.attending:
            words = "this model has no attention, so there is no mask to switch off"
            return _finding(name, False, words, None)
        if not self.trial.exact or self.trial.failed:
            words = "not every map can be shown here, so switching the mask off can't be verified"
            return _finding(name, False, words, None)
        opened = measured_gaps.every_slot(self.runner, request, self.layout, self.stop)
        future = measured_gaps.above_diagonal(opened, self.layout)
        closed = [layer for layer in self.trial.exact if future.get(layer, 0.0) == 0]
        # Only the mask differs between the two passes, and every map of the second looks ahead.
        moved = largest((opened.logits - self.reference.logits)[:-1])
        if closed:
            words = (
                f"switching the mask off has no effect in layers {_list(closed)} of this "
                "architecture"
            )
        elif moved <= self.limit:
            words = "with the mask off, no earlier logits change on this architecture"
        else:
            words = "the causal mask can be switched off; windows and padding still apply"
        return _finding(name, not closed and moved > self.limit, words, moved)

    def cache(self) -> Capability:
        """Cached steps equal uncached ones, in logits and in maps."""
        runner, gap = self.runner, float("inf")
        runner.cache_offered = False
        for kind in KINDS:
            runner.cache.kind = kind
            try:
                gap = min(gap, self._cached_gap())
            except NoMemory:
                raise
            except FAULTS:
                pass
            if gap <= self.limit:
                break
        runner.cache_offered = gap <= self.limit
        lost = self.trial.exact - runner.capture.proven.decoded if runner.capture.proven else ()
        words = "cached steps equal uncached ones"
        if not runner.cache_offered:
            words = "cached steps differ from uncached ones on this model, so the cache is off"
            if gap == float("inf"):
                words = "no cache works on this model, so every step recomputes the whole text"
        elif lost:
            words += f"; the maps of layers {_list(lost)} are drawn without a cache only"
        return _finding("cache", runner.cache_offered, words, gap)

    def _cached_gap(self) -> float:
        """The largest distance of cached logits; writes down the layers whose maps are right."""
        runner, gap = self.runner, 0.0
        runner.cache.fresh()
        if keeps_windows(runner.cache.live) and not runner.capture.windowed:
            return float("inf")  # it would forget tokens that the model's mask still shows
        steadiness = CachedMapCheck(
            self.reference, MAP_TOLERANCE.get(runner.loaded.card.dtype, 1e-4)
        )
        passes = measured_gaps.cached_passes(
            runner, RunRequest(), self.layout, CACHED_STEPS, self.stop
        )
        for done in passes:
            gap = max(gap, largest(done.logits - self.reference.logits[done.slots - 1]))
            steadiness.see(done)
        runner.capture.proven = Proven(self.trial.exact, steadiness.layers)
        return gap

    def undo(self) -> Capability:
        """Cutting the cache back equals never having gone on.  Needs the cache filled above."""
        cache = self.runner.cache
        if not self.runner.cache_offered:
            words = (
                "stepping back needs no cache here, because every step recomputes the whole text"
            )
            return _finding("undo", False, words, None)
        slot, words = (
            LENGTH - 4,
            "stepping back rebuilds the cache by prefill, because it can't be shortened",
        )
        expected = self.reference.logits[slot]
        cache.can_crop = False
        gap = measured_gaps.crop_gap(
            self.runner, RunRequest(), self.layout, slot, expected, self.stop
        )
        cache.can_crop = gap <= self.limit
        if cache.can_crop:
            words = "stepping back shortens the cache"
        return _finding("undo", cache.can_crop, words, gap)

    def chunks(self) -> Capability:
        """A prompt read in chunks gives the logits and the maps of one read whole."""
        name, runner = "chunked_prefill", self.runner
        if not runner.cache_offered:
            words = "long prompts are read in one pass, because chunks need a cache"
            return _finding(name, False, words, None)
        if not chunked_prefill_test.boundable(self.reference):
            words = "long prompts are read in one pass, because this model's maps are stored whole"
            return _finding(name, False, words, None)
        logits, maps = chunked_prefill_test.gaps(runner, self.layout, self.reference, self.stop)
        near = MAP_TOLERANCE.get(runner.loaded.card.dtype, 1e-4)
        runner.in_chunks = logits <= self.limit and maps <= near
        words = "long prompts are read in chunks, which gives the same logits and maps"
        if not runner.in_chunks:
            words = "long prompts are read in one pass, because chunks change the logits or maps"
        return _finding(name, runner.in_chunks, words, max(logits, maps))

    def padding(self, side: Side) -> Capability:
        """A padded prompt and one step after it give the logits of the tokens alone."""
        name = f"{side}_padding"
        pad_id = self.runner.loaded.card.pad_id
        if pad_id is None:
            return _finding(name, False, "not offered: the model defines no padding token", None)
        if side == "right" and self.runner.capture.windowed:
            words = (
                "not offered: this model's windows count positions, so padding would take up room"
            )
            return _finding(name, False, words, None)
        request = RunRequest(padding=side, pad=PADS, cache=self.runner.cache_offered)
        layout = lay_out(self.layout.ids[:-1], self.layout.ids[-1:], request, pad_id)
        prompt = layout.first(len(layout.ids) - 1)
        worst, live = 0.0, None
        if request.cache:
            self.runner.cache.fresh()
            live = self.runner.cache.live
        for part, row in ((prompt, -2), (layout, -1)):
            start = len(prompt.ids) if part is layout and request.cache else 0
            done = forward(self.runner, request, part, start, live, self.stop)
            worst = max(worst, largest(done.logits - self.reference.logits[row]))
        words = f"{side} padding gives the same logits as no padding"
        if worst > self.limit:
            words = f"{side} padding changes the logits of this architecture, so it is not offered"
        return _finding(name, worst <= self.limit, words, worst)

    def evict(self, found: Iterable[Capability]) -> Capability:
        """A cache that keeps few tokens gives the logits of one under the same mask."""
        name, runner = "evict", self.runner
        if not any(one.name == "cut_cells" and one.offered for one in found):
            words = "not offered: attention can't be limited to some of the tokens on this model"
            return _finding(name, False, words, None)
        if not runner.cache_offered:
            return _finding(name, False, "not offered: no cache works on this model", None)
        request = RunRequest(context=ContextPolicy(name="sinks", tokens=6, sinks=2))
        expected = measured_gaps.every_slot(runner, request, self.layout, self.stop).logits
        runner.evicts, evicts, gap = True, False, float("inf")
        try:
            with runner.own_cache_aside():
                rows = expected[-CACHED_STEPS - 1 :]
                gap = measured_gaps.cached_gap(runner, request, self.layout, rows, self.stop)
                evicts = evicting_layer(runner.cache.live) is not None
        finally:
            runner.evicts = evicts and gap <= self.limit
        words = "a sliding window can evict tokens from the cache"
        if not evicts:
            words = (
                "not offered: this model's cache has windows or states of its own, so no token "
                "is evicted from it"
            )
        elif not runner.evicts:
            words = "not offered: it changes the logits here, so the cache keeps every token"
        return _finding(name, runner.evicts, words, gap)

    def sink_distances(self) -> Capability:
        """Keys at other positions are these keys, rotated: distances can be counted otherwise."""
        name, runner = "sink_distances", self.runner
        if not runner.evicts:
            return _finding(name, False, "not offered: its cache evicts nothing", None)
        if runner.first_position is None:
            return _finding(name, False, "not offered: it counts its positions itself", None)
        runner.rotation, gap = rotary_test.find(runner, self.layout, self.stop)
        words = "distances to the first tokens can be counted in the cache"
        if runner.rotation is None:
            words = "not offered: keys are not rotated by their position alone, as far as is seen"
        return _finding(name, runner.rotation is not None, words, gap)


def _change(test: InterventionTest, name: str) -> Callable[[], Capability]:
    return lambda: _finding(name, *CHANGES[name](test))


def _finding(name: str, offered: bool, words: str, measured: float | None) -> Capability:
    if measured is not None and not np.isfinite(measured):
        measured = None
    return Capability(name=name, offered=offered, words=words, measured=measured)


def _list(numbers: Iterable[int]) -> str:
    first = sorted(numbers)
    return ", ".join(map(str, first[:8])) + ("…" if len(first) > 8 else "")


@np.errstate(invalid="ignore", over="ignore")  # infinite weights make infinite differences
def run(
    runner: Runner, stop: Stop = never, tell: Callable[[float], None] = lambda share: None
) -> None:
    """Find what works and write it to the runner and its model card; `tell` how far it is."""
    tell(0.0)
    test = SelfTest.of(runner, stop)
    changing = InterventionTest(runner, test.layout, test.trial, test.limit, stop)
    findings = {
        "capture": test.capture,
        "causal_off": test.causal_off,
        "cache": test.cache,
        "undo": test.undo,
        "chunked_prefill": test.chunks,
        "left_padding": lambda: test.padding("left"),
        "right_padding": lambda: test.padding("right"),
    }
    findings |= {name: _change(changing, name) for name in CHANGES}
    found: list[Capability] = []
    findings["evict"] = lambda: test.evict(found)
    findings["sink_distances"] = test.sink_distances
    runner.evicts = False
    for name, find in findings.items():
        tell((len(found) + 1) / (len(findings) + 1))  # the first share: the route was chosen
        try:
            found.append(find())
        except (Cancelled, NoMemory):  # neither says anything of the model
            raise
        except FAULTS as error:
            reason = f"not offered: the model failed its test ({type(error).__name__})"
            found.append(_finding(name, False, reason, None))
    try:
        same = changing.same_with_cache()
    except NoMemory:
        raise
    except FAULTS:
        same = False
    if not same:
        words = "it gives other results with the cache than without it here"
        found = [_finding(one.name, False, words, None) if one.name in CHANGES else one
                 for one in found]  # fmt: skip
    runner.cache.drop()
    if not found[2].offered:
        runner.cache_offered = False
    card = msgspec.structs.replace(runner.loaded.card, capabilities=tuple(found))
    runner.loaded = replace(runner.loaded, card=card)
