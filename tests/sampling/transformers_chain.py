"""The sampling chain as transformers' own processors work it out."""

from __future__ import annotations

import numpy as np
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from explorer import sampling
from explorer.trace.request import Sampling


def drawn(**settings: object) -> Sampling:
    return Sampling(greedy=False, **settings)  # type: ignore[arg-type]


def processors(settings: Sampling) -> LogitsProcessorList:
    """transformers' own, in the order of the settings."""
    made = {
        "penalty": lambda: RepetitionPenaltyLogitsProcessor(settings.repetition_penalty),
        "temperature": lambda: TemperatureLogitsWarper(settings.temperature),
        "top_k": lambda: TopKLogitsWarper(settings.top_k) if settings.top_k else None,
        "top_p": lambda: TopPLogitsWarper(settings.top_p) if settings.top_p < 1 else None,
        "min_p": lambda: MinPLogitsWarper(settings.min_p),
    }
    return LogitsProcessorList(p for link in settings.order if (p := made[link]()) is not None)


def require_equal(logits: np.ndarray, settings: Sampling, previous: list[int]) -> None:
    """Ours on one vector (V,) is transformers' but for rounding."""
    require_all_equal(logits[None], settings, [previous])


def require_all_equal(vectors: np.ndarray, settings: Sampling, previous: list[list[int]]) -> None:
    """Each of (N, V) logits, after as many tokens each: transformers takes them in one batch."""
    scores = torch.tensor(vectors, dtype=torch.float64)
    found = processors(settings)(torch.tensor(previous, dtype=torch.long), scores)
    for logits, ids, theirs in zip(
        vectors, previous, torch.softmax(found, -1).numpy(), strict=True
    ):
        ours = sampling.distribution(logits, settings, ids).final
        if ((ours > 0) != (theirs > 0)).any():
            require_same_but_for_rounding(ours, theirs, logits, settings, ids)
        else:
            np.testing.assert_allclose(ours, theirs, atol=1e-6)


def require_same_but_for_rounding(
    ours: np.ndarray,
    theirs: np.ndarray,
    logits: np.ndarray,
    settings: Sampling,
    previous: list[int],
) -> None:
    """Tokens that tie at the cut are theirs to choose; else the mass there is within 1e-6 of p."""
    fewer, more = sorted((np.count_nonzero(ours), np.count_nonzero(theirs)))
    if fewer == more:
        np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-6)
        return
    found = sampling.stages(logits, settings, previous)
    at = next(i for i, stage in enumerate(found) if stage.name == "top_p")
    cumulative = np.cumsum(found[at - 1].p)[fewer - 1 : more - 1]
    np.testing.assert_allclose(cumulative, settings.top_p, atol=1e-6, rtol=0)
