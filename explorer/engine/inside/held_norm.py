"""Norms as the linear maps that they are while their scale is held at its actual value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

_NEAR = {torch.float32: 1e-4, torch.float64: 1e-4}


@dataclass(frozen=True, slots=True)
class HeldNorm:
    """x -> scale · (x - mean of x, if centred) + bias, over the last axis; float64."""

    scale: torch.Tensor  # (d,)
    centred: bool
    bias: torch.Tensor  # (d,)

    def part(self, vector: torch.Tensor) -> torch.Tensor:
        """What a part (…, d) of the input becomes; the bias is nobody's part."""
        wide = vector.double()
        return self.scale * (wide - wide.mean(-1, keepdim=True) if self.centred else wide)

    def onto(self, direction: torch.Tensor) -> torch.Tensor:
        """(d,) whose dot product with a part of the input is what it adds along `direction`."""
        turned = self.scale * direction.double()
        return turned - turned.mean() if self.centred else turned


@torch.inference_mode()
def held_norm(module: Any, given: torch.Tensor, gave: torch.Tensor) -> HeldNorm | None:
    """The map of a norm at its input `given` (d,), whose output was `gave`; None if it is none.

    Which kind it is (RMS, or with the mean taken out), its weight and its bias are read off what
    it makes of alternating and of equal numbers.
    """
    flat = given.reshape(1, 1, -1)
    equal = torch.ones_like(flat)
    signs = equal.clone()
    signs[..., 1::2] = -1
    try:
        up, down, level = (module(one).reshape(-1).double() for one in (signs, -signs, equal))
    except (RuntimeError, TypeError, ValueError, AttributeError):
        return None
    if up.shape != given.reshape(-1).shape:
        return None
    weight, bias = (up - down) / 2 * signs.reshape(-1), (up + down) / 2
    size = float(weight.abs().max())
    centred = float((level - bias).abs().max()) < 1e-2 * size
    held = HeldNorm(weight, centred, bias)
    bare = held.part(given.reshape(-1))
    aim = gave.reshape(-1).double() - bias
    square = float(bare @ bare)
    if square == 0:
        return None
    share = float(bare @ aim) / square
    off = float((share * bare - aim).abs().max())
    near = _NEAR.get(given.dtype, 3e-2)
    if off > near * max(1e-30, float(gave.double().abs().max())):
        return None
    return HeldNorm(share * weight, centred, bias)
