"""An open .gguf file as experiments see it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.passes.layout import Layout
from explorer.llama_engine.passes.generate import forward, next_pass
from explorer.llama_engine.passes.runner import LlamaRunner
from explorer.llama_engine.passes.watch import Wanted
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.step import Token


@dataclass(frozen=True, slots=True)
class LlamaPasses:
    """ModelPasses of a runner; nothing is recorded."""

    runner: LlamaRunner

    @property
    def card(self) -> ModelCard:
        return self.runner.card

    def token(self, token_id: int) -> Token:
        return self.runner.model.tokenizer.token(token_id)

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
        """Through a cache of its own; without the mask the whole text is read for each part."""
        runner, whole, causal = self.runner, len(layout.ids), request.causal_mask
        wanted = Wanted(every=0, inside=runner.inside(request))
        context = None if request.sees_later else runner.spare_context(whole)
        for start in range(0, whole, most):
            span = range(start, min(start + most, whole))
            if context is None:
                opened = runner.spare_context(whole, causal, len(span), whole=True)
                done = forward(runner, opened, layout.ids, wanted, cancelled, at=span)
            else:
                ids = layout.ids[: span.stop]
                done = forward(runner, context, ids, wanted, cancelled, at=span)
            yield span, done.logits
