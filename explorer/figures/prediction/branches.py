"""Two continuations of one text: what they share, and what each token after the fork cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.trace.step import Token
from explorer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Cost:
    """One token chosen, with the model's own probability of it."""

    token: Token
    probability: float  # softmax of the raw logits
    nats: float  # surprisal; inf for what the model holds impossible


@dataclass(frozen=True, slots=True)
class BranchPair:
    """Two branches aligned at the first token that differs."""

    shared: int  # tokens chosen alike before it
    first: tuple[Cost, ...]  # after the fork
    second: tuple[Cost, ...]


def costs(trace: Trace, start: int = 0) -> tuple[Cost, ...]:
    """The tokens chosen from `start` on."""
    return tuple(
        Cost(token, step.draw.raw_probability, nats(step.draw.raw_probability))
        for token, step in zip(trace.chosen[start:], trace.steps[start:], strict=True)
    )


def pair(one: Trace, other: Trace) -> BranchPair:
    """Two runs of one prompt, side by side from where they part."""
    shared = 0
    for mine, theirs in zip(one.chosen, other.chosen, strict=False):
        if mine.id != theirs.id:
            break
        shared += 1
    return BranchPair(shared, costs(one, shared), costs(other, shared))


def nats(p: float) -> float:
    """Surprisal of a probability, -ln p."""
    return math.inf if p <= 0 else max(0.0, -math.log(p))


@dataclass(frozen=True, slots=True)
class BranchRow:
    """One branch as one line of the tree: what it holds that no line above it does."""

    number: int
    parent: int | None  # row it forks from; None = from the prompt
    fork: int  # steps it shares with that row
    tokens: tuple[Token, ...]  # of its own
    nats: tuple[float, ...]


def rows(branches: Sequence[tuple[int, Trace]]) -> tuple[BranchRow, ...]:
    """The tree of some branches of one prompt, each below the one that it shares most with."""
    found: list[BranchRow] = []
    order = _ordered(branches)
    for i, (number, trace) in enumerate(order):
        ids = trace.chosen_ids
        shares = [_shared(ids, order[j][1].chosen_ids) for j in range(i)]
        fork = max(shares, default=0)
        parent = shares.index(fork) if fork else None
        own = costs(trace, fork)
        found.append(
            BranchRow(number, parent, fork, tuple(c.token for c in own), tuple(c.nats for c in own))
        )
    return tuple(found)


def _ordered(branches: Sequence[tuple[int, Trace]]) -> list[tuple[int, Trace]]:
    """Depth first: a branch stands right below those that it shares most with."""
    placed: list[tuple[int, Trace]] = []
    for number, trace in branches:
        shares = [_shared(trace.chosen_ids, other.chosen_ids) for _, other in placed]
        best = max(shares, default=0)
        at = len(shares) - shares[::-1].index(best) if best else len(placed)
        placed.insert(at, (number, trace))
    return placed


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
