"""Which tokens a token may see, and where each one stands."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_mask(ids: Tensor, start: int = 0, valid: Tensor | None = None) -> Tensor:
    """True where a query sees a key: keys up to its own slot, and no padding.

    ids (B, T) of this pass, `start` tokens before them, `valid` (B, start + T) False for padding ->
    (1 or B, 1, T, start + T).  A padding slot sees itself, so that no row is empty.  ValueError if
    `valid` has another shape.
    """
    length = start + ids.shape[1]
    slots = torch.arange(length, device=ids.device)
    queries = slots[start:, None]  # (T, 1)
    mask = (slots <= queries)[None, None]  # (1, 1, T, S)
    if valid is None:
        return mask
    check_valid(ids, start, valid)
    return (mask & valid[:, None, None, :].bool()) | (slots == queries)


def position_ids(ids: Tensor, start: int = 0, valid: Tensor | None = None) -> Tensor:
    """(1 or B, T): each token's number, counted from 0 without padding; padding has 0."""
    if valid is None:
        return torch.arange(start, start + ids.shape[1], device=ids.device)[None]
    check_valid(ids, start, valid)
    return (valid.long().cumsum(-1) - 1).clamp(min=0)[:, start:]


def check_valid(ids: Tensor, start: int, valid: Tensor) -> None:
    """ValueError unless `valid` has one entry a token, those in the cache included."""
    expected = ids.shape[0], start + ids.shape[1]
    if tuple(valid.shape) != expected:
        raise ValueError(
            f"valid has the shape {tuple(valid.shape)}, but there are {expected[0]} rows of "
            f"{expected[1]} tokens: pass one value a token, those in the cache included."
        )
