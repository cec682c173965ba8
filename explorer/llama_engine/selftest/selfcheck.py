"""The self-check of one run: is what the window draws what llama.cpp did?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.llama_engine.passes.context import MOST_OUTPUTS
from explorer.llama_engine.passes.generate import Done, forward, generate
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.llama_engine.selftest import gaps
from explorer.llama_engine.selftest.tolerance import MAPS, logit_tolerance
from explorer.trace.card import Check
from explorer.trace.interventions.kinds import Cells
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import largest

MOST_SLOTS = 256  # own weights are H·T² numbers a layer: longer runs are checked this far
CACHED_STEPS = 3
GREEDY_TOKENS = 8


@dataclass(slots=True)
class RunCheck:
    """One run to be checked, with its uncached reference pass."""

    runner: LlamaRunner
    request: RunRequest
    ids: tuple[int, ...]
    whole: Done  # logits (n, V) of the last slots
    logit_limit: float
    stop: Stop
    note: str

    def kernel_output(self) -> Check | None:
        """Rebuilt maps against the weights that llama.cpp's attention computed."""
        proven = self.runner.proven
        found = gaps.map_gaps(self.runner, self.whole)
        rebuilt = [gap for layer, gap in found.items() if proven and layer in proven.rebuilt]
        return self._check("kernel_output", max(rebuilt), MAPS) if rebuilt else None

    def row_sums(self) -> Check:
        """Rows sum to 1; where a layer has sinks, the missing mass is theirs."""
        gap, sink = gaps.row_sums(self.runner, self.whole)
        note = f"attention sinks take up to {sink:.3f} of a row" if sink else self.note
        return Check(name="row_sums", passed=gap <= MAPS, measured=gap, tolerance=MAPS, note=note)

    def upper_triangle(self) -> Check | None:
        """Mask on: no weight on a later token, exactly.  Mask off: some in every layer."""
        if not self.runner.causal:
            return None
        if self._cells and (self.request.sees_later or not self.request.causal_mask):
            return None  # which later tokens are seen was chosen cell by cell
        future = gaps.above_diagonal(self.whole)
        if self.request.causal_mask:
            return self._check("upper_triangle", max(future.values(), default=0.0), 0.0)
        return self._check("future_visible", float(sum(w == 0 for w in future.values())), 0.0)

    def prefix_property(self) -> Check | None:
        """Changing the last token leaves earlier positions alone."""
        if self.request.sees_later or len(self.ids) < 2 or not self.runner.causal:
            return None
        other = (*self.ids[:-1], (self.ids[-1] + 1) % self.runner.model.vocab_size)
        context = self.runner.spare_context(len(other))
        at = range(len(other) - len(self.whole.logits), len(other))
        moved = forward(self.runner, context, other, self._unrecorded, self.stop, at)
        return self._check(
            "prefix_property", largest((self.whole.logits - moved.logits)[:-1]), self.logit_limit
        )

    def cached_equals_uncached(self) -> Check | None:
        """Prefill and the last steps through a cache against one pass without."""
        rows = min(CACHED_STEPS + 1, len(self.ids), len(self.whole.logits))
        if not self.runner.caches(self.request) or rows < 2:
            return None
        context = self.runner.spare_context(len(self.ids))
        worst = 0.0
        for back in range(rows - 1, -1, -1):
            end = len(self.ids) - back
            done = forward(self.runner, context, self.ids[:end], self._unrecorded, self.stop)
            worst = max(worst, largest(done.logits - self.whole.logits[-1 - back]))
        return self._check("cached_equals_uncached", worst, self.logit_limit)

    def cut_cells(self) -> Check | None:
        """No weight on any cell that is cut, exactly."""
        if not self._cells:
            return None
        left = gaps.cut_weight(self.whole, self.request.changes)
        return self._check("cut_cells", left, 0.0)

    @property
    def _cells(self) -> bool:
        """True if cells of attention are cut or allowed."""
        return any(isinstance(one, Cells) for one in self.request.changes)

    @property
    def _unrecorded(self) -> Wanted:
        return Wanted(every=0, inside=self.runner.inside(self.request))

    def greedy_equals_generate(self) -> Check | None:
        """Our greedy tokens against those that llama.cpp's own sampler takes."""
        if not self.request.causal_mask or self.note or not self.runner.causal:
            return None
        if self.request.changes:
            return None  # llama.cpp's sampler is run on the model as it is
        runner, ours, theirs = self.runner, list[int](), list[int]()
        prompt = runner.prompt(self.request)
        with runner.own_cache_aside():
            generate(
                runner, prompt, (), GREEDY_TOKENS, Sampling,
                lambda _, token: ours.append(token.id), self.stop,
            )  # fmt: skip
        context = runner.spare_context(len(prompt.layout.ids) + GREEDY_TOKENS)
        while len(theirs) < len(ours):
            ids = (*prompt.layout.ids, *theirs)
            before = context.slots
            forward(runner, context, ids, Wanted(every=0), self.stop)
            theirs.append(context.greedy_id((len(ids) - before - 1) % context.shape.chunk))
        differing = sum(a != b for a, b in zip(ours, theirs, strict=True))
        return self._check("greedy_equals_generate", float(differing), 0.0)

    def _check(self, name: str, measured: float, limit: float) -> Check:
        return Check(
            name=name,
            passed=bool(measured <= limit),
            measured=measured,
            tolerance=limit,
            note=self.note,
        )


def check(
    runner: LlamaRunner, request: RunRequest, chosen: Sequence[int], stop: Stop = never
) -> Iterator[Check]:
    """Every check that applies to this run, one after the other; Cancelled if told to stop.

    The run's own cache is left as it was.
    """
    ids, note = runner.layout(request, chosen).ids, ""
    if len(ids) > MOST_SLOTS:
        note = f"checked on the first {MOST_SLOTS} of {len(ids)} positions"
        ids = ids[:MOST_SLOTS]
    last = range(max(0, len(ids) - min(CACHED_STEPS + 1, MOST_OUTPUTS)), len(ids))
    wanted = Wanted(weights=True, inside=runner.inside(request))
    context = runner.spare_context(len(ids), request.causal_mask, whole=request.sees_later)
    whole = forward(runner, context, ids, wanted, stop, at=last)
    limit = logit_tolerance(np.asarray(whole.logits))
    run = RunCheck(runner, request, ids, whole, limit, stop, note)
    for find in (
        run.kernel_output,
        run.row_sums,
        run.upper_triangle,
        run.prefix_property,
        run.cached_equals_uncached,
        run.cut_cells,
        run.greedy_equals_generate,
    ):
        found = find()
        if found is not None:
            yield found
