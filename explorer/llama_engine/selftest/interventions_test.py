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
from explorer.llama_engine.passes.inside import Inside, Streams
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
    _scores: tuple[Done, float] | None = None
    _parts: tuple[Done, Streams] | None = None

    def heads(self) -> Found:
        """With every head silent, what attention writes is the same for every token."""
        heads = self.runner.query_heads
        if not heads:
            return False, NO_ATTENTION, None
        every = [Silence(layer=layer, head=h) for layer, n in heads.items() for h in range(n)]
        done, inside = self._watched(every)
        located = self.runner.located(True) if inside.reads else None
        for place, written in inside.streams.writes.items():
            attends = located is not None and located.kinds[place] == "attention"
            if attends and largest(written - written[:1]) > 0:
                return False, "silenced heads still write to the residual stream here", None
        found = self._finding(every, done, "heads can be silenced one by one")
        self._worked = self._worked[::2]  # tried with the cache, too: some must be left
        return found

    def cells(self) -> Found:
        """A cut cell's weight is exactly 0, and llama.cpp's weights are those of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        if largest(self._pass([Scale(factor=1.0)]).logits - self.reference.logits) > 0:
            return False, "scores can't be computed again here without changing the logits", None
        done, gap = self._scores_changed()
        last, left = len(self.ids) - 1, 0.0
        for layer in self.runner.query_heads:
            own = gaps.own_weights(done, layer)
            assert own is not None
            cut = [own[:, last, last - 1], own[:, 3, 2], own[:, 4, 3], own[:1, last - 2, last - 2]]
            left = max(left, *(largest(one) for one in cut))
        if left or gap > MAPS:
            return False, "cutting cells of attention does not have the same effect here", gap
        return self._finding(self._cut, done, "cells of attention can be cut and allowed")

    def scores(self) -> Found:
        """With scaled scores, llama.cpp's weights are those of the drawn map."""
        why = self._closed()
        if why:
            return False, why, None
        done, gap = self._scores_changed()
        if gap > MAPS:
            return False, "scaling attention scores does not have the same effect here", gap
        return self._finding(self._scaled, done, "attention scores can be scaled")

    def _scores_changed(self) -> tuple[Done, float]:
        """Cells cut and scores scaled in one pass; llama.cpp's weights against the drawn maps."""
        if self._scores is None:
            done = self._pass([*self._cut, *self._scaled])
            found = gaps.map_gaps(self.runner, done)
            every = found.keys() == self.runner.query_heads.keys()
            self._scores = done, max(found.values()) if every else float("inf")
        return self._scores

    @property
    def _cut(self) -> list[Intervention]:
        last = len(self.ids) - 1
        everywhere = Cells(queries=(last, last), keys=(last - 1, last - 1))
        early = Cells(queries=(3, 4), back=(1, 1))
        in_one_head = Cells(head=0, queries=(last - 2, last - 2), keys=(last - 2, last - 2))
        return [everywhere, early, in_one_head]

    @property
    def _scaled(self) -> list[Intervention]:
        return [Scale(factor=2.0), Scale(head=0, factor=0.25)]

    def mlps(self) -> Found:
        """With every MLP silent, a layer's output is what entered and what the rest wrote."""
        layers, known = self.runner.card.layers, self.runner.with_mlp
        if not known:
            return False, "no layer has an MLP that writes to the residual stream by itself", None
        words = "the MLP of each layer can be silenced"
        if len(known) < layers:
            words = f"the MLP of {len(known)} of {layers} layers can be silenced"
        done, streams = self._parts_silent()
        located, worst = self.runner.located(True), 0.0
        for layer in known - {self._middle}:
            after = streams.outputs[layer]
            total = streams.outputs.get(layer - 1, streams.entered).astype(np.float64)
            for place, kind in located.kinds.items():
                if place[0] == layer and kind != "mlp":
                    total = total + streams.writes[place]
            worst = max(worst, largest(after - total) / max(1.0, largest(after)))
        if worst > _SUMS:
            return False, "a silenced MLP still changes its layer's output here", worst
        return self._finding(self._mlps, done, words)

    def layers(self) -> Found:
        """A silenced layer gives what entered, bit for bit."""
        layer = self._middle
        done, streams = self._parts_silent()
        gap = largest(streams.outputs[layer] - streams.outputs.get(layer - 1, streams.entered))
        if gap:
            return False, "a silenced layer still changes the residual stream here", gap
        return self._finding([self._layer], done, "whole layers can be silenced")

    def _parts_silent(self) -> tuple[Done, Streams]:
        """Every MLP and one whole layer silenced in one pass."""
        if self._parts is None:
            done, inside = self._watched([*self._mlps, self._layer])
            self._parts = done, inside.streams
        return self._parts

    @property
    def _middle(self) -> int:
        return self.runner.card.layers // 2

    @property
    def _layer(self) -> Silence:
        return Silence(layer=self._middle, part="layer")

    @property
    def _mlps(self) -> list[Intervention]:
        return [Silence(layer=layer, part="mlp") for layer in sorted(self.runner.with_mlp)]

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
            return gaps.every_slot(self.runner, self.ids, self.stop, inside=inside), inside
        except BadInput:
            inside = self.runner.inside(request)
            return gaps.every_slot(self.runner, self.ids, self.stop, inside=inside), inside

    def _finding(self, asked: Sequence[Intervention], done: Done, words: str) -> Found:
        """Offered if it moves the logits."""
        moved = largest(done.logits - self.reference.logits)
        if not 0 < moved < np.inf:
            return False, "it changes nothing here" if not moved else "it breaks this model", moved
        self._worked += asked
        return True, words, moved


CHANGES: dict[str, Callable[[ChangesTest], Found]] = {
    "silence_heads": ChangesTest.heads,
    "cut_cells": ChangesTest.cells,
    "scale_scores": ChangesTest.scores,
    "silence_mlp": ChangesTest.mlps,
    "silence_layers": ChangesTest.layers,
}
