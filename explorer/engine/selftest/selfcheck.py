"""The self-check of one run: is what the window draws what the model did?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from explorer.engine.callbacks import Stop, never
from explorer.engine.passes.generate import forward, generate
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.engine.selftest import measured_gaps, on_cpu
from explorer.trace.card import Check
from explorer.trace.interventions.kinds import Cells
from explorer.trace.request import RunRequest, Sampling
from explorer.trace.rounding import largest, logit_tolerance, tolerance

MOST_SLOTS = 256  # eager attention keeps H·T² numbers a layer: longer runs are checked this far
CACHED_STEPS = 3
GREEDY_TOKENS = 8


@dataclass(slots=True)
class TraceCheck:
    """One run to be checked, with its uncached reference pass."""

    runner: Runner
    request: RunRequest
    layout: Layout
    whole: ForwardPass
    limit: float  # on weights of a separate run; from the same q, k, v they are ten times closer
    logit_limit: float
    stop: Stop
    note: str

    def kernel_output(self) -> Check:
        """softmax(QKᵀ·scale + recorded mask)·V against the kernel's own output."""
        gaps = measured_gaps.kernel_output(self.whole, self.layout)
        return self._check("kernel_output", max(gaps.values(), default=0.0), self.limit / 10)

    def eager_weights(self) -> Check | None:
        """Rebuilt maps against the weights of a separate eager run."""
        gaps = measured_gaps.eager_weights(self.runner, self.request, self.layout, self.whole)
        if gaps is None:
            return None
        return self._check("eager_weights", max(gaps.values(), default=0.0), self.limit)

    def row_sums(self) -> Check:
        """Rows sum to 1; where a layer has sinks, the missing mass is theirs."""
        gap, sink = measured_gaps.row_sums(self.whole, self.layout)
        note = f"attention sinks take up to {sink:.3f} of a row" if sink else self.note
        return Check(name="row_sums", passed=gap <= 1e-5, measured=gap, tolerance=1e-5, note=note)

    def upper_triangle(self) -> Check | None:
        """Mask on: no weight on a later token, exactly.  Mask off: some in every layer."""
        if not self.runner.capture.causal:
            return None  # this model reads later tokens by design
        if self._cells and (self.request.sees_later or not self.request.causal_mask):
            return None  # which later tokens are seen was chosen cell by cell
        future = measured_gaps.above_diagonal(self.whole, self.layout)
        if self.request.causal_mask:
            return self._check("upper_triangle", max(future.values(), default=0.0), 0.0)
        closed = sum(weight == 0 for weight in future.values())
        return self._check("future_visible", float(closed), 0.0)

    def prefix_property(self) -> Check | None:
        """Changing the last token leaves earlier positions alone."""
        if self.request.sees_later or len(self.layout.ids) < 2:
            return None
        if not self.runner.capture.causal:
            return None
        moved = measured_gaps.prefix_shift(
            self.runner, self.request, self.layout, self.whole, self.stop
        )
        return self._check("prefix_property", moved, self.logit_limit)

    def cached_equals_uncached(self) -> Check | None:
        """Prefill and the last steps through a cache against one pass without."""
        rows = min(CACHED_STEPS + 1, len(self.layout.ids) - self._tail())
        if not self.runner.caches(self.request) or rows < 2:
            return None
        reference = self.whole.logits[-rows:]
        gap = measured_gaps.cached_gap(self.runner, self.request, self.layout, reference, self.stop)
        return self._check("cached_equals_uncached", gap, self.logit_limit)

    def _tail(self) -> int:
        """Slots up to the last padding: a cached step may not start inside them."""
        pads = [i for i, real in enumerate(self.layout.attention_mask) if not real]
        return pads[-1] + 1 if pads else 0

    def padded_equals_alone(self) -> Check | None:
        """The padded run against the same tokens without padding."""
        if not self.layout.padded or self._cells:  # padding moves the positions of the cells
            return None
        mask = np.array(self.layout.attention_mask, bool)
        ids = tuple(int(i) for i in np.array(self.layout.ids)[mask])
        places = tuple(int(i) for i in np.array(self.layout.position_ids)[mask])
        bare = Layout(ids, (1,) * len(ids), places)
        request = msgspec.structs.replace(self.request, padding=None, pad=0, cache=False)
        alone = forward(self.runner, request, bare, 0, None, self.stop)
        readout = self.layout.readout - (len(self.layout.ids) - len(self.whole.logits))
        gap = largest(self.whole.logits[readout] - alone.logits)
        return self._check("padded_equals_alone", gap, self.logit_limit)

    def cut_cells(self) -> Check | None:
        """No weight on any cell that is cut, exactly."""
        if not self._cells:
            return None
        return self._check("cut_cells", measured_gaps.cut_weight(self.whole, self.request), 0.0)

    @property
    def _cells(self) -> bool:
        """True if cells of attention are cut or allowed."""
        return any(isinstance(one, Cells) for one in self.request.changes)

    def greedy_equals_generate(self) -> Check | None:
        """Our greedy tokens against transformers' own generate() from the same prompt."""
        if not self.request.causal_mask or self.note or not self.runner.capture.causal:
            return None
        if self.request.changes or self.request.position_offset:
            return None  # generate() knows nothing of them
        if self.request.context.name == "drop-turns":
            return None  # nor of turns that are left out
        ours: list[int] = []
        generate(
            self.runner,
            self.runner.prompt(self.request),
            (),
            GREEDY_TOKENS,
            Sampling,
            lambda _, token: ours.append(token.id),
            self.stop,
        )
        prompt = self.runner.layout(self.request, ())
        theirs = measured_gaps.generated(self.runner, prompt, len(ours), self.stop)
        differing = sum(a != b for a, b in zip(ours, theirs, strict=False))
        differing += abs(len(ours) - len(theirs))
        return self._check("greedy_equals_generate", float(differing), 0.0)

    def same_on_cpu(self) -> Check | None:
        """On a GPU: the last logits against those of the same model on the processor."""
        if not on_cpu.comparable(self.runner, self.request):
            return None
        end = len(self.layout.ids)
        at = range(end - len(self.whole.logits), end)
        theirs = on_cpu.logits(self.runner, self.layout, at, self.stop)
        if theirs is None:
            return None
        limit = logit_tolerance(self.runner.loaded.card.dtype, theirs)  # ours may be no numbers
        return self._check("same_on_cpu", largest(self.whole.logits - theirs), limit)

    def _check(self, name: str, measured: float, limit: float) -> Check:
        return Check(
            name=name,
            passed=bool(measured <= limit),
            measured=measured,
            tolerance=limit,
            note=self.note,
        )


