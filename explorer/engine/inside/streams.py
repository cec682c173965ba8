"""The residual stream of a pass: what each decoder layer read and gave on, at chosen rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from explorer.engine.errors import BadInput

NO_STREAM = (
    "This model's layers don't pass one stream of vectors on, one for each token, so it can't be "
    "read between them."
)


@dataclass(frozen=True, slots=True)
class Axes:
    """Where a stream keeps batch and tokens; mostly (B, T, d)."""

    batch: int
    tokens: int


@dataclass(slots=True)
class Visit:
    """One run of one decoder layer."""

    layer: int
    entered: torch.Tensor  # the stream before it, the chosen rows only
    left: torch.Tensor  # and after it
    output: Any  # as the layer gave it, tuples included


def axes_of(stream: torch.Tensor, tokens: int) -> Axes | None:
    """Axes of a stream over `tokens` tokens in a batch of one; None if it is none."""
    shape = tuple(stream.shape)
    for axes in (Axes(0, 1), Axes(1, 2), Axes(1, 0)):
        deep = len(shape) > max(axes.batch, axes.tokens) + 1
        if deep and shape[axes.tokens] == tokens and shape[axes.batch] == 1:
            return axes
    return None


def first_tensor(value: Any) -> torch.Tensor | None:
    """The tensor that a module gave, or the first of several."""
    if isinstance(value, (tuple, list)) and value:
        value = value[0]
    return value if isinstance(value, torch.Tensor) else None


class StreamWatch:
    """Notes the stream around every layer, in the passes that are asked for."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layers = layers
        self._entered: list[torch.Tensor] = []
        self._tokens = 0  # that the pass reads
        self._rows: Sequence[int] = ()  # of them, those that are kept
        self.visits: list[Visit] = []  # of the last pass
        self.axes: Axes | None = None

    @contextlib.contextmanager
    def watching(self, tokens: int, rows: Sequence[int]) -> Iterator[None]:
        """While inside, a pass over `tokens` tokens is noted; nothing stays behind."""
        self._tokens, self._rows = tokens, rows
        self.visits, self._entered = [], []
        handles = []
        try:
            for index, layer in enumerate(self._layers):
                handles.append(layer.register_forward_pre_hook(self._enter, with_kwargs=True))
                handles.append(layer.register_forward_hook(self._leaving(index)))
            yield
        finally:
            for handle in handles:
                handle.remove()

    def chosen(self, stream: torch.Tensor | None) -> torch.Tensor:
        """A copy of the chosen rows: a model may write over its stream.  BadInput if it is none."""
        axes = None if stream is None else axes_of(stream, self._tokens)
        if stream is None or axes is None or not stream.is_floating_point():
            raise BadInput(NO_STREAM)
        self.axes = self.axes or axes
        rows = torch.tensor(list(self._rows), device=stream.device)
        return stream.index_select(axes.tokens, rows)

    def _enter(self, module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        named = kwargs.get("hidden_states")
        given = [*args, *(() if named is None else (named,)), *kwargs.values()]
        found = (
            one
            for one in given
            if isinstance(one, torch.Tensor)
            and one.is_floating_point()
            and axes_of(one, self._tokens) is not None
        )
        self._entered.append(self.chosen(next(found, None)))

    def _leaving(self, index: int) -> Any:
        def leave(module: Any, args: Any, output: Any) -> None:
            left = self.chosen(first_tensor(output))
            self.visits.append(Visit(index, self._entered.pop(), left, output))

        return leave
