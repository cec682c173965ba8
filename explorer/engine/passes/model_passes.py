"""What an experiment needs of a model, whichever library runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from explorer.engine.callbacks import Stop
from explorer.engine.passes.layout import Layout
from explorer.trace.card import ModelCard
from explorer.trace.request import RunRequest
from explorer.trace.step import Token


class ModelPasses(Protocol):
    """One open model; every call names the whole context, so calls may come in any order."""

    @property
    def card(self) -> ModelCard:
        """What is known of the model."""

    def token(self, token_id: int) -> Token:
        """Any id with its bytes."""

    def layout(self, request: RunRequest, chosen: Sequence[int]) -> Layout:
        """Prompt and chosen tokens in slots; BadInput if they exceed the context."""

    def caches(self, request: RunRequest) -> bool:
        """True if this request runs with a cache on this model."""

    def own_cache_aside(self) -> AbstractContextManager[None]:
        """While inside, passes fill another cache; the run's own is left as it was."""

    def next_pass(
        self, request: RunRequest, layout: Layout, index: int, cancelled: Stop
    ) -> tuple[np.ndarray, int]:
        """((V,) logits at the readout of step `index`, slots that went through the model)."""

    def every_logit(
        self, request: RunRequest, layout: Layout, most: int, cancelled: Stop
    ) -> Iterator[tuple[range, np.ndarray]]:
        """((slots), (n, V) their logits) in order, at most `most` slots at a time.

        The run's own cache is left as it was.
        """


def logits_after(
    passes: ModelPasses, request: RunRequest, chosen: Sequence[int], cancelled: Stop
) -> np.ndarray:
    """(V,) float32 raw logits after the tokens `chosen`; BadInput if they exceed the context."""
    layout = passes.layout(request, chosen)
    return passes.next_pass(request, layout, len(chosen), cancelled)[0]
