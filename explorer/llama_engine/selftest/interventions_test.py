"""What can be changed inside this file's model: heads, cells and scores of attention, MLPs, layers.

Each finding is one uncached pass under an intervention; all of them together are tried through the
cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.errors import BadInput
from explorer.llama_engine.passes.generate import Done, forward
from explorer.llama_engine.passes.inside import Inside
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps
from explorer.llama_engine.selftest.tolerance import MAPS
from explorer.trace.interventions.kinds import Cells, Intervention, Scale, Silence
from explorer.trace.request import RunRequest
from explorer.trace.rounding import largest

CACHED_STEPS = 2
NO_ATTENTION = "this model has no attention"
NOT_EXACT = "not every map can be shown here, so changes of attention can't be verified"
_SUMS = 1e-5  # rounding of a sum of float32 vectors, by their largest entry

Found = tuple[bool, str, float | None]  # offered, in words, measured


@dataclass(slots=True)
class ChangesTest:
    """The findings on one runner; `reference` is the pass without any intervention."""

    runner: LlamaRunner
    ids: tuple[int, ...]
    reference: Done  # with logits of every slot
    limit: float  # on logits of passes of unlike shapes
    stop: Stop
    _worked: list[Intervention] = field(default_factory=list)

    def heads(self) -> Found:
        """With every head silent, what attention writes is the same for every token."""
        heads = self.runner.query_heads
        if not heads:
            return False, NO_ATTENTION, None
        every = [Silence(layer=layer, head=h) for layer, n in heads.items() for h in range(n)]
        done, inside = self._watched(every)
        found = self._finding(every, done, "heads can be silenced one by one")
        self._worked = self._worked[::2]  # tried with the cache, too: some must be left
        located = self.runner.located(True)
        for place, written in inside.streams.writes.items():
            if located.kinds[place] == "attention" and largest(written - written[:1]) > 0:
                return False, "silenced heads still write to the residual stream here", None
        return found

    def cells(self) -> Found:
        """A cut cell's weight is exactly 0, and llama.cpp's weights are those of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        same = self._pass([Scale(factor=1.0)])
        if largest(same.logits - self.reference.logits) > 0:
            return False, "scores can't be computed again here without changing the logits", None
        last = len(self.ids) - 1
        everywhere = Cells(queries=(last, last), keys=(last - 1, last - 1))
        early = Cells(queries=(3, 4), back=(1, 1))
        in_one_head = Cells(head=0, queries=(last - 2, last - 2), keys=(last - 2, last - 2))
        asked = [everywhere, early, in_one_head]
        done = self._pass(asked)
        left, gap = 0.0, self._drawn_gap(done)
        for layer in self.runner.query_heads:
            own = gaps.own_weights(done, layer)
            assert own is not None
            cut = [own[:, last, last - 1], own[:, 3, 2], own[:, 4, 3], own[:1, last - 2, last - 2]]
            left = max(left, *(largest(one) for one in cut))
        if left or gap > MAPS:
            return False, "cutting cells of attention does not have the same effect here", gap
        return self._finding(asked, done, "cells of attention can be cut and allowed")

    def scores(self) -> Found:
        """With scaled scores, llama.cpp's weights are those of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        asked = [Scale(factor=2.0), Scale(head=0, factor=0.25)]
        done = self._pass(asked)
        gap = self._drawn_gap(done)
        if gap > MAPS:
            return False, "scaling attention scores does not have the same effect here", gap
        return self._finding(asked, done, "attention scores can be scaled")

    def mlps(self) -> Found:
        """With every MLP silent, a layer's output is what entered and what the rest wrote."""
        layers, known = self.runner.card.layers, self.runner.with_mlp
        if not known:
            return False, "no layer has an MLP that writes to the residual stream by itself", None
        words = "the MLP of each layer can be silenced"
        if len(known) < layers:
            words = f"the MLP of {len(known)} of {layers} layers can be silenced"
        asked = [Silence(layer=layer, part="mlp") for layer in sorted(known)]
        done, inside = self._watched(asked)
        gap = _sum_gap(inside, layers, {"mlp"}, self.runner)
        if gap > _SUMS:
            return False, "a silenced MLP still changes its layer's output here", gap
        return self._finding(asked, done, words)

    def layers(self) -> Found:
        """A silenced layer gives what entered, bit for bit."""
        layer = self.runner.card.layers // 2
        asked = [Silence(layer=layer, part="layer")]
        done, inside = self._watched(asked)
        streams = inside.streams
        entered = streams.outputs[layer - 1] if layer else streams.entered
        gap = largest(streams.outputs[layer] - entered)
        if gap:
            return False, "a silenced layer still changes the residual stream here", gap
        return self._finding(asked, done, "whole layers can be silenced")

    def same_with_cache(self) -> bool:
        """True if everything that works gives the same results with the cache."""
        runner = self.runner
        if not runner.cache_offered or not self._worked:
            return True
        expected = self._pass(self._worked).logits
        inside = runner.inside(RunRequest(interventions=tuple(self._worked)))
        context, gap = runner.spare_context(len(self.ids)), 0.0
        for end in range(len(self.ids) - CACHED_STEPS, len(self.ids) + 1):
            wanted = Wanted(every=0, inside=inside)
            done = forward(runner, context, self.ids[:end], wanted, self.stop)
            gap = max(gap, largest(done.logits - expected[end - 1]))
        return gap <= self.limit

    def _closed(self) -> str:
        """Why scores can't be changed here; empty if they can."""
        if not self.runner.query_heads:
            return NO_ATTENTION
        proven, attending = self.runner.proven, self.runner.query_heads.keys()
        return "" if proven is not None and proven.rebuilt == attending else NOT_EXACT

    def _pass(self, asked: Sequence[Intervention]) -> Done:
        inside = self.runner.inside(RunRequest(interventions=tuple(asked)))
        return gaps.every_slot(self.runner, self.ids, self.stop, inside=inside)

    def _watched(self, asked: Sequence[Intervention]) -> tuple[Done, Inside]:
        """With the stream and what was written to it, where these can be had."""
        request = RunRequest(interventions=tuple(asked))
        try:
            inside = self.runner.inside(request, reads=True, reads_writes=True)
        except BadInput:
            inside = self.runner.inside(request)
        return gaps.every_slot(self.runner, self.ids, self.stop, inside=inside), inside

    def _drawn_gap(self, done: Done) -> float:
        found = gaps.map_gaps(self.runner, done)
        every = found.keys() == self.runner.query_heads.keys()
        return max(found.values()) if every else float("inf")

    def _finding(self, asked: Sequence[Intervention], done: Done, words: str) -> Found:
        """Offered if it moves the logits."""
        moved = largest(done.logits - self.reference.logits)
        if not 0 < moved < np.inf:
            return False, "it changes nothing here" if not moved else "it breaks this model", moved
        self._worked += asked
        return True, words, moved


def _sum_gap(inside: Inside, layers: int, but: set[str], runner: LlamaRunner) -> float:
    """Each layer's output against what entered and the writes of other kinds; the largest gap."""
    streams, located, worst = inside.streams, runner.located(True), 0.0
    for layer in range(layers):
        before, after = streams.outputs.get(layer - 1, streams.entered), streams.outputs[layer]
        kept = [p for p, kind in located.kinds.items() if p[0] == layer and kind not in but]
        total = before.astype(np.float64)
        total = total + sum(streams.writes[place].astype(np.float64) for place in kept)
        worst = max(worst, largest(after - total) / max(1.0, largest(after)))
    return worst


CHANGES: dict[str, Callable[[ChangesTest], Found]] = {
    "silence_heads": ChangesTest.heads,
    "cut_cells": ChangesTest.cells,
    "scale_scores": ChangesTest.scores,
    "silence_mlp": ChangesTest.mlps,
    "silence_layers": ChangesTest.layers,
}
