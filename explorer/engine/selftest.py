"""On load: a dozen tokens through the model, to find what works on it.

The engine uses and offers only what passed; each finding is one sentence for the model panel.
One uncached pass with logits at every slot is the reference for all the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from explorer.engine import scrutiny
from explorer.engine.errors import Cancelled, EngineError
from explorer.engine.layout import Layout, lay_out
from explorer.engine.runner import Pass, Runner
from explorer.trace.card import Capability
from explorer.trace.request import RunRequest, Side

LENGTH = 12
PADS = 3
TOLERANCE = {"float32": 1e-4, "float16": 5e-2, "bfloat16": 0.5}
Stop = Callable[[], bool]


def tolerance(dtype: str) -> float:
    """Largest difference in logits that counts as equal, by dtype."""
    return TOLERANCE.get(dtype, 1e-4)


def sample_ids(vocabulary: int, avoid: set[int]) -> tuple[int, ...]:
    """Twelve ordinary, different ids spread over the vocabulary."""
    stride = max(1, vocabulary // (LENGTH + 3))
    ids = [i % vocabulary for i in range(stride, vocabulary * 2, stride) if i not in avoid]
    return tuple((ids * LENGTH)[:LENGTH])


@dataclass(slots=True)
class SelfTest:
    """The findings on one runner, in an order in which each may lean on those before."""

    runner: Runner
    stop: Stop
    layout: Layout
    reference: Pass
    limit: float

    @classmethod
    def of(cls, runner: Runner, stop: Stop) -> SelfTest:
        """Runs the reference pass.  EngineError if the model can't run at all."""
        vocabulary = runner.model.get_input_embeddings().num_embeddings
        ids = sample_ids(vocabulary, set(runner.loaded.card.eos_ids))
        layout = Layout(ids, (1,) * LENGTH, tuple(range(LENGTH)))
        reference = scrutiny.every_slot(runner, RunRequest(), layout, stop)
        return cls(runner, stop, layout, reference, tolerance(runner.loaded.card.dtype))

    def capture(self) -> Capability:
        """Maps rebuilt from queries, keys and mask reproduce the kernel's output."""
        gaps = scrutiny.kernel_output(self.reference, self.layout)
        proven = {layer for layer, gap in gaps.items() if gap <= self.limit / 10}
        self.runner.proven = proven
        failed = sorted(set(gaps) - proven)
        without = sorted(set(self.reference.recorder.visited) - set(gaps))
        words = "every attention map is rebuilt exactly from queries, keys and the kernel's mask"
        if not gaps:
            words = "this model calls no attention that can be recorded"
        elif failed:
            words = f"layers {_list(failed)} can't be rebuilt exactly, so their maps are not drawn"
        if without and gaps:
            words += f"; layers {_list(without)} have no attention"
        return _finding("capture", bool(proven), words, max(gaps.values(), default=0.0))

    def causal_off(self) -> Capability:
        """With the mask off, every layer sees later tokens and earlier logits move."""
        name, request = "causal_off", RunRequest(causal_mask=False)
        shift = scrutiny.prefix_shift(
            self.runner, RunRequest(), self.layout, self.reference, self.stop
        )
        if shift > self.limit:
            words = "this model reads later tokens by design, so there is no mask to switch off"
            return _finding(name, False, words, shift)
        opened = scrutiny.every_slot(self.runner, request, self.layout, self.stop)
        future = scrutiny.above_diagonal(opened)
        closed = [layer for layer, weight in future.items() if weight == 0]
        moved = scrutiny.prefix_shift(self.runner, request, self.layout, opened, self.stop)
        if not future:
            words = "no attention is recorded here, so a switched-off mask can't be proven"
        elif closed or moved <= self.limit:
            words = f"the switch does not take in layers {_list(closed)} of this architecture"
        else:
            words = "the causal mask can be switched off; windows and padding stay"
            return _finding(name, True, words, moved)
        return _finding(name, False, words, moved)

    def cache(self) -> Capability:
        """Cached steps equal uncached ones."""
        gap = scrutiny.cached_gap(
            self.runner, RunRequest(), self.layout, self.reference.logits[-3:], self.stop
        )
        self.runner.cache_offered = gap <= self.limit
        words = "cached steps equal uncached ones"
        if not self.runner.cache_offered:
            words = "cached steps differ from uncached ones on this model, so the cache stays off"
        return _finding("cache", self.runner.cache_offered, words, gap)

    def undo(self) -> Capability:
        """Cutting the cache back equals never having gone on.  Needs the cache filled above."""
        slot = LENGTH - 4
        gap = scrutiny.crop_gap(
            self.runner, RunRequest(), self.layout, slot, self.reference.logits[slot], self.stop
        )
        self.runner.cache.can_crop = gap <= self.limit
        words = "stepping back cuts the cache"
        if not self.runner.cache.can_crop:
            words = "stepping back rebuilds the cache by prefill: it can't be cut exactly"
        return _finding("undo", self.runner.cache.can_crop, words, gap)

    def padding(self, side: Side) -> Capability:
        """A padded prompt and one cached step give the logits of the tokens alone."""
        name = f"{side}_padding"
        pad_id = self.runner.loaded.card.pad_id
        if pad_id is None:
            return _finding(name, False, "not offered: the model names no padding token", None)
        request = RunRequest(padding=side, pad=PADS)
        layout = lay_out(self.layout.ids[:-1], self.layout.ids[-1:], request, pad_id)
        prompt = layout.first(len(layout.ids) - 1)
        self.runner.cache.fresh()
        worst = 0.0
        for part, start, row in ((prompt, 0, -2), (layout, len(prompt.ids), -1)):
            done = self.runner.forward(request, part, start, self.runner.cache.live, self.stop)
            worst = max(worst, scrutiny.largest(done.logits - self.reference.logits[row]))
        words = f"{side} padding gives the same logits as no padding"
        if worst > self.limit:
            words = f"{side} padding changes the logits of this architecture: not offered"
        return _finding(name, worst <= self.limit, words, worst)


def _finding(name: str, offered: bool, words: str, measured: float | None) -> Capability:
    if measured is not None and not np.isfinite(measured):
        measured = None
    return Capability(name=name, offered=offered, words=words, measured=measured)


def _list(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + ("…" if len(numbers) > 8 else "")


def run(runner: Runner, stop: Stop = lambda: False) -> None:
    """Find what works and write it to the runner and its model card."""
    test = SelfTest.of(runner, stop)
    findings = {
        "capture": test.capture,
        "causal_off": test.causal_off,
        "cache": test.cache,
        "undo": test.undo,
        "left_padding": lambda: test.padding("left"),
        "right_padding": lambda: test.padding("right"),
    }
    found = []
    for name, find in findings.items():
        try:
            found.append(find())
        except Cancelled:
            raise
        except (EngineError, RuntimeError, ValueError, TypeError, KeyError, IndexError) as error:
            reason = f"not offered: the model failed its test ({type(error).__name__})"
            found.append(_finding(name, False, reason, None))
    runner.cache.drop()
    if not found[2].offered:
        runner.cache_offered = False
    card = msgspec.structs.replace(runner.loaded.card, capabilities=tuple(found))
    runner.loaded = replace(runner.loaded, card=card)
