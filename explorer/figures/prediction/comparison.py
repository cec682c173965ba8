"""What the mask does to the next token: both runs' own distributions side by side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.sampling import leading, softmax
from explorer.trace.step import Step, Token


@dataclass(frozen=True, slots=True)
class TokenPair:
    """One vocabulary entry with its probability on both sides."""

    token_id: int
    token: Token | None  # its bytes; None if they are not known without the model
    masked: float
    unmasked: float


@dataclass(frozen=True, slots=True)
class NextTokens:
    """The raw distributions of both runs; nothing of the sampling settings is in them."""

    pairs: tuple[TokenPair, ...]
    masked_top: TokenPair
    unmasked_top: TokenPair
    total_variation: float  # half the sum of all differences: 0 the same, 1 nothing in common
    rest_count: int
    rest_masked: float
    rest_unmasked: float

    @property
    def top_changes(self) -> bool:
        """True if the two runs would pick different tokens greedily."""
        return self.masked_top.token_id != self.unmasked_top.token_id


def next_tokens(masked: Step, unmasked: Step, rows: int) -> NextTokens:
    """The `rows` tokens that are most probable on either side, by the larger probability.

    SamplingError if a side's logits give no distribution; ValueError if the two vocabularies
    differ.
    """
    a, b = softmax(masked.logits), softmax(unmasked.logits)
    if a.shape != b.shape:
        raise ValueError(
            "The two runs use models with different vocabularies. They cannot be compared."
        )
    tops = int(np.argmax(masked.logits)), int(np.argmax(unmasked.logits))  # ties: the first id
    ids = [int(i) for i in leading(np.maximum(a, b), max(rows, 1))]
    for place, top in enumerate(dict.fromkeys(tops)):
        if top not in ids and len(ids) > place:
            ids[-1 - place] = top
    known = {token.id: token for token in (*unmasked.top, *masked.top)}

    def pair(i: int) -> TokenPair:
        return TokenPair(i, known.get(i), float(a[i]), float(b[i]))

    others = np.ones(len(a), bool)
    others[ids] = False
    return NextTokens(
        pairs=tuple(pair(i) for i in ids),
        masked_top=pair(tops[0]),
        unmasked_top=pair(tops[1]),
        total_variation=float(np.abs(a - b).sum() / 2),
        rest_count=int(np.count_nonzero(others)),
        rest_masked=float(a[others].sum()),
        rest_unmasked=float(b[others].sum()),
    )
