"""From the last layer's stream to one token's logit as a dot product, the norm's scale held.

What lies between is looked for on the replayed tail: a norm that reads the stream, a head that
reads the norm's output, a factor or a soft cap after it.  Anything else is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from explorer.engine.errors import BadInput
from explorer.engine.inside.calls import CallWatch, ModuleCall
from explorer.engine.inside.held_norm import HeldNorm, held_norm
from explorer.engine.inside.tail import Tail
from explorer.engine.passes.runner import Runner

NO_LINEAR_TAIL = (
    "Between the last layer and the logits this model does more than one norm and one head, so a "
    "logit can't be written as a sum of parts."
)
_CLOSE = 1e-4


@dataclass(frozen=True, slots=True)
class LinearTail:
    """logit(t) = factor(t) · (W[t] · norm(stream) · between + bias[t])."""

    norm: HeldNorm
    weight: torch.Tensor  # (V, d), the head's
    bias: torch.Tensor | None  # (V,)
    between: float  # a constant between norm and head
    bare: np.ndarray  # (V,) float64, what the head gave
    logits: np.ndarray  # (V,) float32, the model's own

    def factor(self, token: int) -> float:
        """What became of the head's number: a scale, or what a soft cap left of it."""
        bare = float(self.bare[token])
        return float(self.logits[token]) / bare if bare else 1.0

    def direction(self, token: int) -> torch.Tensor:
        """(d,) float64: what a part of the stream adds to the logit is its dot product with it."""
        row = self.weight[token].double() * (self.between * self.factor(token))
        return self.norm.onto(row)

    def constant(self, token: int) -> float:
        """What the biases of norm and head add."""
        row = self.weight[token].double()
        found = self.between * float(row @ self.norm.bias)
        if self.bias is not None:
            found += float(self.bias[token])
        return found * self.factor(token)


def linear_tail(
    runner: Runner, tail: Tail, stream: torch.Tensor, token: int, logits: np.ndarray
) -> LinearTail:
    """The tail at one position, whose stream and input token these are; BadInput if it is none."""
    inside = {id(module) for layer in runner.layers for module in layer.modules()}
    outside = {
        name: module
        for name, module in runner.model.named_modules()
        if name and id(module) not in inside
    }
    watch = CallWatch(outside)
    with watch.watching(1, [0]):
        replayed = tail.logits(stream, [token])[0, 0].cpu().numpy()
    head = runner.model.get_output_embeddings()
    calls = [call for call in watch.calls if outside[call.name] is head]
    weight = getattr(head, "weight", None)
    if not calls or calls[-1].given is None or calls[-1].gave is None or weight is None:
        raise BadInput(NO_LINEAR_TAIL)
    read, bare = calls[-1].given.reshape(-1), calls[-1].gave.reshape(-1).double().cpu().numpy()
    bias = getattr(head, "bias", None)
    _require(weight.ndim == 2 and weight.shape == (len(bare), len(read)))
    with torch.inference_mode():
        made = torch.nn.functional.linear(read, weight, bias).double().cpu().numpy()
    _require(_near(made, bare, weight.dtype))
    bare = bare[: len(logits)]
    _require(len(bare) == len(logits) and _near(replayed, logits, weight.dtype))
    _require(_scaled(bare, logits, weight.dtype) or _capped(bare, logits, weight.dtype))
    norm, between = _norm(outside, watch.calls, stream.reshape(-1), read)
    return LinearTail(norm, weight, bias, between, bare, logits)


def _norm(
    modules: dict[str, Any], calls: Sequence[ModuleCall], stream: torch.Tensor, read: torch.Tensor
) -> tuple[HeldNorm, float]:
    """The norm that reads the stream, and the constant between its output and the head's input."""
    for call in calls:
        if call.given is None or call.gave is None or call.given.numel() != stream.numel():
            continue
        given, gave = call.given.reshape(-1), call.gave.reshape(-1)
        if gave.shape != read.shape or not torch.equal(given, stream):
            continue
        between = float(gave.double() @ read.double() / (gave.double() @ gave.double()))
        if not _near((gave.double() * between).cpu().numpy(), read.double().cpu().numpy(),
                     read.dtype):  # fmt: skip
            continue
        held = held_norm(modules[call.name], given, gave)
        if held is not None:
            return held, between
    raise BadInput(NO_LINEAR_TAIL)


def _near(a: np.ndarray, b: np.ndarray, dtype: torch.dtype) -> bool:
    limit = _CLOSE if dtype == torch.float32 else 3e-2
    return bool(np.abs(a - b).max() <= limit * max(1e-30, float(np.abs(b).max())))


def _scaled(bare: np.ndarray, logits: np.ndarray, dtype: torch.dtype) -> bool:
    """True if every logit is the head's number times one constant."""
    return _near(bare * float(bare @ logits) / float(bare @ bare), logits, dtype)


def _capped(bare: np.ndarray, logits: np.ndarray, dtype: torch.dtype) -> bool:
    """True if every logit is cap · tanh(head's number / cap), whatever the cap."""
    place = int(np.abs(bare).argmax())
    wide, narrow = abs(float(bare[place])), abs(float(logits[place]))
    low, high = narrow, 1e6
    for _ in range(100):
        cap = (low + high) / 2
        low, high = (cap, high) if cap * np.tanh(wide / cap) < narrow else (low, cap)
    return _near(cap * np.tanh(bare / cap), logits, dtype)


def _require(holds: bool) -> None:
    if not holds:
        raise BadInput(NO_LINEAR_TAIL)