def check(
    runner: Runner, request: RunRequest, chosen: Sequence[int], stop: Stop = never
) -> Iterator[Check]:
    """Every check that applies to this run, one after the other; Cancelled if told to stop.

    The run's own cache is left as it was.
    """
    odd = runner.loaded.not_finite
    if odd.count:  # nothing else could be told from numbers that are none
        yield Check(
            name="finite_weights", passed=False, measured=odd.count, tolerance=0.0, note=odd.tensor
        )
        return
    with runner.own_cache_aside():
        layout = runner.layout(request, chosen)
        note = ""
        if len(layout.ids) > MOST_SLOTS:
            note = f"checked on the first {MOST_SLOTS} of {len(layout.ids)} positions"
            layout = layout.first(MOST_SLOTS)
        last = range(max(0, len(layout.ids) - CACHED_STEPS - 1 - request.pad), len(layout.ids))
        whole = forward(runner, request, layout, 0, None, stop, keep_outputs=True, at=last)
        dtype = runner.loaded.card.dtype
        limits = tolerance(dtype), logit_tolerance(dtype, whole.logits)
        run = TraceCheck(runner, request, layout, whole, *limits, stop, note)
        same = run.same_on_cpu()
        if same is not None:
            yield same
            if not np.isfinite(same.measured):
                return  # nothing else could be told
        for find in (
            run.kernel_output,
            run.eager_weights,
            run.row_sums,
            run.upper_triangle,
            run.prefix_property,
            run.cached_equals_uncached,
            run.padded_equals_alone,
            run.cut_cells,
            run.greedy_equals_generate,
        ):
            found = find()
            if found is not None:
                yield found
