"""How well the model foresaw each token of the prompt of a run: one pass, read out in portions.

The run itself keeps the logits of its readouts only; those of every slot are worked out here when
somebody asks, a bounded number at a time.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from explorer.engine.callbacks import Report, Stop, never
from explorer.engine.errors import Cancelled, EngineError
from explorer.engine.experiments.loss import nats, ranks
from explorer.engine.passes.layout import Layout
from explorer.engine.passes.model_passes import ModelPasses
from explorer.sampling import leading
from explorer.trace.experiments import PromptScores, ScorePrompt

LOGIT_BYTES = 128 << 20
ALTERNATIVES = 3


def score_prompt(
    passes: ModelPasses, asked: ScorePrompt, progress: Report, cancelled: Stop = never
) -> PromptScores:
    """One entry a token but the first, padding left out; the model's own choices beside it.

    EngineError where the logits are not numbers.  The run's own cache is left as it was.
    """
    layout = passes.layout(asked.request, ())
    real = [slot for slot, seen in enumerate(layout.attention_mask) if seen]
    target = dict(itertools.pairwise(real))  # each token's slot -> the next one's
    found: dict[str, list[Any]] = {"slots": [], "nats": [], "entropy_bits": [], "ranks": [],
                                   "top": []}  # fmt: skip
    count = 0
    most = max(1, LOGIT_BYTES // (4 * max(1, passes.card.vocab_size)))
    for slots, logits in passes.every_logit(asked.request, layout, most, cancelled):
        count += 1
        at = [slot for slot in slots if slot in target]
        if at:
            _add(found, logits[[slot - slots.start for slot in at]], layout,
                 [target[slot] for slot in at])  # fmt: skip
        progress("Scoring the prompt", slots.stop / len(layout.ids))
        if cancelled():
            raise Cancelled
    return PromptScores(passes=count, **{name: tuple(some) for name, some in found.items()})


def _add(
    found: dict[str, list[Any]], logits: np.ndarray, layout: Layout, targets: list[int]
) -> None:
    ids = [layout.ids[slot] for slot in targets]
    found["slots"] += targets
    found["nats"] += nats(logits, ids).tolist()
    found["ranks"] += ranks(logits, ids).tolist()
    if np.isnan(logits).any():
        raise EngineError("The model's logits contain NaN values. Try another dtype.")
    for row in logits:
        shares = np.exp(row.astype(np.float64) - float(row.max()))
        shares /= shares.sum()
        some = shares[shares > 0]
        best = leading(row, ALTERNATIVES)
        found["entropy_bits"].append(float(max(0.0, -(some * np.log2(some)).sum())))
        found["top"].append(tuple((int(i), float(shares[i])) for i in best))
