"""Which logits are read, and what the loss counts."""

from __future__ import annotations

import math
import re

import pytest
import torch

from explorer.reference.masks import causal_mask, position_ids
from explorer.reference.readout import IGNORED, last_valid_logits, next_token_loss

LOGITS = torch.arange(24.0).reshape(2, 3, 4)


def test_the_last_token_is_read_wherever_padding_stands() -> None:
    valid = torch.tensor([[True, True, False], [False, True, True]])
    found = last_valid_logits(LOGITS, valid)
    assert torch.equal(found, torch.stack([LOGITS[0, 1], LOGITS[1, 2]]))
    assert torch.equal(last_valid_logits(LOGITS), LOGITS[:, -1])
    later = torch.cat([torch.ones(2, 5, dtype=torch.bool), valid], dim=1)  # with a cache
    assert torch.equal(last_valid_logits(LOGITS, later), found)


@pytest.mark.parametrize(
    ("logits", "valid", "words"),
    [
        (LOGITS[0], None, "(B, T, V) is needed"),
        (LOGITS, torch.ones(2, 2), "one value a token"),
        (LOGITS, torch.ones(3, 3), "one value a token"),
        (LOGITS, torch.ones(2), "one value a token"),
        (LOGITS, torch.tensor([[1, 1, 1], [0, 0, 0]]), "padding only"),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    logits: torch.Tensor, valid: torch.Tensor | None, words: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        last_valid_logits(logits, valid)


def test_the_loss_is_the_mean_surprisal_of_what_follows() -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[1, 2, 3], [0, 3, IGNORED]])
    p = logits.softmax(-1)
    nats = [-math.log(p[0, 0, 2]), -math.log(p[0, 1, 3]), -math.log(p[1, 0, 3])]
    assert next_token_loss(logits, labels).item() == pytest.approx(sum(nats) / 3, abs=1e-6)
    unshifted = [-math.log(p[b, t, labels[b, t]]) for b, t in
                 ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1))]  # fmt: skip
    found = next_token_loss(logits, labels, shift=False).item()
    assert found == pytest.approx(sum(unshifted) / 5, abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (torch.zeros(2, 2, dtype=torch.long), "(B, T, V) and (B, T) are needed"),
        (torch.full((2, 3), IGNORED), "No label counts"),
        (torch.full((2, 3), 4), "vocabulary has 4 tokens"),
        (torch.full((2, 3), -1), "vocabulary has 4 tokens"),
    ],
)
def test_labels_that_can_not_be_scored_are_named(labels: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        next_token_loss(LOGITS, labels)


def test_masks_and_positions_of_a_padded_row_with_a_cache() -> None:
    ids, valid = torch.zeros(1, 2, dtype=torch.long), torch.tensor([[False, True, True, True]])
    assert position_ids(ids, 2, valid).tolist() == [[1, 2]]
    assert causal_mask(ids, 2, valid)[0, 0].tolist() == [
        [False, True, True, False],
        [False, True, True, True],
    ]
    with pytest.raises(ValueError, match="those in the cache included"):
        causal_mask(ids, 3, valid)
