"""The model's own way from the last layer to the logits, replayed on any stream.

For the time of a replay every decoder layer gives the stream in question instead of computing, so
that all that follows the layers in this model (norm, scale, cap, head) is applied by the model
itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from explorer.engine.errors import BadInput
from explorer.engine.faults import INPUT_FAULTS
from explorer.engine.inside.streams import NO_STREAM, Axes, Visit
from explorer.engine.passes.runner import Runner

NO_TAIL = (
    "What follows the layers of this model can't be replayed by itself, so its layers can't be "
    "read through it."
)


class Tail:
    """Everything after the last layer; learns from a pass how layers hand their stream on."""

    def __init__(self, runner: Runner, visits: Sequence[Visit], axes: Axes | None) -> None:
        if not visits or axes is None:
            raise BadInput(NO_STREAM)
        self._runner = runner
        self.axes = axes
        self._outputs = {visit.layer: visit.output for visit in visits}

    def logits(self, streams: torch.Tensor, ids: Sequence[int]) -> torch.Tensor:
        """(B, n, V) float32 of streams for a batch of B over n tokens, which have these `ids`.

        BadInput if the model gives something else.
        """
        rows, tokens = streams.shape[self.axes.batch], len(ids)
        device = self._runner.model.device
        fed = torch.tensor([list(ids)], device=device).expand(rows, -1)
        arguments = {
            "input_ids": fed,
            "attention_mask": torch.ones_like(fed),
            "position_ids": self._positions(tokens).expand(rows, -1),
            "use_cache": False,
            "logits_to_keep": torch.arange(tokens, device=device),
        }
        if self._runner.first_position is None:
            del arguments["position_ids"]
        try:
            with torch.inference_mode(), self._giving(streams):
                output = self._runner.model(**self._runner.accepted(arguments))
        except INPUT_FAULTS as error:
            raise BadInput(NO_TAIL, str(error)) from error
        found = output.logits
        if found.ndim != 3 or found.shape[:2] != (rows, tokens):
            raise BadInput(NO_TAIL, f"logits {tuple(found.shape)}")
        return found.float()

    def _positions(self, tokens: int) -> torch.Tensor:
        first = self._runner.first_position or 0
        return torch.arange(first, first + tokens, device=self._runner.model.device)[None]

    @contextlib.contextmanager
    def _giving(self, stream: torch.Tensor) -> Iterator[None]:
        """While inside, every layer gives `stream`; nothing stays behind."""
        layers = self._runner.layers
        before = [layer.__dict__.get("forward") for layer in layers]
        try:
            for index, layer in enumerate(layers):
                layer.__dict__["forward"] = _constant(self._outputs.get(index), stream)
            yield
        finally:
            for layer, forward in zip(layers, before, strict=True):
                layer.__dict__.pop("forward", None)
                if forward is not None:
                    layer.__dict__["forward"] = forward


def _constant(pattern: Any, stream: torch.Tensor) -> Any:
    """A forward that gives `stream` in the form of `pattern`."""
    given: Any = stream
    if isinstance(pattern, (tuple, list)):
        given = type(pattern)([stream, *pattern[1:]])

    def forward(*_: Any, **__: Any) -> Any:
        return given

    return forward
