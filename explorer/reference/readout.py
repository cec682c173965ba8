"""Where the next token is read off, and what a prediction costs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

IGNORED = -100
"""The label of a token that no prediction is scored on."""


def last_valid_logits(logits: Tensor, valid: Tensor | None = None) -> Tensor:
    """(B, V): of logits (B, T, V) the row after each last token.

    `valid` (B, T), or (B, S) of which the last T count: True for tokens, False for padding; None:
    no padding.  With padding on the right the last slot is no token, and its logits mean nothing.
    ValueError for other shapes, or a row without any token.
    """
    if logits.ndim != 3:
        raise ValueError(f"logits have the shape {tuple(logits.shape)}; (B, T, V) is needed.")
    if valid is None:
        return logits[:, -1]
    if valid.ndim != 2 or valid.shape[0] != logits.shape[0] or valid.shape[1] < logits.shape[1]:
        raise ValueError(
            f"valid has the shape {tuple(valid.shape)}, but the logits are of {logits.shape[0]} "
            f"rows of {logits.shape[1]} tokens: pass one value a token."
        )
    valid = valid[:, -logits.shape[1] :].bool()
    if not bool(valid.any(-1).all()):
        raise ValueError("A row has padding only, so there is no last token to read.")
    slots = torch.arange(logits.shape[1], device=logits.device)
    last = (slots * valid).argmax(-1)  # (B,)
    return logits[torch.arange(len(last), device=logits.device), last]


def next_token_loss(logits: Tensor, labels: Tensor, shift: bool = True) -> Tensor:
    """Mean of −log p(label of t + 1 | tokens up to t), in nats, over labels that count.

    logits (B, T, V); labels (B, T) token ids, `IGNORED` for those that don't count (padding, a
    prompt).  Without the `shift` the logits of t are scored on the token at t, which the model has
    just read.  ValueError for other shapes, ids outside the vocabulary, or no label that counts.
    """
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"logits have the shape {tuple(logits.shape)} and labels {tuple(labels.shape)}; "
            "(B, T, V) and (B, T) are needed."
        )
    if shift:
        logits, labels = logits[:, :-1], labels[:, 1:]
    counted = labels != IGNORED
    if not bool(counted.any()):
        raise ValueError("No label counts: the loss of nothing is not a number.")
    known = labels[counted]
    if int(known.min()) < 0 or int(known.max()) >= logits.shape[-1]:
        raise ValueError(
            f"Labels go from {int(known.min())} to {int(known.max())}, but the vocabulary has "
            f"{logits.shape[-1]} tokens; mark labels that don't count with {IGNORED}."
        )
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
