"""Weights that are not numbers (NaN) or infinite: how many, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from explorer.engine import ranks
from explorer.engine.callbacks import Stop, never
from explorer.engine.errors import Cancelled


@dataclass(frozen=True, slots=True)
class NotFinite:
    """How many of a model's weights are NaN or infinite, and the first tensor that has some."""

    count: int = 0
    tensor: str = ""

    @property
    def warning(self) -> str:
        """One sentence for the model card; empty if every weight is a number."""
        if not self.count:
            return ""
        one = self.count == 1
        many, which = ("1 weight is", "it") if one else (f"{self.count:,} weights are", "them")
        return (
            f"{many} NaN or infinite ({self.tensor}), so results that depend on {which} mean "
            "nothing; download the model again, or choose another."
        )


def not_finite(model: Any, cancelled: Stop = never) -> NotFinite:
    """Look at every weight once; a sum tells whether a tensor needs a closer look.

    Weights that lie in a mapped file are read from the disk here, which may take a minute.
    Cancelled, between two tensors, if `cancelled` turned true.
    """
    found: dict[str, int] = {}
    with torch.inference_mode():
        for name, parameter in model.named_parameters():
            if cancelled():
                raise Cancelled
            weight = ranks.local_part(parameter)
            if weight is None or weight.is_meta or not weight.is_floating_point():
                continue
            if torch.isfinite(weight.sum(dtype=torch.float32)):
                continue
            if here := weight.numel() - int(torch.isfinite(weight).sum()):
                found[name] = here
    names = [name for name, _ in model.named_parameters()]
    counts = ranks.total(tuple(found.get(name, 0) for name in names))
    first = next((name for name, here in zip(names, counts, strict=True) if here), "")
    return NotFinite(sum(counts), first)
