"""Teacher-forced scores: how surprised the model is by each next token of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.engine.passes.layout import Layout
from explorer.trace.batch import Ranked, Scored
from explorer.trace.step import Token

ALTERNATIVES = 5
Spell = Callable[[int], Token]
Spans = Iterable[tuple[range, np.ndarray]]  # slots, and their logits (B, n, V)


@dataclass(frozen=True, slots=True)
class Scores:
    """One row of T slots."""

    shifted: tuple[Scored, ...] = ()  # (T - 1) each slot's prediction of the next
    unshifted_nats: tuple[float, ...] = ()  # (T) each slot's surprisal at its own token


def _log_sum(logits: np.ndarray) -> np.ndarray:
    """(n,) float64: ln of the summed exponentials of logits (n, V)."""
    wide = logits.astype(np.float64)
    top = wide.max(axis=-1, keepdims=True)
    return np.asarray(np.log(np.exp(wide - top).sum(axis=-1)) + top[:, 0])


def nats(logits: np.ndarray, targets: Sequence[int]) -> np.ndarray:
    """(n,) float64: -ln p of each target under logits (n, V)."""
    own = logits[np.arange(len(targets)), list(targets)].astype(np.float64)
    return np.asarray(_log_sum(logits) - own)


def ranks(logits: np.ndarray, targets: Sequence[int]) -> np.ndarray:
    """(n,) how many tokens come before each target by logit, ties by id."""
    own = logits[np.arange(len(targets)), list(targets)][:, None]
    before = np.arange(logits.shape[1])[None] < np.asarray(targets)[:, None]
    return np.asarray(((logits > own) | ((logits == own) & before)).sum(axis=-1))


def ranked(logits: np.ndarray, count: int, spell: Spell) -> tuple[Ranked, ...]:
    """The `count` most probable tokens of logits (V,), exact over the whole vocabulary."""
    count = min(count, len(logits))
    best = np.argpartition(-logits, count - 1)[:count]
    best = best[np.lexsort((best, -logits[best]))]
    shares = np.exp(logits[best].astype(np.float64) - _log_sum(logits[None])[0])
    return tuple(Ranked(spell(int(i)), float(p)) for i, p in zip(best, shares, strict=True))


def real_predictions(row: Layout) -> tuple[int, ...]:
    """Slots that predict a real token from a real token: what belongs in the loss."""
    mask = row.attention_mask
    return tuple(slot for slot in range(len(mask) - 1) if mask[slot] and mask[slot + 1])


def score(rows: Sequence[Layout], spans: Spans, spell: Spell) -> list[Scores]:
    """One a row, from the logits of all slots in order."""
    shifted: list[list[Scored]] = [[] for _ in rows]
    unshifted: list[list[float]] = [[] for _ in rows]
    for slots, logits in spans:
        for row, layout in enumerate(rows):
            own = [layout.ids[slot] for slot in slots]
            unshifted[row] += nats(logits[row], own).tolist()
            ahead = [slot for slot in slots if slot + 1 < len(layout.ids)]
            shifted[row] += _predictions(layout, ahead, logits[row], spell)
    return [Scores(tuple(s), tuple(u)) for s, u in zip(shifted, unshifted, strict=True)]


def _predictions(
    layout: Layout, slots: Sequence[int], logits: np.ndarray, spell: Spell
) -> list[Scored]:
    if not slots:
        return []
    real = set(real_predictions(layout))
    targets = [layout.ids[slot + 1] for slot in slots]
    seen = logits[: len(slots)]
    figures = zip(slots, nats(seen, targets), ranks(seen, targets), seen, strict=True)
    return [
        Scored(
            slot=slot,
            nats=float(loss),
            rank=int(rank),
            top=ranked(row, ALTERNATIVES, spell) if slot in real else (),
        )
        for slot, loss, rank, row in figures
    ]
