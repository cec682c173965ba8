"""A torch model as experiments see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.passes.generate import forward, next_pass
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.runner import Runner
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.step import Token


@dataclass(frozen=True, slots=True)
class TorchPasses:
    """ModelPasses of a runner."""

    runner: Runner

    @property
    def card(self) -> ModelCard:
        return self.runner.loaded.card

    def token(self, token_id: int) -> Token:
        return self.runner.loaded.tokenizer.token(token_id)

    def layout(self, request: RunRequest, chosen: Sequence[int]) -> Layout:
        return self.runner.layout(request, chosen)

    def caches(self, request: RunRequest) -> bool:
        return self.runner.caches(request)

    def own_cache_aside(self) -> AbstractContextManager[None]:
        return self.runner.own_cache_aside()

    def next_pass(
        self, request: RunRequest, layout: Layout, index: int, cancelled: Stop
    ) -> tuple[np.ndarray, int]:
        done = next_pass(self.runner, request, layout, index, cancelled)
        return done.logits, done.slots_run

    def every_logit(
        self, request: RunRequest, layout: Layout, most: int, cancelled: Stop
    ) -> Iterator[tuple[range, np.ndarray]]:
        """Through a cache of its own where that is exact."""
        runner, whole, cache = self.runner, len(layout.ids), None
        if whole > most and runner.in_chunks and runner.caches(request):
            cache = runner.fresh_cache(request).live
        for start in range(0, whole, most):
            span = range(start, min(start + most, whole))
            if cache is None:
                done = forward(runner, request, layout, 0, None, cancelled, at=span)
            else:
                part = layout.first(span.stop)
                done = forward(runner, request, part, span.start, cache, cancelled, at=span)
            yield span, done.logits
