"""What modules were given and what they gave, at chosen rows of one pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from explorer.engine.inside.streams import first_tensor
from explorer.engine.inside.watched_pass import Watching


@dataclass(frozen=True, slots=True, eq=False)
class ModuleCall:
    """One call of one module: (n, …) each, the rows that are kept; None where it has no rows."""

    name: str
    given: torch.Tensor | None
    gave: torch.Tensor | None


def rows_of(value: Any, tokens: int, rows: Sequence[int]) -> torch.Tensor | None:
    """A copy of these rows of a tensor over `tokens` tokens: (n, …); None if it is none.

    Tokens may stand with a batch of one before or after them, behind the heads, or alone; where
    there are as many heads as tokens, nobody can tell which is which.
    """
    tensor = first_tensor(value)
    if tensor is None or not tensor.is_floating_point() or tensor.ndim < 2:
        return None
    at = torch.tensor(list(rows), device=tensor.device)
    if tensor.ndim == 4 and tensor.shape[0] == 1 and tensor.shape[2] == tokens:
        if tensor.shape[1] == tokens > 1:
            return None
        if tensor.shape[1] != tokens:
            return tensor[0].transpose(0, 1).index_select(0, at)
    if tensor.ndim > 2 and tensor.shape[:2] == (1, tokens):
        return tensor[0].index_select(0, at)
    if tensor.ndim > 2 and tensor.shape[:2] == (tokens, 1):
        return tensor[:, 0].index_select(0, at)
    if tensor.shape[0] == tokens:
        return tensor.index_select(0, at)
    return None


class CallWatch:
    """Notes every call of the modules named, in the order in which they ended."""

    def __init__(self, modules: Mapping[str, Any]) -> None:
        self._modules = modules
        self._at: tuple[int, Sequence[int]] = (0, ())
        self.calls: list[ModuleCall] = []

    @contextlib.contextmanager
    def watching(self, tokens: int, rows: Sequence[int]) -> Iterator[None]:
        """While inside, a pass over `tokens` tokens is noted; nothing stays behind."""
        self._at, self.calls = (tokens, rows), []
        handles = []
        try:
            for name, module in self._modules.items():
                handles.append(module.register_forward_hook(self._noting(name), with_kwargs=True))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def named(self, name: str) -> list[ModuleCall]:
        """The calls of one module, in order."""
        return [call for call in self.calls if call.name == name]

    def _noting(self, name: str) -> Any:
        def note(module: Any, args: Any, kwargs: dict[str, Any], output: Any) -> None:
            every = [*args, *kwargs.values()]
            given = (rows_of(one, *self._at) for one in every if isinstance(one, torch.Tensor))
            found = next((one for one in given if one is not None), None)
            self.calls.append(ModuleCall(name, found, rows_of(output, *self._at)))

        return note


def together(*watches: Watching) -> Watching:
    """Several watches on the same passes."""

    @contextlib.contextmanager
    def watching(tokens: int, rows: Sequence[int]) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for watch in watches:
                stack.enter_context(watch(tokens, rows))
            yield

    return watching
