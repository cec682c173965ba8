"""What a comparison does to the next token: both runs' own distributions side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.sampling import leading, softmax, total_variation
from explorer.trace.step import Step, Token


@dataclass(frozen=True, slots=True)
class TokenPair:
    """One vocabulary entry with its probability and logit on both sides."""

    token_id: int
    token: Token | None  # its bytes; None if they are not known without the model
    first: float
    second: float
    first_logit: float
    second_logit: float
    first_rank: int  # 0 = the most probable; equal ones share the best
    second_rank: int

    @property
    def change(self) -> float:
        """Of its probability, from the first side to the second."""
        return self.second - self.first

    @property
    def logit_change(self) -> float:
        return self.second_logit - self.first_logit


@dataclass(frozen=True, slots=True, eq=False)
class NextTokens:
    """The raw distributions of both runs; nothing of the sampling settings is in them."""

    sides: tuple[Step, Step]
    probabilities: tuple[np.ndarray, np.ndarray]  # (V,) float64 of each side
    ids: tuple[int, ...]  # of the tokens that have a row of their own
    total_variation: float  # 0 the same, 1 nothing in common

    def pair(self, token_id: int) -> TokenPair:
        """Any entry of the vocabulary."""
        known = (token for step in self.sides for token in step.top if token.id == token_id)
        p, q = (float(side[token_id]) for side in self.probabilities)
        one, other = (float(step.logits[token_id]) for step in self.sides)
        above = [int(np.count_nonzero(s.logits > s.logits[token_id])) for s in self.sides]
        return TokenPair(token_id, next(known, None), p, q, one, other, above[0], above[1])

    @property
    def pairs(self) -> tuple[TokenPair, ...]:
        """Those that have a row, the most probable first."""
        return tuple(map(self.pair, self.ids))

    @property
    def tops(self) -> tuple[TokenPair, TokenPair]:
        """The most probable token of each side; of equal ones the first id."""
        first, second = (int(np.argmax(step.logits)) for step in self.sides)
        return self.pair(first), self.pair(second)

    @property
    def rest(self) -> tuple[int, float, float]:
        """All other tokens: how many, and what is left for them on each side."""
        others = np.ones(len(self.probabilities[0]), bool)
        others[list(self.ids)] = False
        first, second = (float(side[others].sum()) for side in self.probabilities)
        return int(np.count_nonzero(others)), first, second


def next_tokens(first: Step, second: Step, rows: int) -> NextTokens:
    """The `rows` tokens that are most probable on either side, by the larger probability.

    SamplingError if a side's logits give no distribution; ValueError if the two vocabularies
    differ.
    """
    a, b = softmax(first.logits), softmax(second.logits)
    if a.shape != b.shape:
        raise ValueError(
            "The two runs use models with different vocabularies. They cannot be compared."
        )
    ids = [int(i) for i in leading(np.maximum(a, b), max(rows, 1))]
    tops = (int(np.argmax(step.logits)) for step in (first, second))
    for place, top in enumerate(dict.fromkeys(tops)):
        if top not in ids and len(ids) > place:
            ids[-1 - place] = top
    return NextTokens((first, second), (a, b), tuple(ids), total_variation(a, b))
