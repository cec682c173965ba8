"""A saved run as arrays, for a notebook: `run = explorer.open_run("run.dxt")`.

Steps, layers and heads count from 0; negative numbers count from the end, as in Python.  Axes are
those of `explorer.trace`: V vocabulary entries, H heads, Q queries that a pass read, K keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from explorer import sampling as chain
from explorer.trace.card import ModelCard
from explorer.trace.files import dxt
from explorer.trace.step import Step, Token
from explorer.trace.trace import Trace

__all__ = ["OpenedRun", "open_run"]


def open_run(path: str | os.PathLike[str]) -> OpenedRun:
    """The run of a .dxt file, read with every bound checked; the model is not needed.

    ValueError with one sentence if it is no such file, or is damaged.
    """
    trace, beside = dxt.load_whole(path)
    branches = {one.name: OpenedRun(one.trace) for one in beside.branches}
    for run in (OpenedRun(trace), *branches.values()):
        run.require_possible(path)
    return OpenedRun(trace, branches)


class OpenedRun:
    """One run: its tokens, and logits and attention of every step."""

    def __init__(self, trace: Trace, branches: Mapping[str, OpenedRun] | None = None) -> None:
        self._trace = trace
        self.branches: Mapping[str, OpenedRun] = branches or {}
        """The continuations that were tried, by name; the run itself is among them."""

    def __repr__(self) -> str:
        words = f"{self._trace.model_name!r}, {len(self.tokens)} tokens, {self.steps} steps"
        return f"<run of {words}>"

    def __len__(self) -> int:
        return self.steps

    @property
    def steps(self) -> int:
        """Passes of the model, each of which chose one token."""
        return len(self._trace.steps)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Every token in order, padding included: `id`, `text`, `raw` bytes and `origin`."""
        return self._trace.tokens

    @property
    def text(self) -> str:
        """Prompt and generated text; control tokens and padding are left out."""
        raw = b"".join(t.raw for t in self.tokens if not t.special and t.origin != "padding")
        return raw.decode("utf-8", "replace")

    @property
    def generated(self) -> tuple[Token, ...]:
        """The tokens that were chosen, one a step."""
        return self._trace.chosen

    @property
    def model(self) -> ModelCard:
        """What is known of the model: sizes, versions, what works on it."""
        return self._trace.card

    @property
    def settings(self) -> dict[str, Any]:
        """Prompt, mask, cache and padding of the run; under "sampling" those of the last step."""
        told: dict[str, Any] = msgspec.to_builtins(self._trace.request)
        if self._trace.steps:
            told["sampling"] = msgspec.to_builtins(self._trace.steps[-1].sampling)
        return told

    @cached_property
    def logits(self) -> np.ndarray:
        """(steps, V) float32, as the model gave them."""
        if not self._trace.steps:
            return np.zeros((0, self.model.vocab_size), np.float32)
        return np.stack([step.logits for step in self._trace.steps])

    def probabilities(self, step: int, *, after_sampling: bool = False) -> np.ndarray:
        """(V,) float64: the model's own distribution, or what the sampling settings make of it."""
        index = self._index(step)
        found = self._trace.steps[index]
        if not after_sampling:
            return chain.softmax(found.logits)
        context = self._trace.context_ids(index)
        return chain.distribution(found.logits, found.sampling, context).final

    def attention(self, step: int, layer: int) -> np.ndarray:
        """(H, Q, K) float32 weights of one pass; a cached step has one query.

        ValueError with the reason if the layer keeps no attention.
        """
        index = self._index(step)
        layers = self._trace.steps[index].layers
        place = _counted(layer, len(layers), "layer")
        heads = layers[place].heads or 1
        return np.stack([self._trace.weights(index, place, head) for head in range(heads)])

    def step(self, step: int) -> Step:
        """Everything that was recorded of one step: its draw, times, cache, positions."""
        return self._trace.steps[self._index(step)]

    def require_possible(self, path: str | os.PathLike[str]) -> None:
        """ValueError if a step names settings that no token can be picked with."""
        try:
            for step in self._trace.steps:
                chain.check(step.sampling)
        except chain.SamplingError as error:
            raise dxt.DxtError(
                f"{os.fspath(path)} is damaged: {error} {dxt.AFTER_DAMAGE}"
            ) from error

    def _index(self, step: int) -> int:
        return _counted(step, self.steps, "step")


def _counted(number: int, count: int, what: str) -> int:
    """A number from 0 to count - 1; IndexError with the numbers there are."""
    if not -count <= number < count:
        there = f"They count from 0 to {count - 1}." if count else "It has none."
        raise IndexError(f"This run has no {what} {number}. {there}")
    return number % count
