"""One token's logit with each head silenced in turn, told as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec
import numpy as np

from explorer.engine.callbacks import Report, Stop
from explorer.engine.errors import BadInput, Cancelled, EngineError
from explorer.trace.card import ModelCard
from explorer.trace.inside.heads import HeadSweep
from explorer.trace.interventions.kinds import Silence


def require_heads(card: ModelCard) -> None:
    """BadInput where heads can't be silenced."""
    if not card.offers("silence_heads"):
        raise BadInput(f"Heads can't be silenced here: {card.words('silence_heads')}.")


def swept(
    whole: np.ndarray,
    token: int | None,
    heads: Sequence[int],
    without: Callable[[Silence], np.ndarray],
    progress: Report,
    cancelled: Stop,
    part: Callable[[HeadSweep], None],
    at_layer: Callable[[int], AbstractContextManager[None]] = lambda layer: nullcontext(),
) -> HeadSweep:
    """Every head of every layer; `part` is called after each layer.

    `whole` are the logits (V,) with every head, `without` gives those with one silenced; `heads` by
    layer.  `at_layer` is entered around a layer's heads.  BadInput if there is no such token;
    EngineError where the logits are not numbers.
    """
    token = int(whole.argmax()) if token is None else token
    if not 0 <= token < len(whole):
        raise BadInput(f"There is no token {token}: this model's ids end at {len(whole) - 1}.")
    logit, probability = _of_token(whole, token)
    found = HeadSweep(
        token=token,
        logit=logit,
        probability=probability,
        heads=tuple(heads),
        logits=(),
        probabilities=(),
    )
    for layer, count in enumerate(heads):
        with at_layer(layer):
            for head in range(count):
                progress("Silencing heads", len(found.logits) / max(1, sum(heads)))
                if cancelled():
                    raise Cancelled
                logit, probability = _of_token(without(Silence(layer=layer, head=head)), token)
                found = msgspec.structs.replace(
                    found,
                    logits=(*found.logits, logit),
                    probabilities=(*found.probabilities, probability),
                )
        part(found)
    return found


def _of_token(logits: np.ndarray, token: int) -> tuple[float, float]:
    """Its logit and its probability; EngineError if they are not numbers."""
    shares = np.exp(logits.astype(np.float64) - float(logits.max()))
    share = float(shares[token] / shares.sum())
    if not np.isfinite([share, logits[token]]).all():
        raise EngineError("The model's logits contain NaN or infinite values. Try another dtype.")
    return float(logits[token]), share
