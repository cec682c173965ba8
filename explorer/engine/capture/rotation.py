"""Rotary embeddings, as far as distances are to be counted otherwise: queries turned back.

A score depends on how far query and key are rotated apart.  To meet the first keys as if they were
nearer, a query is rotated back; the difference of the two scores is added to the kernel's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, eq=False)
class Rotation:
    """How a model turns queries and keys by their position: the self-test has proven it."""

    frequencies: torch.Tensor  # (r/2,) radians a position, of the first r numbers of a head
    interleaved: bool  # pairs are neighbours; else the two halves

    def turned(self, vectors: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """(…, Q, d) in float32, each row rotated by so many positions, (Q,)."""
        angles = positions.double()[:, None] * self.frequencies.double()  # (Q, r/2)
        cos, sin = angles.cos().float(), angles.sin().float()
        wide = 2 * len(self.frequencies)
        part, rest = vectors[..., :wide].float(), vectors[..., wide:].float()
        if self.interleaved:
            one, two = part[..., 0::2], part[..., 1::2]
        else:
            one, two = part[..., : wide // 2], part[..., wide // 2 :]
        first, second = one * cos - two * sin, two * cos + one * sin
        if self.interleaved:
            joined = torch.stack((first, second), dim=-1).flatten(-2)
        else:
            joined = torch.cat((first, second), dim=-1)
        return torch.cat((joined, rest), dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class MovedKeys:
    """The first keys of every layer, at distances counted among `most` tokens that are kept."""

    rotation: Rotation
    count: int
    most: int

    def bias(
        self, query: torch.Tensor, key: torch.Tensor, slots: int, scaling: float
    ) -> torch.Tensor | None:
        """(B, H, Q, count) that is added to the scores of the first keys; None where none moves.

        The queries are the last of `slots`.
        """
        rows = query.shape[2]
        by = torch.arange(slots - rows, slots, device=query.device) - (self.most - 1)
        if int(by[-1]) <= 0:
            return None
        by = by.clamp(min=0)
        first = (
            key[:, :, : self.count].float().repeat_interleave(query.shape[1] // key.shape[1], dim=1)
        )
        change = self.rotation.turned(query, -by) - query.float()
        return (change @ first.transpose(-1, -2)) * scaling
