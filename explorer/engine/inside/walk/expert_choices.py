"""Which experts a mixture sent each token to, read off what its modules were given and gave."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from explorer.trace.inside.walk import ExpertChoice


class ExpertWatch:
    """Notes ids and weights of the experts chosen in one layer, pass by pass."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._tokens = 0
        self._passes: list[tuple[torch.Tensor, torch.Tensor] | None] = []

    @contextlib.contextmanager
    def watching(self, tokens: int, rows: Sequence[int]) -> Iterator[None]:
        """While inside, a pass over `tokens` tokens is noted."""
        self._tokens = tokens
        self._passes.append(None)
        handles = [
            module.register_forward_hook(self._note, with_kwargs=True)
            for module in self._layer.modules()
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def choices(self, end_slot: int) -> tuple[ExpertChoice, ...]:
        """One entry a token of the passes, the last of which was before slot `end_slot`.

        None where no experts were chosen.
        """
        found = [one for one in self._passes if one is not None]
        if not found or len(found) < len(self._passes):
            return ()
        ids = torch.cat([one[0] for one in found]).cpu().tolist()
        weights = torch.cat([one[1] for one in found]).cpu().tolist()
        first = end_slot - len(ids)
        return tuple(
            ExpertChoice(slot=first + row, ids=tuple(one), weights=tuple(some))
            for row, (one, some) in enumerate(zip(ids, weights, strict=True))
        )

    def _note(self, module: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        if self._passes[-1] is not None:
            return
        gave = output if isinstance(output, (tuple, list)) else (output,)
        for some in ((*args, *kwargs.values()), gave):
            tensors = [one for one in some if isinstance(one, torch.Tensor)]
            ids = next((one for one in tensors if self._is_choice(one, whole=True)), None)
            if ids is None:
                continue
            shaped = (one for one in tensors if self._is_choice(one, whole=False))
            weights = next((one for one in shaped if one.shape == ids.shape), None)
            if weights is not None:
                wide = (self._tokens, ids.shape[-1])
                self._passes[-1] = (ids.reshape(wide), weights.reshape(wide).float())

    def _is_choice(self, tensor: torch.Tensor, whole: bool) -> bool:
        """True for (T, k) or (1, T, k) ids of experts, or weights of that shape."""
        few = tensor.ndim >= 2 and tensor.numel() == self._tokens * tensor.shape[-1]
        right = tensor.dtype in (torch.int64, torch.int32)
        return few and (right if whole else tensor.is_floating_point())
