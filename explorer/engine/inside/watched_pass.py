"""Passes of a run that is looked into: which slots are read together, and through which cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.errors import EngineError
from explorer.engine.passes import chunked_prefill
from explorer.engine.passes.generate import forward, prepare
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.recorded_pass import ForwardPass
from explorer.engine.passes.runner import Runner
from explorer.trace.request import RunRequest

LOGIT_BYTES = 128 << 20
STREAM_BYTES = 256 << 20


# Notes a pass over so many tokens, at these of its rows, while inside.
Watching = Callable[[int, Sequence[int]], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Span:
    """One pass that was watched."""

    slots: tuple[int, ...]  # those asked for that it read, in order
    done: ForwardPass

    @property
    def logits(self) -> np.ndarray:
        """(n, V) float32, the model's own, at those slots."""
        return self.done.logits


def watched_passes(
    runner: Runner,
    request: RunRequest,
    layout: Layout,
    slots: Sequence[int],
    watching: Watching,
    stop: Stop,
    *,
    keep_outputs: bool = False,
    read_out: bool = True,
    whole: bool = False,
    kept: int = 0,
) -> Iterator[Span]:
    """Passes that read the `slots`, in order, a bounded number of logits each.

    `watching` is entered for each, with the rows wanted of the tokens it reads.  The newest slot
    alone is read through the run's own cache, which is then as it was; all else leaves that cache
    alone.  `read_out` False: no logits but one are computed; `whole`: earlier tokens are read
    again in any case.  `kept`: vectors that are kept of each layer at each slot, which bounds how
    many are read together.  EngineError where the logits are no numbers.
    """
    prepare(runner, request, layout, stop)
    causal = request.causal_mask and runner.capture.causal
    if causal and not layout.padded:
        layout = layout.first(max(slots) + 1)
    last = len(layout.ids) - 1
    by_slot = not request.context.keeps_last  # a cache that evicts holds no slot at its own place
    caches = runner.caches(request) and by_slot
    alone = tuple(slots) == (last,) and not whole and caches
    if alone and _cached_up_to(runner, layout, last):
        found = None
        with runner.cache_of(request):
            if runner.cache.hold(layout, last) == last:
                with watching(1, [0]):
                    done = forward(runner, request, layout, last, runner.cache.live, stop,
                                   at=[last], keep_outputs=keep_outputs)  # fmt: skip
                found = _finite(Span((last,), done))
                runner.cache.grew(layout, last + 1)
        if found is not None:  # out here: a generator that is not read to its end is closed
            yield found
            return
    most = max(1, LOGIT_BYTES // (4 * max(1, runner.loaded.card.vocab_size)))
    most = min(most, chunked_prefill.CHUNK) if read_out else chunked_prefill.CHUNK
    if kept and runner.loaded.card.hidden_size:
        vectors = kept * len(runner.layers) * 4 * runner.loaded.card.hidden_size
        most = min(most, max(1, STREAM_BYTES // vectors))
    cache = None
    tokens = len(layout.ids)
    if tokens > most and causal and runner.in_chunks and caches:
        cache = runner.fresh_cache(request).live
    for start in range(0, tokens, most):
        end = min(start + most, tokens)
        here = tuple(slot for slot in slots if start <= slot < end)
        if cache is None and not here:
            continue
        part, first = (layout, 0) if cache is None else (layout.first(end), start)
        with watching(len(part.ids) - first, [slot - first for slot in here or (end - 1,)]):
            at = here if here and read_out else (end - 1,)
            done = forward(runner, request, part, first, cache, stop, at=at,
                           keep_outputs=keep_outputs)  # fmt: skip
        if here:
            yield _finite(Span(here, done))


def _cached_up_to(runner: Runner, layout: Layout, slot: int) -> bool:
    """True if the run's cache ends where `slot` is to be read, or can be cut back by that slot."""
    cache = runner.cache
    near = cache.slots == slot or (cache.slots == slot + 1 and cache.can_crop)
    return slot > 0 and near and cache.shared(layout, slot) == slot


def _finite(span: Span) -> Span:
    if not np.isfinite(span.logits).all():
        raise EngineError("The model's logits contain NaN or infinite values. Try another dtype.")
    return span
